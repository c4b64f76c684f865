package run

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"carronade/internal/report"
	"carronade/load"
)

// mostSamples limits the single events that a round trip keeps: a picture of them has no room for more, and they
// are a good part of a short report.
const mostSamples = 2048

// samples keeps events of a round trip with their end-to-end times: of every `every`
// consecutive ones that came back, one at random. When it is full, every doubles and one of
// each two neighbours remains, so the sample is uniform at all times. Safe for concurrent use.
type samples struct {
	due      func(stream int32, index uint64) time.Duration // nil: nothing schedules the run
	cameBack func(endToEnd time.Duration)                   // called with each; may be nil

	mu    sync.Mutex
	dice  *rand.Rand
	of    uint64 // events so far
	every uint64
	next  uint64 // the next one to keep
	kept  []sample
}

// A sample is an event that came back.
type sample struct {
	stream    int32
	index     uint64
	offset    int64 // -1: unknown
	start, at time.Duration
}

func newSamples(seed uint64, due func(stream int32, index uint64) time.Duration) *samples {
	return &samples{due: due, every: 1, dice: rand.New(rand.NewPCG(seed, 0))} //nolint:gosec // which events are kept need not be secret
}

// add samples from events of a batch, all or a part, that were consumed at a time.
func (s *samples) add(o *load.Outcome, at time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cameBack != nil {
		for k := range uint64(o.Events) {
			s.cameBack(at - s.start(o, k))
		}
	}
	first := s.of
	s.of += uint64(o.Events)
	for s.next < s.of {
		k := s.next - first
		kept := sample{stream: o.Stream, index: o.First + k, offset: -1, start: s.start(o, k), at: at}
		if o.Place >= 0 {
			kept.offset = o.Place + int64(k)
		}
		s.kept = append(s.kept, kept)
		if len(s.kept) == mostSamples {
			s.halve()
		}
		// The next one is in the following group of events.
		s.next = uint64(len(s.kept))*s.every + s.dice.Uint64N(s.every)
	}
}

// start is when event k of a batch was due, or sent.
func (s *samples) start(o *load.Outcome, k uint64) time.Duration {
	switch {
	case o.DueFirst < 0:
		return o.SentFirst()
	case o.DueFirst == o.DueLast || s.due == nil:
		return o.DueFirst
	}
	return s.due(o.Stream, o.First+k)
}

func (s *samples) halve() {
	for i := range len(s.kept) / 2 {
		s.kept[i] = s.kept[2*i+s.dice.IntN(2)]
	}
	s.kept = s.kept[:len(s.kept)/2]
	s.every *= 2
}

// report are the samples in order of their start; nil when nothing came back.
func (s *samples) report(logs []string, logOf func(stream int32) int32) *report.Samples {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == 0 {
		return nil
	}
	slices.SortStableFunc(s.kept, func(a, b sample) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.stream, b.stream), cmp.Compare(a.index, b.index))
	})
	out := &report.Samples{Of: s.of, Every: s.every}
	for _, k := range s.kept {
		item := fmt.Sprintf("stream-%d/%d", k.stream, k.index)
		if log := int(logOf(k.stream)); k.offset >= 0 && log < len(logs) {
			item = fmt.Sprintf("%s/%d", logs[log], k.offset)
		}
		out.EndToEnd = append(out.EndToEnd, report.Sample{
			Item: item, StartUS: float64(k.start.Round(time.Microsecond)) / 1e3, EndToEndUS: float64((k.at - k.start).Round(time.Microsecond)) / 1e3,
		})
	}
	return out
}
