package report

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"carronade/internal/host"
	"carronade/internal/layout"
	"carronade/internal/verdict/find"
	"carronade/internal/verdict/trust"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// TestOneVerdict: the verdict on the delivery names everything in the ledger that is not 0, and claims nothing that
// was not checked; no other line of the report says otherwise.
func TestOneVerdict(t *testing.T) {
	all := measure.Ledger{Acked: 40_000, Read: 40_000, Complete: true}
	with := func(change func(l *measure.Ledger)) measure.Ledger {
		l := all
		change(&l)
		return l
	}
	const clean = "each once and in order"
	for _, tt := range []struct {
		name        string
		ledger      measure.Ledger
		failed      uint64 // events that were not acked
		label, text string
		headline    string // its end
		once        bool   // it says that each came once and in order
	}{
		{"nothing", all, 0, "holds", "nothing was lost or altered", "no failures", true},
		{
			"reordered", with(func(l *measure.Ledger) { l.Reordered = 7149 }), 0,
			"checked", "nothing was lost or altered; 7,149 events reordered", "no failures, 7,149 reordered", false,
		},
		{
			"more", with(func(l *measure.Ledger) { l.Reordered, l.Duplicated, l.Compacted = 3, 2, 4 }), 0,
			"checked", "nothing was lost or altered; 2 events duplicated, 3 reordered, 4 events removed by compaction", "2 duplicated, 3 reordered", false,
		},
		{
			"lost and more", with(func(l *measure.Ledger) { l.Lost, l.Reordered, l.Recovered = 1, 3, 5 }), 0,
			"BROKEN", "1 event lost, 3 reordered, 5 recovered", "1 lost, 3 reordered", false,
		},
		{
			"unread and more", with(func(l *measure.Ledger) { l.Unread, l.Duplicated, l.Inexact = 10, 2, 1 }), 0,
			"cannot tell", "10 of 40,000 were not found, and whether they should be there is not known, as far as checked: 1 event could not be checked individually; 2 duplicated", "10 unread, 2 duplicated", false,
		},
		{
			"blocked", with(func(l *measure.Ledger) {
				l.Unread, l.Complete, l.Blocked = 300, false, "the last stable offset of q-0 stands at 7"
			}), 0,
			"cannot tell", "300 of 40,000 were not read: the last stable offset of q-0 stands at 7", "300 unread", false,
		},
		{
			"missing", all, 13,
			"checked", "nothing that was acked was lost or altered; 13 events neither acked nor found", "13 failed", true,
		},
		{
			"an index", with(func(l *measure.Ledger) { l.Unchecked = []string{"duplicated", "reordered"} }), 0,
			"holds", "nothing was lost or altered; duplicates and order were not checked", "no failures", false,
		},
		{
			"offsets", with(func(l *measure.Ledger) { l.Unchecked = []string{"duplicated", "corrupted"} }), 0,
			"holds", "nothing was lost; duplicates and contents were not checked", "no failures", false,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := openLoop()
			r := in.Result
			r.Warmup, r.Drain = measure.Tally{}, measure.Tally{}
			r.Measurement.Counts = measure.Counts{Offered: 40_000 + tt.failed, Sent: 40_000 + tt.failed, Acked: 40_000, Failed: tt.failed}
			in.Ledger = &tt.ledger
			d := Build(in)
			label, text := "", ""
			for _, v := range d.Verdicts() {
				if v.Limit == Verify {
					label, text = v.Label, v.Texts[0]
				}
			}
			assert.Equal(t, label+": "+text, tt.label+": "+tt.text)
			assert.True(t, strings.HasSuffix(d.Headline(), tt.headline), "the headline is %q", d.Headline())
			var page strings.Builder
			assert.OK(t, d.Brief(&page, layout.Style{}))
			got := strings.Contains(page.String(), clean)
			assert.True(t, got == tt.once, "it says that each came once and in order: %v\n%s", got, page.String())
		})
	}
}

// TestUncheckedLimit: a limit on what the read-back does not show cannot be told.
func TestUncheckedLimit(t *testing.T) {
	in := openLoop()
	in.Ledger = &measure.Ledger{Acked: 40_000, Read: 40_000, Complete: true, Unchecked: []string{"duplicated", "reordered"}}
	d := Build(in)
	for text, open := range map[string]bool{"duplicated=0": true, "reordered=0": true, "lost=0": false} {
		l := assert.Value(workload.ParseLimit(text))(t)
		c := d.CheckLimits([]workload.Limit{l})[0]
		assert.True(t, c.CannotTell == open && c.OK != open, "%s: %+v", text, c)
	}
}

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

