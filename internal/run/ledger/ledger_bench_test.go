package ledger

import (
	"fmt"
	"testing"

	"carronade/load"
)

// A stream generates outcomes and arrivals of a run in which all is well: streams
// alternate between the logs, and reading lags behind the answers.
type stream struct {
	logs, events     int32
	stamped, trouble bool
	out              []load.Outcome
	in               []load.Arrival
	stamps           []load.Stamp
	fired, read      uint64 // batches
}

func newStream(logs, events int32, stamped bool) *stream {
	const slice = 64
	s := &stream{logs: logs, events: events, stamped: stamped, out: make([]load.Outcome, slice), in: make([]load.Arrival, slice)}
	if stamped {
		s.stamps = make([]load.Stamp, slice*int(events))
	}
	return s
}

func (s *stream) sum(batch uint64) uint32 { return uint32(mix(batch)) | 1 }

// place returns the offset of a batch whose first event has the given index.
func (s *stream) place(first uint64) int64 {
	if s.trouble {
		return int64(1 + first + first/(100*uint64(s.events)))
	}
	return int64(first)
}

// fire fills out with the next outcomes.
func (s *stream) fire() []load.Outcome {
	for i := range s.out {
		o := &s.out[i]
		stream := int32(s.fired % uint64(s.logs))
		first := s.fired / uint64(s.logs) * uint64(s.events)
		o.Stream, o.First, o.Events, o.Acked = stream, first, s.events, s.events
		o.Place, o.Sum = s.place(first), s.sum(s.fired)
		s.fired++
	}
	return s.out
}

// arrive fills in with the next arrivals, in the order of a fetch: a run for each log.
func (s *stream) arrive() []load.Arrival {
	for i := range s.in {
		a := &s.in[i]
		run := uint64(16)
		block, at := s.read/(run*uint64(s.logs)), s.read%(run*uint64(s.logs))
		log := at / run
		batch := (block*run+at%run)*uint64(s.logs) + log
		first := batch / uint64(s.logs) * uint64(s.events)
		a.Log, a.Base, a.Events, a.Sum = int32(log), s.place(first), s.events, s.sum(batch)
		if s.stamped {
			a.Stamps = s.stamps[i*int(s.events):][:s.events]
			for k := range a.Stamps {
				a.Stamps[k] = load.Stamp{Run: thisRun, Stream: int32(log), Index: first + uint64(k), Offset: int64(first) + int64(k)}
			}
		}
		s.read++
	}
	return s.in
}

func (s *stream) ledger() *Ledger {
	return New(Config{Logs: int(s.logs), LogOf: func(stream int32) int32 { return stream }, RunID: thisRun, Stamped: s.stamped})
}

// BenchmarkLedger reports events/s through both sides, on one goroutine.
func BenchmarkLedger(b *testing.B) {
	for _, c := range []struct {
		name    string
		events  int32
		stamped bool
		behind  uint64 // lag of reading, in batches
		trouble bool   // a piece lost at the start, and a hole after every hundredth
	}{
		{"batches", 2400, false, 1 << 10, false},
		{"batches, far behind", 2400, false, 1 << 17, false},
		{"one-event batches", 1, false, 1 << 13, false},
		{"one-event batches, far behind", 1, false, 1 << 20, false},
		{"batches, losses and holes", 2400, false, 1 << 10, true},
		{"one-event batches, losses and holes", 1, false, 1 << 13, true},
		{"stamped batches", 2400, true, 1 << 10, false},
		{"stamped one-event batches", 1, true, 1 << 13, false},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := newStream(4, c.events, c.stamped)
			l := s.ledger()
			if s.trouble = c.trouble; c.trouble {
				l.Fired([]load.Outcome{{Batch: load.Batch{First: 1 << 50, Events: 1}, Acked: 1, Place: 0, Sum: 1}})
			}
			for s.fired < c.behind {
				l.Fired(s.fire())
			}
			start := s.fired
			b.ReportAllocs()
			for b.Loop() {
				l.Fired(s.fire())
				l.Arrived(s.arrive())
			}
			b.StopTimer()
			b.ReportMetric(float64(s.fired-start)*float64(c.events)/b.Elapsed().Seconds(), "events/s")
			b.ReportMetric(float64(l.Bytes())/(1<<20), "MiB")
			if v := l.Verdict(nil, nil); (v.Lost > 0) != c.trouble || v.Duplicated+v.Reordered+v.Corrupted+v.Foreign > 0 {
				b.Fatalf("%+v", totals(v))
			}
		})
	}
}

// BenchmarkReadAfterwards reads only after everything was sent: acked pieces wait, and what does not fit is reduced to sums.
func BenchmarkReadAfterwards(b *testing.B) {
	for _, c := range []struct{ batches, events int }{{900_000, 2400}, {60_000_000, 1}} {
		b.Run(fmt.Sprintf("%d batches of %d", c.batches, c.events), func(b *testing.B) {
			for b.Loop() {
				s := newStream(4, int32(c.events), false)
				l := s.ledger()
				for s.fired < uint64(c.batches) {
					l.Fired(s.fire())
				}
				most := l.Bytes()
				for s.read < s.fired {
					l.Arrived(s.arrive())
				}
				v := l.Verdict(whole(l, true), nil)
				if v.Lost+v.Duplicated+v.Reordered+v.Corrupted+v.Foreign+v.Inexact > 0 || v.Read != v.Acked {
					b.Fatalf("%+v", totals(v))
				}
				b.ReportMetric(float64(most)/(1<<20), "MiB")
			}
			b.ReportMetric(float64(c.batches)*float64(c.events)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
}
