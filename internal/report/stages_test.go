package report

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"carronade/internal/layout"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// TestStages: the last count of the system is a share of what was acked until then.
func TestStages(t *testing.T) {
	in := closedLoop()
	in.Result.Intervals = []measure.Interval{
		{End: time.Second, Counts: measure.Counts{Acked: 1000}}, {Start: time.Second, End: 3 * time.Second, Counts: measure.Counts{Acked: 1000}},
	}
	for _, s := range []struct {
		name                 string
		first, second, after float64
	}{{"accepted", 900, 1500, 2000}, {"exported", 500, 750, 1900}} {
		in.Gauges = append(in.Gauges, measure.Gauge{
			From: "system", Name: s.name, Unit: "events", Total: true, Stage: true, After: &s.after,
			Points: []measure.Point{{At: time.Second, Value: s.first}, {At: 2 * time.Second, Value: s.second}},
		})
	}
	d := Build(in)
	share := d.Gauges[len(d.Gauges)-1]
	assert.Equal(t, share.Name, "exported, of acked", "the last gauge")
	assert.Same(t, share.Points, []Point{{1, 50}, {2, 50}}, "points")
	assert.Equal(t, *share.After, 95, "after")
	var text bytes.Buffer
	assert.OK(t, d.Text(&text, layout.Style{}))
	assert.True(t, strings.Contains(text.String(), "1900, 95% of acked"), "%s", &text)
}