// diedMidway is a run whose system was gone from second 8 to the end.
func diedMidway() Input {
	in := openLoop()
	r := in.Result
	r.Measurement.Counts.Sent, r.Measurement.Counts.Acked, r.Measurement.Counts.Unsent = 300_000, 300_000, 700_000
	r.Measurement.Arrived, r.Measurement.ArrivedBytes = 300_000, 30_000_000
	r.Measurement.Censored = spread(7*time.Second, 0.4, 700)
	for i := range r.Intervals {
		if i >= 8 {
			iv := &r.Intervals[i]
			iv.Counts = measure.Counts{Offered: 50_000}
			iv.Response, iv.Service, iv.InFlight = nil, nil, 0
		}
	}
	r.Stall = measure.Stall{Longest: 24 * time.Second, LongestAt: 8 * time.Second, Share: 0.7}
	r.Steady = trust.Steady(r)
	return in
}

// refused is a run of which the system accepted nothing, with a late generator.
func refused() Input {
	in := openLoop()
	r := in.Result
	r.Measurement.Counts.Acked, r.Measurement.Counts.Failed, r.Measurement.Counts.Answered = 0, 1_000_000, 4000
	r.Measurement.Arrived, r.Measurement.ArrivedBytes = 0, 0
	r.Measurement.FailedService = r.Measurement.Service
	r.Measurement.Response, r.Measurement.Service = nil, nil
	r.Warmup.Acked, r.Warmup.Failed = 0, r.Warmup.Acked
	r.Failures = []measure.Failure{{Class: "denied", Text: "TOPIC_AUTHORIZATION_FAILED: Not authorized to access topics: [Topic authorization failed.]", Events: 1_100_000, Batches: 4400}}
	r.Classes = map[string]uint64{"denied": 1_100_000}
	for i := range r.Intervals {
		iv := &r.Intervals[i]
		iv.Acked, iv.Failed, iv.Response, iv.Service = 0, iv.Sent, nil, nil
	}
	r.Steady = trust.Steady(r)
	return in
}

// TestTheSystemComesFirst: if the system failed, the headline begins with that,
// and so do the verdicts, before the one on the generator.
func TestTheSystemComesFirst(t *testing.T) {
	noticed := func(in Input) Input { in.Notice = "the broker created the topic"; return in }
	for _, tt := range []struct {
		name     string
		in       Input
		sentence string
		line     string // before the verdict on trust
		code     int
	}{
		{"died midway", diedMidway(), "nothing was answered from second 8 to second 22: 15 k/s of 50 k/s acked", "not steady", host.ExitOK},
		{"refused", refused(), "the system accepted no event: 0/s of 50 k/s acked", "BROKEN        taken: the system accepted no event: 1,000,000 failed", host.ExitBroken},
		{"calm", openLoop(), "50 k/s of 50 k/s acked", "", host.ExitOK},
		{"noticed", noticed(openLoop()), "the broker created the topic: 50 k/s of 50 k/s acked", "", host.ExitOK},
		{"noticed, but refused", noticed(refused()), "the system accepted no event: 0/s of 50 k/s acked", "", host.ExitBroken},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := build(tt.in)
			got := d.Headline()
			assert.True(t, strings.HasPrefix(got, tt.sentence), "got %q, want it to begin with %q", got, tt.sentence)
			var b bytes.Buffer
			assert.OK(t, d.Text(&b, layout.Style{}))
			first, _, _ := strings.Cut(b.String(), "trusted ")
			assert.True(t, strings.Contains(first, tt.line), "%q does not come before trust:\n%.600s", tt.line, b.String())
			assert.True(t, strings.Count(b.String(), "not steady ") <= 1 && strings.Count(b.String(), "taken: ") <= 1,
				"repeated:\n%.900s", b.String())
			assert.Equal(t, d.ExitCode(), tt.code, "exit")
			assert.True(t, d.Mode == load.OpenLoop && len(d.Limits()) == 0, "limits: %+v", d.Limits())
		})
	}
}
