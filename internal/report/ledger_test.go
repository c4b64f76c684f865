package report

import (
	"strings"
	"testing"

	"carronade/internal/layout"
	"carronade/internal/workload"
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
