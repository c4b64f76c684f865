package explain

import (
	"fmt"
	"strings"

	"carronade/internal/report"
	"carronade/measure"
	"carronade/units"
)

// A Diagnosis says where documents that are missing in the store behind the system went.
type Diagnosis struct {
	Share float64 `json:"share"` // of the accepted events that were found
	// Verdict is rejections, queue, link, or cannot tell.
	Verdict string `json:"verdict"`
	Text    string `json:"text"`
}

// The verdicts.
const (
	Rejections = "rejections"
	Queue      = "queue"
	Link       = "link"
	CannotTell = "cannot tell"
)

// mostOf is the share of the missing documents that one reason must cover to be named.
const mostOf = 0.5

// indexing explains a share of indexed documents below measure.LowShare, by the counters that the
// server has of its output; nil if there is nothing to explain.
func indexing(d *report.Document) *Diagnosis {
	x := d.Indexed
	if x == nil || x.Share == nil || *x.Share >= measure.LowShare {
		return nil
	}
	missing := float64(x.Expected) - float64(x.Docs)
	out := &Diagnosis{Share: *x.Share}
	say := func(verdict, format string, args ...any) *Diagnosis {
		out.Verdict, out.Text = verdict, fmt.Sprintf(format, args...)
		return out
	}
	count := func(x float64) string { return units.FormatCount(uint64(max(0, x))) }
	failed, knowsFailed := d.OutputFailed()
	full, _ := d.Rise("queue was full", "apm-server.processor.stream.errors.queue")
	acked, knowsAcked := d.Rise("output acked", "libbeat.output.events.acked")
	queued, knowsQueued := 0.0, x.Queued != nil
	if knowsQueued {
		queued = *x.Queued
	} else if g := d.ServerGauge("pipeline active", "libbeat.pipeline.events.active"); g != nil && g.After != nil {
		queued, knowsQueued = *g.After, true
	}
	switch {
	case knowsFailed && failed >= mostOf*missing:
		return say(Rejections, "the store rejected %s of the server's events, of %s documents that are missing", count(failed), count(missing))
	case queued >= mostOf*missing:
		return say(Queue, "%s events were still queued in the server, of %s documents that are missing: it sends more slowly than it accepts", count(queued), count(missing))
	case full >= mostOf*missing:
		return say(Queue, "the server's queue was full for %s events, of %s documents that are missing", count(full), count(missing))
	case knowsAcked && acked >= measure.LowShare*float64(x.Expected):
		return say(CannotTell, "the store acknowledged %s events to the server: they may be in indices that %s does not match, or were deleted", count(acked), x.Pattern)
	case knowsAcked && knowsFailed && float64(x.Expected)-acked >= mostOf*missing && busy(d):
		return say(Link, "the store acknowledged %s of %s events, rejected %s, and requests to it were pending throughout: the link, or the store, is too slow", count(acked), count(float64(x.Expected)), count(failed))
	}
	var not []string
	for _, m := range []struct {
		known bool
		name  string
	}{{knowsFailed, "rejections"}, {knowsAcked, "acknowledgements"}, {knowsQueued, "events queued"}} {
		if !m.known {
			not = append(not, m.name)
		}
	}
	if len(not) > 0 {
		return say(CannotTell, "the server's metrics do not have %s: start it with apm-server.expvar.enabled, or give --system-vars URL", strings.Join(not, ", "))
	}
	return say(CannotTell, "the server's metrics show neither rejections (%s) nor a queue (%s) that would explain %s missing documents", count(failed), count(queued), count(missing))
}

// busy reports whether the server's output had requests pending in most of the measurement.
func busy(d *report.Document) bool {
	for _, g := range []*report.Gauge{d.ServerGauge("output active", "libbeat.output.events.active"), d.ServerGauge("pipeline active", "libbeat.pipeline.events.active")} {
		if g == nil || len(g.Points) == 0 {
			continue
		}
		n := 0
		for _, p := range g.Points {
			if p.Value > 0 {
				n++
			}
		}
		if 2*n > len(g.Points) {
			return true
		}
	}
	return false
}
