//go:build conformance

package acceptance

import (
	"math"
	"slices"
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
