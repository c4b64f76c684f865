//go:build conformance

package acceptance

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// This file computes the true times of a run from two sources that share one clock:
// the generator's trace (when a batch was due and sent) and the stand-in's record
// (when it had received the batch, and when it wrote the answer).
//
// The truth, if the stand-in answers each request independently after a fixed delay
// and the run never reaches the in-flight bound:
//
//   - The service time of a batch is answered - sent. Time after the answer was
//     written is the generator's: it did not run to read it. Time between *sent* and
//     the arrival is the generator's too, if it exceeds a normal transit, because
//     the stand-in always reads: the generator noted *sent* and then did not run
//     before it wrote. If the system was stopped, it is the system's.
//   - The response time of an event, had the generator been prompt, is the service
//     time of its batch: without linger a batch is ready when its first event is
//     due (batching is 0), and with such a wide bound nothing queues. This is also
//     true for the burst after a freeze: each of its requests is answered after the
//     same delay, and would have been if it had been sent when it was due.
//   - If the *system* was stopped, the generator is assumed to be prompt, and only
//     the system kept it from sending: the response time is answered - due.
//   - End to end, the system's part ends when the answer to the fetch that contains
//     the event is written. A prompt consumer fetches again at once. If the
//     generator fetched later, an event that was waiting would have been delivered
//     at once or one fetch later: both are kept, as an interval.
//   - Without a schedule (closed loop, full speed), a late generator changes what is
//     sent, but not how long it takes: service times are checked.
//
// A write is not an instant: the other side may have the answer when the call begins
// or when it returns. So each truth is an interval, usually some microseconds wide.

const (
	transit  = int64(100 * time.Microsecond) // at most, from sent to arrived, if neither side is late
	lateness = int64(time.Millisecond)       // at most, from due to sent, if the generator is not late
	askGap   = int64(time.Millisecond)       // at most, from an answer to the next fetch, if the consumer is not late
)

// A distribution is times with their counts; a truth is bounded by two.
type distribution []struct{ ns, n int64 }

func (s *distribution) add(ns, n int64) { *s = append(*s, struct{ ns, n int64 }{ns, n}) }

func (s distribution) percentile(p float64) float64 {
	slices.SortFunc(s, func(a, b struct{ ns, n int64 }) int { return int(a.ns - b.ns) })
	total := int64(0)
	for _, x := range s {
		total += x.n
	}
	rank := int64(math.Ceil(p / 100 * float64(total)))
	for _, x := range s {
		if rank -= x.n; rank <= 0 {
			return float64(x.ns) / 1e3
		}
	}
	return math.NaN()
}

// A truth is the true times of a run: each is between least and most.
type truth struct{ least, most distribution }

func (t *truth) add(least, most, n int64) {
	t.least.add(min(least, most), n)
	t.most.add(max(least, most), n)
}

// Which times of a run are checked.
const (
	ofService  = "service"
	ofResponse = "response"
	ofEndToEnd = "end_to_end"
)

// truthOf computes the true times. stopped: the system was stopped.
func truthOf(what string, pairs []pair, stopped bool) (t truth) {
	typical := typicalOf(what, pairs)
	for i := range pairs {
		p := &pairs[i]
		switch {
		case what == ofEndToEnd && p.fetch == nil:
		case stopped && what != ofService && p.due != noTime:
			least, most := p.by.writing, p.by.ended
			if what == ofEndToEnd {
				least, most = p.fetch.writing, p.fetch.ended
			}
			for k := range p.events {
				t.add(least-p.dueOf(k), most-p.dueOf(k), 1)
			}
		default:
			least, most := p.served(what, stopped)
			if p.late() {
				least = min(least, typical)
			}
			n := p.events
			if what == ofService {
				n = 1
			}
			t.add(least, most, n)
		}
	}
	return t
}

// late reports whether the generator sent a batch late. Such a batch was sent with
// many others or contains more events than it otherwise would, and took longer.
func (p *pair) late() bool { return p.due != noTime && p.sent-p.due > lateness }

// typicalOf is the median time of the batches that were not sent late.
func typicalOf(what string, pairs []pair) int64 {
	var prompt distribution
	for i := range pairs {
		if p := &pairs[i]; !p.late() && (what != ofEndToEnd || p.fetch != nil) {
			_, most := p.served(what, false)
			prompt.add(most, 1)
		}
	}
	if len(prompt) == 0 {
		return math.MaxInt64
	}
	return int64(prompt.percentile(50) * 1e3)
}

// served is how long the system took for a batch after it was sent.
func (p *pair) served(what string, stopped bool) (least, most int64) {
	since := max(p.sent, p.by.arrived-transit)
	if stopped {
		since = p.sent
	}
	if what == ofEndToEnd {
		least, most = p.consumable(stopped)
		return least - since, most - p.sent
	}
	return p.by.writing - since, p.by.ended - p.sent
}

// dueOf is when the k-th event was due, at a constant rate.
func (p *pair) dueOf(k int64) int64 {
	if p.events < 2 {
		return p.due
	}
	return p.due + (p.dueLast-p.due)*k/(p.events-1)
}

