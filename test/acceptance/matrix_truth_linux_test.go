//go:build conformance

package acceptance

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"carronade/test/testkit/assert"
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

// percentile is the nearest rank, in microseconds.
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

// This file tests the parts of the matrix that decide.

const ms = int64(time.Millisecond)

// row makes a batch of one event that was sent, arrived 0.05 ms later and was
// answered after 5 ms, all in milliseconds.
func row(k int64, due, sent, answered, done int64) (batch, served) {
	b := batch{sequence: k, partition: -1, offset: -1, events: 1, due: due * ms, dueLast: due * ms, sent: sent * ms, done: done * ms, consumed: noTime}
	return b, served{connection: "a", kind: "message", partition: -1, offset: -1, events: 1, arrived: sent*ms + 50_000, writing: answered*ms - 10_000, ended: answered * ms}
}

// The truth excludes delays by the generator and includes those by the system.
func TestTruth(t *testing.T) {
	for _, tt := range []struct {
		name                      string
		due, sent, answered, done int64 // of one of ten batches; the others take 5 ms
		what                      string
		stopped                   bool
		least, most               float64 // of its max, in us
	}{
		{"prompt", 100, 100, 105, 105, ofResponse, false, 4990, 5000},
		{"answers read late", 100, 100, 105, 605, ofResponse, false, 4990, 5000},
		{"sent late", 100, 600, 605, 605, ofResponse, false, 4990, 5000},
		{"sent late, and in a burst that took longer", 100, 600, 609, 609, ofResponse, false, 5000, 9000},
		{"answered late", 100, 100, 605, 605, ofResponse, false, 504_990, 505_000},
		{"a stopped system that read nothing", 100, 600, 605, 605, ofResponse, true, 504_990, 505_000},
		{"service, answers read late", 100, 100, 105, 605, ofService, false, 4990, 5000},
		{"service, answered late", 100, 100, 605, 605, ofService, true, 504_990, 505_000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var batches []batch
			var record []served
			for k := range int64(10) {
				b, s := row(k, k, k, k+5, k+5)
				if k == 9 {
					b, s = row(k, tt.due, tt.sent, tt.answered, tt.done)
				}
				batches, record = append(batches, b), append(record, s)
			}
			pairs, err := join(batches, record)
			if err == nil {
				err = causal(pairs)
			}
			assert.OK(t, err)
			got := truthOf(tt.what, pairs, tt.stopped)
			if least, most := got.least.percentile(100), got.most.percentile(100); least != tt.least || most != tt.most {
				t.Errorf("the longest took %v to %v us, want %v to %v", least, most, tt.least, tt.most)
			}
		})
	}
}

// TestTruthEndToEnd: the delay of a late fetch is the generator's.
func TestTruthEndToEnd(t *testing.T) {
	for _, tt := range []struct {
		name        string
		asked       int64 // when the fetch arrived that returned the second event, in ms; it was answered 5 ms later
		least, most int64 // ms
	}{
		{"waiting", 15, 5, 16},  // it is answered when the event has arrived
		{"late", 515, 4, 2 * 6}, // delivered at once, or after the fetch in progress
	} {
		t.Run(tt.name, func(t *testing.T) {
			var record []served
			fetch := func(offset, asked, answered int64) {
				record = append(record, served{connection: "c", kind: "fetch", partition: 0, offset: offset, events: 1, arrived: asked * ms, writing: answered * ms, ended: answered * ms})
			}
			var batches []batch
			for k, sent := range []int64{0, 100} {
				b, s := row(int64(k), sent, sent, sent+5, sent+5)
				b.partition, b.offset, b.consumed = 0, int64(k), (sent+600)*ms
				s.kind, s.partition, s.offset = "produce", 0, int64(k)
				batches, record = append(batches, b), append(record, s)
			}
			fetch(0, 0, 14)
			fetch(1, tt.asked, max(tt.asked, 100)+5)
			pairs := assert.Value(join(batches, record))(t)
			got := truthOf(ofEndToEnd, pairs[1:], false)
			least, most := got.least.percentile(100)/1e3, got.most.percentile(100)/1e3
			assert.True(t, least >= float64(tt.least)-0.1 && most <= float64(tt.most)+0.1,
				"it took %v to %v ms, want %v to %v", least, most, tt.least, tt.most)
		})
	}
}

// TestJoin: rows that do not fit are not paired.
func TestJoin(t *testing.T) {
	b, s := row(0, 0, 0, 5, 5)
	for _, tt := range []struct {
		name   string
		record []served
		want   string
	}{
		{"nothing", nil, "no connection"},
		{"another clock", []served{{connection: "a", events: 1, arrived: s.arrived - ms, writing: s.writing, ended: s.ended}}, "no connection"},
		{"answered after it was done", []served{{connection: "a", events: 1, arrived: s.arrived, writing: 7 * ms, ended: 7 * ms}}, "no connection"},
		{"never answered", []served{{connection: "a", events: 1, arrived: s.arrived, writing: noTime, ended: noTime}}, "no connection"},
		{"one of two", []served{{connection: "b", events: 1, arrived: 50 * ms, writing: 55 * ms, ended: 55 * ms}, s}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pairs, err := join([]batch{b}, tt.record)
			if tt.want != "" {
				assert.ErrorHas(t, err, tt.want)
				return
			}
			assert.True(t, err == nil && pairs[0].by == s, "got %+v and %v", pairs, err)
		})
	}
	b.partition, b.offset = 0, 7
	_, err := join([]batch{b}, []served{s})
	assert.True(t, err != nil, "a batch whose offset is not in the record has a pair")
	assert.True(t, causal([]pair{{batch: b, by: served{arrived: b.sent - ms, writing: b.done, ended: b.done}}}) != nil,
		"got no error for a batch that arrives before it is sent")
}

// A matrix that was killed continues with the findings of the same build.
func TestFindings(t *testing.T) {
	path := filepath.Join(t.TempDir(), "matrix.jsonl")
	fs := openFindings(t, path)
	fs.add(t, finding{Cell: "a / x / stopped", Level: trusted, Breaches: []string{"wrong"}})
	fs.add(t, finding{Cell: "b / x / stopped", Level: notTrusted})
	old := fmt.Sprintf("{\"cell\":\"c / x / stopped\",\"build\":\"another\",\"level\":%q}\n{\"cell\":\"d / x / sto", trusted)
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(old)
		f.Close()
	}
	assert.OK(t, err)
	again := openFindings(t, path)
	assert.True(t, len(again.all) == 2 && len(again.all["a / x / stopped"].Breaches) == 1, "got %+v", again.all)
	var table strings.Builder
	again.table(&table)
	assert.True(t, strings.Contains(strings.Join(strings.Fields(table.String()), " "), "stopped 2 1 0 1 0 1 all 2 1 0 1 0 1"),
		"the table is\n%s", table.String())
	again.close(t)
	left := openFindings(t, path)
	assert.True(t, len(left.all) == 0, "a new matrix begins with %+v", left.all)
}

// TestCells: the matrix has all loads and enough cells.
func TestCells(t *testing.T) {
	all := cells()
	names := map[string]bool{}
	loads := map[string]int{}
	for i := range all {
		names[all[i].name()] = true
		loads[all[i].load]++
	}
	assert.True(t, len(all) >= 300 && len(names) == len(all) && loads[closedLoop] != 0 && loads[fullSpeed] != 0 &&
		loads[roundTrip] != 0, "%d cells of %d names: %v", len(all), len(names), loads)
	few := sampleCells(all, 10)
	assert.True(t, len(few) == 10, "the sample has %d cells, want 10", len(few))
}
