package acceptance

import (
	"math"
	"slices"
	"time"
)

// This file finds out what the times of a run really were, from two sides that
// share one clock: the generator's trace (when a batch was due and sent) and the
// stand-in's record (when it had the batch, and when it wrote the answer).
//
// What is true, where the stand-in answers each request by itself after a fixed
// delay and the in-flight bound is wider than anything the run reaches:
//
//   - The service time of a batch is answered - sent. What comes after the answer
//     was written is the generator's: it was not there to read it. What lies
//     between *sent* and the arrival is the generator's too as soon as it is more
//     than a transit takes, since the stand-in reads at all times: the generator
//     noted *sent* and did not run before it wrote. It is the system's where the
//     system was stopped.
//   - The response time of an event, had the generator been prompt, is the service
//     time of its batch: without linger a batch is ready when its first event is
//     due (batching is 0), and under so wide a bound nothing queues. That holds for
//     the burst after a freeze, too: each of its requests is answered after the
//     same delay, and would have been, had it been sent when it was due.
//   - Where the *system* was stopped the generator is prompt by assumption, and
//     whatever kept it from sending was the system: the response time is
//     answered - due.
//   - End to end, the system's part ends when the answer to the fetch that carries
//     the event is written. A prompt consumer asks again at once. Where the
//     generator asked later than that, an event that was waiting would have been
//     served at once or one round of fetching later: both are kept, as an interval.
//   - Without a schedule (closed loop, full speed) the generator's own lateness
//     changes what is sent, and not how long it takes: service times are judged.
//
// A write is not an instant: the other side may have the answer when the call
// begins, or when it returns. So each truth is an interval, some microseconds wide
// as a rule.

const (
	transit  = int64(100 * time.Microsecond) // from sent to arrived, when nobody is late
	lateness = int64(time.Millisecond)       // from due to sent, when nobody is late
	askGap   = int64(time.Millisecond)       // from an answer to the next fetch, when nobody is late
)

// A spread is times with how often each was; a truth is bounded by two.
type spread []struct{ ns, n int64 }

func (s *spread) add(ns, n int64) { *s = append(*s, struct{ ns, n int64 }{ns, n}) }

// percentile is the nearest rank, in microseconds.
func (s spread) percentile(p float64) float64 {
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

// A truth is what the times of a run were: each lies between least and most.
type truth struct{ least, most spread }

func (t *truth) add(least, most, n int64) {
	t.least.add(min(least, most), n)
	t.most.add(max(least, most), n)
}

// Which times of a run are judged.
const (
	ofService  = "service"
	ofResponse = "response"
	ofEndToEnd = "end_to_end"
)

// truthOf says what the times were. stopped: it was the system that stood still.
func truthOf(what string, pairs []pair, stopped bool) (t truth) {
	typical := typicalOf(what, pairs)
	for i := range pairs {
		p := &pairs[i]
		switch {
		case what == ofEndToEnd && p.fetch == nil:
		case stopped && what != ofService && p.due != never:
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

// late tells whether the generator sent a batch late. It did so with many others,
// or with more events than it would have had, and paid for that.
func (p *pair) late() bool { return p.due != never && p.sent-p.due > lateness }

// typicalOf is the median of what was not sent late.
func typicalOf(what string, pairs []pair) int64 {
	var prompt spread
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

// served is how long the system took for a batch, from when it was sent.
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

// consumable is when a prompt consumer would have had the batch.
func (p *pair) consumable(stopped bool) (least, most int64) {
	f := p.fetch
	late := p.fetchedAfter != never && f.arrived-p.fetchedAfter > askGap && f.arrived > p.by.arrived
	if stopped || !late {
		return f.writing, f.ended
	}
	// It would have asked after the answer before, or have been waiting already.
	asked := p.fetchedAfter + askGap
	serve := f.ended - f.arrived
	at := max(p.by.arrived, asked)
	return min(f.writing, at+serve-askGap), min(f.ended, at+2*serve+askGap)
}
