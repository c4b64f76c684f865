package run

import (
	"hash/maphash"
	"sync"
	"time"

	"carronade/internal/report"
	"carronade/internal/store"
	"carronade/load"
	"carronade/measure"
)

// A series encodes the rows of a run when they are complete, on its own goroutine, and writes
// each to the store during the run. So even a long report needs little work at its end.
//
// It keeps only their hashes and percentiles: the engine has the rows themselves, in a compact form, and a
// second copy of each would make up most of the memory of a long run.
type series struct {
	form   report.Series
	writer store.Writer // nil: not stored

	mu     sync.Mutex
	queue  []measure.Interval
	closed bool
	wake   chan struct{}
	done   chan struct{}

	// Only the goroutine uses these until done is closed.
	ready map[span]encoded
	seed  maphash.Seed
	atEnd int // how many rows were encoded when the run was over
}

// A span identifies the interval of a row.
type span struct {
	phase      string
	start, end time.Duration
}

// covers reports whether a row of s contains one of o.
func (s *span) covers(o *span) bool {
	return s.phase == o.phase && s.start <= o.start && o.end <= s.end
}

// An encoded is a row that was encoded.
type encoded struct {
	of   uint64 // hash of its fingerprint
	kept report.Kept
}

// A fingerprint distinguishes rows of the same span. Counters only grow, so equal counts and
// sums mean equal histograms.
type fingerprint struct {
	within    time.Duration
	arrived   uint64
	counts    measure.Counts
	inFlight  uint64
	behind    int64
	generator measure.Usage
	times     [measure.Histograms]struct {
		count uint64
		sum   float64
		max   time.Duration
	}
}

func (s *series) fingerprintOf(iv *measure.Interval) uint64 {
	m := fingerprint{within: iv.Within, arrived: iv.Arrived, counts: iv.Counts, inFlight: iv.InFlight, behind: iv.LagEvents, generator: iv.Generator}
	i := 0
	set := iv.Set // a copy, since its fields are taken by address
	set.Each(func(_ string, h **measure.Histogram) {
		m.times[i].count, m.times[i].sum, m.times[i].max = (*h).Count(), (*h).Sum(), (*h).Max()
		i++
	})
	return maphash.Comparable(s.seed, m)
}

func spanOf(iv *measure.Interval) span { return span{iv.Phase, iv.Start, iv.End} }

// newSeries starts the goroutine, which ends with end.
func newSeries(form report.Series, w store.Writer) *series {
	s := &series{
		form: form, writer: w, wake: make(chan struct{}, 1), done: make(chan struct{}),
		ready: make(map[span]encoded), seed: maphash.MakeSeed(),
	}
	go s.run()
	return s
}

// add takes the rows of an interval that ended, and those of several intervals that are
// complete with it. It does not wait.
func (s *series) add(rows, merged []measure.Interval) {
	s.mu.Lock()
	s.queue = append(append(s.queue, merged...), rows...)
	s.mu.Unlock()
	s.signal()
}

func (s *series) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *series) run() {
	defer close(s.done)
	for range s.wake {
		s.mu.Lock()
		rows, closed := s.queue, s.closed
		s.queue = nil
		s.mu.Unlock()
		for i := range rows {
			s.encode(&rows[i])
		}
		if closed {
			return
		}
	}
}

// encode encodes a row, which replaces those that it covers.
func (s *series) encode(iv *measure.Interval) {
	row := s.form.Interval(iv)
	e, err := row.Encode()
	if err != nil {
		return // JSON cannot encode it; encoding the report returns the error
	}
	of := spanOf(iv)
	for old := range s.ready {
		if of.covers(&old) {
			delete(s.ready, old)
		}
	}
	kept, _ := row.Keep() // it was encoded
	s.ready[of] = encoded{s.fingerprintOf(iv), kept}
	if s.writer != nil {
		s.writer.Interval(e)
	}
}

// end returns the rows of the series, and ends the goroutine. It encodes the one or two rows
// that the engine corrected.
func (s *series) end(rows []measure.Interval) []report.Interval {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.signal()
	<-s.done
	out := make([]report.Interval, len(rows))
	for i := range rows {
		if e, ok := s.ready[spanOf(&rows[i])]; ok && e.of == s.fingerprintOf(&rows[i]) {
			out[i] = s.form.Row(&rows[i], &e.kept)
			continue
		}
		s.atEnd++
		out[i] = s.form.Row(&rows[i], nil)
		_, _ = out[i].Encode() // it keeps the hash
	}
	s.ready = nil
	return out
}

// A mirror makes the rows that the engines of several generators make of theirs, for all
// generators together: it merges neighbours like the series of an engine (measure.Series).
type mirror struct {
	// delayed means that the engines keep back the newest row of each phase until the next one
	// comes, since the end of the run may correct it.
	delayed bool
	newest  map[string]measure.Interval // by phase, kept back
	rows    *measure.Series
}

// newMirror returns a mirror of engines of a mode.
func newMirror(mode load.Mode) *mirror {
	return &mirror{delayed: mode != load.Consuming, newest: make(map[string]measure.Interval), rows: measure.NewSeries(measure.DefaultSeries)}
}

// add takes the rows of an interval that ended, and returns those of several intervals that
// are complete with it.
func (m *mirror) add(rows []measure.Interval) (merged []measure.Interval) {
	for _, row := range rows {
		if m.delayed {
			older, ok := m.newest[row.Phase]
			m.newest[row.Phase] = row
			if !ok {
				continue
			}
			row = older
		}
		m.rows.Add(row)
		merged = append(merged, m.rows.Changed()...)
	}
	return merged
}
