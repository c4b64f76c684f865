package report

import (
	"strings"
	"testing"
	"time"

	"carronade/internal/layout"
	"carronade/internal/verdict/find"
	"carronade/internal/workload"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// partlyRead is a round trip of which 50,000 of 1,000,000 events were never read.
func partlyRead() Input {
	in := openLoop()
	r := in.Result
	m := &r.Measurement
	m.Consumed, m.Unread = 950_000, 50_000
	m.EndToEnd, m.UnreadAges = same(5*time.Millisecond, 950_000), same(4*time.Second, 50_000)
	m.Lower.EndToEnd = same(4*time.Millisecond, 950_000)
	last := &r.Intervals[len(r.Intervals)-1]
	last.EndToEnd, last.UnreadAges, last.Unread = same(5*time.Millisecond, 950_000), same(4*time.Second, 50_000), 50_000
	return in
}

// TestUnreadIsReported: events that were never read are in the first lines, in the counts, and in every percentile
// that they may change.
func TestUnreadIsReported(t *testing.T) {
	d := Build(partlyRead())
	for name, write := range map[string]func(p *strings.Builder) error{
		"brief": func(p *strings.Builder) error { return d.Brief(p, layout.Style{}) },
		"full":  func(p *strings.Builder) error { return d.Text(p, layout.Style{}) },
	} {
		var page strings.Builder
		assert.OK(t, write(&page))
		flat := strings.Join(strings.Fields(page.String()), " ")
		for _, want := range []string{
			"50,000 of 1,000,000 events were never read", "UNREAD 50,000 of 1,000,000 events were never read",
			"50,000 events", "not read",
		} {
			assert.True(t, strings.Contains(flat, want), "the %s text does not say %q:\n%s", name, want, page.String())
		}
		assert.True(t, strings.Contains(strings.ReplaceAll(flat, " ", ""), ">=4.00s"), "the %s text has no lower bound", name)
		assert.True(t, name == "brief" || strings.Contains(flat, "█ >= 4.00 s >= 4.00 s"), "the series of the %s text has no lower bound:\n%s", name, page.String())
		assert.True(t, !strings.Contains(flat, "no failures"), "the %s text says that nothing failed", name)
	}
	for _, row := range d.Counts() {
		assert.True(t, row.Name != "unread" || row.Value == 50_000, "the row of unread events has %v", row.Value)
	}
	iv := &d.Intervals[len(d.Intervals)-1]
	assert.True(t, iv.EndToEnd.Censored == 50_000 && iv.Histogram("unread").Count() == 50_000, "the interval has %+v", iv.EndToEnd)
	assert.Equal(t, d.Histogram("unread").Count(), 50_000, "ages")
}

// TestNothingRead: a run of which nothing came back has end-to-end times nevertheless.
func TestNothingRead(t *testing.T) {
	in := partlyRead()
	m := &in.Result.Measurement
	m.EndToEnd, m.Lower.EndToEnd, m.Consumed, m.Unread = nil, nil, 0, 50_000
	d := Build(in)
	v, ok := d.EndToEnd.At(50)
	assert.True(t, ok && v.AtLeast && v.D >= 3990*time.Millisecond, "p50 is %+v", v)
	for text, broken := range map[string]bool{"end-to-end.p50<1s": true, "end-to-end.p50<9s": false} {
		l := assert.Value(workload.ParseLimit(text))(t)
		c := d.CheckLimits([]workload.Limit{l})[0]
		assert.True(t, !c.OK && c.CannotTell != broken, "%s: %+v, want broken %v, else undecided", text, c, broken)
	}
}

// TestUnreadSurvives: a report that is read again, or assembled from its intervals, has the same lower bounds.
func TestUnreadSurvives(t *testing.T) {
	d := Build(partlyRead())
	rows := d.Intervals
	again := Assemble(d, rows)
	want, _ := d.EndToEnd.At(99)
	got, ok := again.EndToEnd.At(99)
	assert.True(t, ok && got == want && got.AtLeast && again.Totals.Unread == 50_000, "p99 %+v, want %+v; %d unread", got, want, again.Totals.Unread)
}

// TestUnreadIsLate: events that were never read are late in a trial of a search, whatever its limit is.
func TestUnreadIsLate(t *testing.T) {
	d := Build(partlyRead())
	d.Op = workload.RoundTrip
	o := &find.Options{Times: []find.TimeLimit{{Of: "end_to_end", Quantile: 0.99, Within: time.Hour}}}
	trial := find.Trial{Measure: 20 * time.Second, Slot: time.Second}
	over := uint64(0)
	for _, s := range slots(o, trial, d) {
		over += s.Over[0]
	}
	assert.Equal(t, over, 50_000, "late events")
}

// TestBacklogOfADrain: what waits in the drain, in which nothing is sent, does not say whether reading kept up.
func TestBacklogOfADrain(t *testing.T) {
	l := assert.Value(workload.ParseLimit("keeps-up"))(t)
	var said []string
	for _, drain := range []int{0, 40} {
		in := openLoop()
		r := in.Result
		for i := range r.Intervals {
			r.Intervals[i].EndToEnd = measure.NewHistogram()
		}
		rest := r.Intervals[len(r.Intervals)-1]
		rest.Counts = measure.Counts{}
		for range drain { // nothing is read, and nothing is sent
			rest.Start, rest.End = rest.End, rest.End+time.Second
			r.Intervals = append(r.Intervals, rest)
		}
		said = append(said, Build(in).CheckLimits([]workload.Limit{l})[0].Text)
	}
	assert.Equal(t, said[1], said[0])
}
