package explain

import (
	"strings"
	"testing"

	"carronade/internal/report"
	"carronade/test/testkit/assert"
)

// TestFreezes: the overlap of a stall with a freeze of the generator is printed, and is not a finding. The generator is also frozen twice in each other second, so each coincidence may be chance.
func TestFreezes(t *testing.T) {
	freeze := func(at, length float64) report.Moment {
		return report.Moment{From: "generator", Name: "freeze", AtS: at, LengthS: length}
	}
	const nothing = "nothing that was watched explains"
	for _, c := range []struct {
		name      string
		stalls    []report.Span
		freezes   []report.Moment
		want, not string
	}{
		{"none at its time", []report.Span{{AtS: 11.01, LengthS: 0.254}}, []report.Moment{freeze(10.9, 0.1)}, nothing + " it: 254 ms at 11.01 s", "overlap"},
		{
			"at its beginning",
			[]report.Span{{AtS: 11.01, LengthS: 0.254}},
			[]report.Moment{freeze(11, 0.11)},
			"frozen a freeze of the generator overlaps 100 ms of its 254 ms at 11.01 s; nothing else that was watched explains it", nothing,
		},
		{
			"two, which overlap, of two machines",
			[]report.Span{{AtS: 11, LengthS: 0.3}},
			[]report.Moment{freeze(11.1, 0.05), freeze(11.05, 0.07)},
			"freezes of the generator overlap 100 ms of its 300 ms at 11 s", nothing,
		},
		{
			"of one of two stalls",
			[]report.Span{{AtS: 11.01, LengthS: 0.254}, {AtS: 47, LengthS: 0.2}},
			[]report.Moment{freeze(11.1, 0.1)},
			"frozen 1 of 2: a freeze of the generator overlaps 100 ms of its 254 ms at 11.01 s; nothing else that was watched explains it unexplained 1 of 2: 200 ms at 47 s", nothing,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := document(t)
			d.Stall.Count, d.Stall.Spans, d.Moments = uint64(len(c.stalls)), c.stalls, c.freezes
			for i := range 60 {
				if at := 5 + float64(i); at != 11 && at != 47 {
					d.Moments = append(d.Moments, freeze(at, 0.3), freeze(at+0.5, 0.3))
				}
			}
			x := Explain(d)
			if g := &x.Groups[0]; len(g.Findings) > 0 || g.Unexplained != len(c.stalls) {
				t.Errorf("got the findings %+v and %d unexplained, want none, and all", g.Findings, g.Unexplained)
			}
			if got := text(t, x); !strings.Contains(got, c.want) || strings.Contains(got, c.not) {
				t.Errorf("want %q, and no %q, in:\n%s", c.want, c.not, got)
			}
		})
	}
}

// A stall in which a client had no connection says so, before freezes that overlap a part of it.
func TestUnconnected(t *testing.T) {
	for _, c := range []struct {
		name    string
		moments []report.Moment
		want    string
	}{
		{
			"refused",
			[]report.Moment{{From: "client", Name: "no connection", AtS: 10.2, LengthS: 28.9}, {From: "client", Name: "no connection", AtS: 10.3, LengthS: 28.8}, {From: "generator", Name: "freeze", AtS: 12, LengthS: 2}},
			"unconnected a client had no connection for 28.9 s of its 29 s at 10.1 s, in which the generator was frozen for 2 s",
		},
		{
			"for a moment",
			[]report.Moment{{From: "client", Name: "no connection", AtS: 20, LengthS: 1}, {From: "generator", Name: "freeze", AtS: 12, LengthS: 2}},
			"frozen a freeze of the generator overlaps 2 s of its 29 s at 10.1 s",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := document(t)
			d.Stall.Count, d.Stall.Spans, d.Moments = 1, []report.Span{{AtS: 10.1, LengthS: 29}}, c.moments
			got := text(t, Explain(d))
			assert.True(t, strings.Contains(got, c.want), "want %q in:\n%s", c.want, got)
		})
	}
}
