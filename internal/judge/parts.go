package judge

import (
	"fmt"
	"math"
	"strings"

	"carronade/internal/layout"
	"carronade/internal/store"
	"carronade/internal/verdict/stats"
)

// responseParts are the parts of a response time, in the order in which an event passes them.
var responseParts = []string{"batching", "queueing", "send_delay", "service"}

const (
	responseTime = "response"
	restOfParts  = "rest"
	// leastRest is the smallest rest that the text shows, and leastSplit how much the response
	// times must differ so that it shows parts: shares of the response time.
	leastRest, leastSplit = 0.005, 0.1
)

// A Part is how much of the response time of each side is one of batching, queueing, send_delay
// and service; the rest; or the response time itself. Means are those of all runs of a side, and
// those of the parts and the rest add up to that of the response time. Percentiles are medians of
// the runs, and do not add up. Null: the side does not have it.
type Part struct {
	Time          string   `json:"time"`
	BaseMean      *float64 `json:"base_mean_s"`
	CandidateMean *float64 `json:"candidate_mean_s"`
	BaseP99       *float64 `json:"base_p99_s"`
	CandidateP99  *float64 `json:"candidate_p99_s"`
}

// partFields are the fields of rows that parts reads.
func partFields() (out []string) {
	for _, t := range append([]string{responseTime}, responseParts...) {
		out = append(out, t+"_mean", timeField(t, "p99"))
	}
	return out
}

// parts divides the response times of both sides; nil if neither has one.
func parts(base, candidate []store.Row) []Part {
	of := func(t string) Part {
		return Part{
			Time: t, BaseMean: meanOf(base, t+"_mean"), CandidateMean: meanOf(candidate, t+"_mean"),
			BaseP99: medianOf(base, timeField(t, "p99")), CandidateP99: medianOf(candidate, timeField(t, "p99")),
		}
	}
	whole := of(responseTime)
	if whole.BaseMean == nil && whole.CandidateMean == nil {
		return nil
	}
	var out []Part
	var sum [2]float64
	for _, t := range responseParts {
		p := of(t)
		for i, m := range []*float64{p.BaseMean, p.CandidateMean} {
			if m != nil {
				sum[i] += *m
			}
		}
		out = append(out, p)
	}
	rest := Part{Time: restOfParts}
	if whole.BaseMean != nil {
		x := *whole.BaseMean - sum[0]
		rest.BaseMean = &x
	}
	if whole.CandidateMean != nil {
		x := *whole.CandidateMean - sum[1]
		rest.CandidateMean = &x
	}
	return append(out, rest, whole)
}

// meanOf is the mean of a field; nil unless every row has it, since means of different runs would
// not add up.
func meanOf(rows []store.Row, field string) *float64 {
	x := sample(rows, field)
	if len(x) == 0 || len(x) != len(rows) {
		return nil
	}
	sum := 0.0
	for _, v := range x {
		sum += v / float64(len(x))
	}
	return &sum
}

func medianOf(rows []store.Row, field string) *float64 {
	x := sample(rows, field)
	if len(x) == 0 {
		return nil
	}
	return finite(stats.Median(x, stats.Confidence).Median)
}

// partsText writes the parts if the response times differ, or if only one side has one.
func (pr *Pair) partsText(p *layout.Page) {
	n := len(pr.Parts)
	if n == 0 {
		return
	}
	whole, rest := pr.Parts[n-1], pr.Parts[n-2]
	a, b := whole.BaseMean, whole.CandidateMean
	if a != nil && b != nil && math.Abs(*a-*b) < leastSplit*min(*a, *b) {
		return
	}
	g := &layout.Table{Headings: 1}
	g.Row("of the response", "base mean", "candidate mean", "base p99", "candidate p99")
	for i := range pr.Parts {
		t := &pr.Parts[i]
		if t.Time == restOfParts && !t.matters(&whole) {
			continue
		}
		g.Row(strings.ReplaceAll(t.Time, "_", " "), signedDuration(t.BaseMean), signedDuration(t.CandidateMean), duration(t.BaseP99, ""), duration(t.CandidateP99, ""))
	}
	p.Line("")
	p.Table(g)
	note := "Means add up to the response time; percentiles do not."
	if rest.matters(&whole) {
		note = "Means add up to the response time; percentiles do not. The rest is there because queueing and service count batches, and the response time counts acked events."
	}
	for _, s := range []struct {
		name string
		mean *float64
	}{{"base", a}, {"candidate", b}} {
		if s.mean == nil {
			note += fmt.Sprintf(" The %s has no response time, so it cannot be divided: nothing was due, or its tool reported only the time from sending.", s.name)
		}
	}
	p.Note(note)
}

// matters reports whether the rest is worth a row.
func (t *Part) matters(whole *Part) bool {
	large := func(rest, of *float64) bool {
		return rest != nil && of != nil && math.Abs(*rest) >= leastRest**of
	}
	return large(t.BaseMean, whole.BaseMean) || large(t.CandidateMean, whole.CandidateMean)
}

// signedDuration formats a duration that may be negative.
func signedDuration(s *float64) string {
	if s != nil && *s < 0 {
		x := -*s
		return "-" + duration(&x, "")
	}
	return duration(s, "")
}
