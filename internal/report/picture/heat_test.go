package picture

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"carronade/internal/report"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

func total(h *Heat) (n uint64) {
	for _, c := range h.Columns {
		for _, k := range c.Counts {
			n += k
		}
	}
	return n
}

// Every observation is in exactly one cell: the smallest, the largest, zeros, those
// beyond the histogram, and equal ones.
func TestEveryObservationIsCounted(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := &report.Document{}
		want := uint64(0)
		for i := range rapid.IntRange(0, 5).Draw(rt, "intervals") {
			h := measure.NewHistogram()
			for range rapid.IntRange(0, 20).Draw(rt, "observations") {
				h.Record(time.Duration(rapid.Int64Range(0, int64(2*time.Hour)).Draw(rt, "ns")))
			}
			want += h.Count()
			d.Intervals = append(d.Intervals, report.Interval{
				StartS: float64(i), EndS: float64(i + 1), Histograms: map[string]string{"end_to_end": h.EncodeHDR()},
			})
		}
		f, ok := ByName(Of(d), "end-to-end-map")
		assert.Must(rt, ok == (want > 0), "there is a map: got %v, want %v", ok, want > 0)
		if !ok {
			return
		}
		if f.Heat.Count != want || total(f.Heat) != want {
			rt.Fatalf("in the map: got %d and %d in cells, want %d", f.Heat.Count, total(f.Heat), want)
		}
		// The same if the picture is coarser than the map.
		if got := total(f.Heat.coarse(0, 5, 2)); got != want {
			rt.Fatalf("in the coarse map: got %d, want %d", got, want)
		}
	})
}

func TestRowsOfAMap(t *testing.T) {
	h := &Heat{Edges: heatEdges(10, 1000)}
	got := len(h.Edges) - 1
	assert.Must(t, got == heatRows, "rows: got %d, want %d", got, heatRows)
	for _, c := range []struct {
		name string
		v    float64
		want int
	}{
		{"the smallest has a row", 10, 0},
		{"a little more", 10.1, 0},
		{"an edge belongs to the row below", h.Edges[50], 49},
		{"above it", h.Edges[50] * 1.0001, 50},
		{"the largest has a row", 1000, heatRows - 1},
		{"above the map: the highest row", 1e9, heatRows - 1},
		{"below the map: the lowest row", 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) { assert.Equal(t, h.row(c.v), c.want, "row of %v", c.v) })
	}
	if got := heatEdges(7, 7); len(got) != 2 || !(got[0] < 7) || got[1] != 7 {
		t.Errorf("edges if all are equal: got %v, want one row up to 7", got)
	}
}

func TestLevels(t *testing.T) {
	h := &Heat{Most: 1000}
	for _, c := range []struct {
		n    uint64
		want int
	}{{1, 0}, {2, 1}, {1000, heatLevels - 1}, {999, heatLevels - 1}} {
		assert.Equal(t, h.level(c.n), c.want, "level of %d in %d", c.n, h.Most)
	}
}

// The curve ends at the maximum, never falls, and agrees with the histogram.
func TestCurve(t *testing.T) {
	d := measured("a", 30, 3)
	f := figure(t, Of(d), "percentiles")
	h := d.Histogram("response")
	s := &f.Series[0]
	for i := 1; i < len(s.Y); i++ {
		if s.Y[i] < s.Y[i-1] || s.X[i] < s.X[i-1] {
			t.Fatalf("point %d of the curve falls: %v after %v at %v after %v", i, s.Y[i], s.Y[i-1], s.X[i], s.X[i-1])
		}
	}
	assert.Equal(t, s.Y[len(s.Y)-1], measure.Micros(h.Max()), "end of the curve")
	for _, p := range []float64{50, 90, 99, 99.9} {
		got, ok := s.stepAt(1 / (1 - p/100))
		want := measure.Micros(h.Percentile(p))
		assert.True(t, ok && got == want, "p%v on the curve: got %v, want %v", p, got, want)
	}
}

// Events without an answer are a separate part of the curve.
func TestCurveOfBounds(t *testing.T) {
	answered, aged := measure.NewHistogram(), measure.NewHistogram()
	answered.RecordN(time.Millisecond, 90)
	aged.RecordN(time.Second, 10)
	d := &report.Document{Intervals: []report.Interval{{
		Phase: "measurement", EndS: 1, Response: measure.Summarize(answered, aged, nil),
		Histograms: map[string]string{"response": answered.EncodeHDR(), "censored": aged.EncodeHDR()},
	}}}
	d.Response = measure.Summarize(answered, aged, nil)
	figures := Of(d)
	f := figure(t, figures, "percentiles")
	if len(f.Series) != 2 || f.Series[1].Name != "response, at least" {
		t.Fatalf("lines: got %v, want the certain part and the rest", lines(f))
	}
	got := f.Series[1].Y[0]
	assert.True(t, got >= 1e6*0.999, "the lower bound: got %v us, want a second", got)
	over := figure(t, figures, "response")
	assert.Equal(t, over.Table(40).Rows[0][3], ">= 1 s", "p99 in the table")
}

func TestDistributionIsComplete(t *testing.T) {
	f := figure(t, Of(measured("a", 30, 4)), "distribution")
	for _, s := range f.Series {
		sum := 0.0
		for _, v := range s.Y {
			sum += v
		}
		assert.True(t, math.Abs(sum-100) <= 1e-6, "%s: got %v %% in all bars, want 100", s.Name, sum)
	}
}
