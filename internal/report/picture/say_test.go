package picture

import (
	"slices"
	"strings"
	"testing"

	"carronade/test/testkit/assert"
)

// The head of the table describes its times: the middles of intervals for values
// measured over intervals, otherwise the ends of rows.
func TestTableHead(t *testing.T) {
	figures := Of(measured("a", 100, 1)) // intervals of a second
	for _, tt := range []struct {
		figure      string
		most        int
		head, first string
	}{
		{"throughput", 100, "middle of interval", "500 ms"},
		{"response", 100, "middle of interval", "500 ms"},
		{"throughput", 10, "middle of the last interval", "9.5 s"},
		{"outstanding", 100, "until", "1 s"},
		{"outstanding", 10, "until", "10 s"},
		{"end-to-end-map", 10, "until", ""},
	} {
		table := figure(t, figures, tt.figure).Table(tt.most)
		if table.Head[0] != tt.head || tt.first != "" && table.Rows[0][0] != tt.first {
			t.Errorf("%s in %d: got %q from %q on, want %q from %q on", tt.figure, tt.most, table.Head[0], table.Rows[0][0], tt.head, tt.first)
		}
	}
}

// The description of a line of points contains the percentiles at its points, marks
// lower bounds, and has no maximum.
func TestPointsOfPercentiles(t *testing.T) {
	f := Figure{
		X: Axis{Unit: Percentile, Log: true}, Y: Axis{Unit: Micros, Log: true},
		Series: []Series{{Name: "a", X: []float64{1, 2, 10, 1 / (1 - 0.99)}, Y: []float64{100, 200, 300, 400}, AtLeast: []bool{false, false, false, true}}},
	}
	assert.Equal(t, f.Describe(), "a: p50 200 us, p90 300 us, p99 >= 400 us.")
	var rows []string
	for _, r := range f.Table(10).Rows {
		rows = append(rows, strings.Join(r, " "))
	}
	want := []string{"p50 200 us", "p90 300 us", "p99 >= 400 us"}
	assert.True(t, slices.Equal(rows, want), "got %q, want %q", rows, want)
}