// consumable is when a prompt consumer would have received the batch.
func (p *pair) consumable(stopped bool) (least, most int64) {
	f := p.fetch
	late := p.fetchedAfter != noTime && f.arrived-p.fetchedAfter > askGap && f.arrived > p.by.arrived
	if stopped || !late {
		return f.writing, f.ended
	}
	// It would have fetched after the previous answer, or already be waiting.
	asked := p.fetchedAfter + askGap
	serve := f.ended - f.arrived
	at := max(p.by.arrived, asked)
	return min(f.writing, at+serve-askGap), min(f.ended, at+2*serve+askGap)
}

// The levels of trust.
const (
	trusted    = "trusted"
	noisy      = "noisy"
	notTrusted = "not trusted"
)

// A statement is what a report says about the times that are checked.
type statement struct {
	level           string
	reasons, doubts []string
	lower           map[string]float64 // percentiles, in microseconds
	upper           map[string]float64
	dropped         uint64 // rows missing from the trace
}

var percentiles = []struct {
	name string
	p    float64
}{{"p50_us", 50}, {"p90_us", 90}, {"p95_us", 95}, {"p99_us", 99}}

// readTrust reads a report's level of trust. A report without levels is trusted or not trusted.
func readTrust(report string) (s statement, err error) {
	var d struct {
		Trust struct {
			OK              bool
			Level           string
			Reasons, Doubts []string
		}
		Trace struct {
			Dropped uint64
			Error   string
		}
	}
	if err := json.Unmarshal([]byte(report), &d); err != nil {
		return s, fmt.Errorf("the report: %w", err)
	}
	if d.Trace.Error != "" {
		return s, fmt.Errorf("the trace: %s", d.Trace.Error)
	}
	s.reasons, s.doubts, s.dropped = d.Trust.Reasons, d.Trust.Doubts, d.Trace.Dropped
	switch s.level = d.Trust.Level; s.level {
	case "":
		if s.level = notTrusted; d.Trust.OK {
			s.level = trusted
		}
	case trusted, noisy, notTrusted:
		if d.Trust.OK != (s.level != notTrusted) {
			return s, fmt.Errorf("the report's level is %s, and its trust.ok is %v", s.level, d.Trust.OK)
		}
	default:
		return s, fmt.Errorf("the report's level is %q", s.level)
	}
	return s, nil
}

// readStatement reads a report's level and its times of one kind. Without lower values, the values are used for both bounds.
func readStatement(report, what string) (statement, error) {
	s, err := readTrust(report)
	if err != nil {
		return s, err
	}
	var top, totals map[string]json.RawMessage
	if err := json.Unmarshal([]byte(report), &top); err != nil {
		return s, fmt.Errorf("the report: %w", err)
	}
	if err := json.Unmarshal(top["totals"], &totals); err != nil {
		return s, fmt.Errorf("the report's totals: %w", err)
	}
	times := func(names ...string) (map[string]float64, error) {
		for _, name := range names {
			for _, in := range []map[string]json.RawMessage{totals, top} {
				if text, ok := in[name]; ok && string(text) != "null" {
					var all map[string]any
					if err := json.Unmarshal(text, &all); err != nil {
						return nil, fmt.Errorf("the report's %s: %w", name, err)
					}
					out := map[string]float64{}
					for _, q := range percentiles {
						v, ok := all[q.name].(float64)
						if !ok {
							return nil, fmt.Errorf("the report's %s has no %s: %s", name, q.name, text)
						}
						out[q.name] = v
					}
					return out, nil
				}
			}
		}
		return nil, nil
	}
	if s.upper, err = times(what+"_us", what); err != nil {
		return s, err
	}
	if s.upper == nil {
		return s, fmt.Errorf("the report has no %s", what)
	}
	if s.lower, err = times(what+"_lower_us", what+"_lower"); s.lower == nil {
		s.lower = s.upper
	}
	return s, err
}

// breaches says where a report breaks its promise: percentiles that are wrong although the report does not say so.
//
// Not trusted promises nothing. Noisy promises that the truth is between the lower and the upper value; 2 % and 0.1 ms
// allow for the buckets of histograms and for the transit to the other process. Trusted promises the value, within a
// tenth or 0.2 ms.
func breaches(s statement, t truth) (out []string) {
	for _, q := range percentiles {
		least, most := t.least.percentile(q.p), t.most.percentile(q.p)
		lower, upper := s.lower[q.name], s.upper[q.name]
		ok := true
		switch s.level {
		case noisy:
			ok = most >= lower*0.98-100 && least <= upper*1.02+100
		case trusted:
			ok = upper <= most+max(most*0.1, 200) && upper >= least-max(least*0.1, 200)
		}
		if !ok {
			out = append(out, fmt.Sprintf("%s, %s: reported are %.3f to %.3f ms, the truth is %.3f to %.3f ms",
				s.level, strings.TrimSuffix(q.name, "_us"), lower/1e3, upper/1e3, least/1e3, most/1e3))
		}
	}
	return out
}
