package run

import (
	"sync"
	"time"

	"carronade/internal/report"
	"carronade/internal/store"
	"carronade/measure"
)

// A series encodes the intervals of a run as they end, on its own goroutine, and writes each
// to the store during the run. So even a long report needs little work at its end.
//
// It merges neighbours like the engine's own series (measure.Series).
type series struct {
	form   report.Series
	writer store.Writer // nil: not stored
	// delayed means that the engine keeps back the newest row of each phase until the next one
	// comes, since the end of the run may correct it.
	delayed bool

	mu     sync.Mutex
	queue  []measure.Interval
	closed bool
	wake   chan struct{}
	done   chan struct{}

	// Only the goroutine uses these until done is closed.
	newest map[string]measure.Interval // by phase, kept back
	rows   *measure.Series
	ready  map[span]encoded
	atEnd  int // how many rows were encoded when the run was over
}

// A span identifies the interval of a row.
type span struct {
	phase      string
	start, end time.Duration
}

// An encoded is an encoded row, with its source.
type encoded struct {
	of  fingerprint
	row report.Interval
}

// A fingerprint distinguishes rows of the same span. Counters only grow, so equal counts and
// sums mean equal histograms.
type fingerprint struct {
	counts    measure.Counts
	inFlight  uint64
	behind    int64
	generator measure.Usage
	times     [8]struct {
		count uint64
		sum   float64
		max   time.Duration
	}
}

func fingerprintOf(iv *measure.Interval) fingerprint {
	m := fingerprint{counts: iv.Counts, inFlight: iv.InFlight, behind: iv.LagEvents, generator: iv.Generator}
	i := 0
	iv.Each(func(_ string, h **measure.Histogram) {
		m.times[i].count, m.times[i].sum, m.times[i].max = (*h).Count(), (*h).Sum(), (*h).Max()
		i++
	})
	return m
}

func spanOf(iv *measure.Interval) span { return span{iv.Phase, iv.Start, iv.End} }

// newSeries starts the goroutine, which ends with end. most is the engine's limit of rows.
func newSeries(form report.Series, w store.Writer, late bool, most int) *series {
	s := &series{
		form: form, writer: w, delayed: late,
		wake: make(chan struct{}, 1), done: make(chan struct{}),
		newest: make(map[string]measure.Interval), rows: measure.NewSeries(most),
		ready: make(map[span]encoded),
	}
	go s.run()
	return s
}

// add takes the rows of an interval that ended. It does not wait.
func (s *series) add(rows []measure.Interval) {
	s.mu.Lock()
	s.queue = append(s.queue, rows...)
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
			s.take(rows[i])
		}
		if closed {
			return
		}
	}
}

// take encodes a row and adds it to the series, like the engine.
func (s *series) take(row measure.Interval) {
	s.encode(&row)
	if s.delayed {
		older, ok := s.newest[row.Phase]
		s.newest[row.Phase] = row
		if !ok {
			return
		}
		row = older
	}
	before := len(s.rows.Intervals())
	s.rows.Add(row)
	rows := s.rows.Intervals()
	if j := s.rows.Joined(); j != nil {
		s.encode(j)
		before--
	}
	if len(rows) == before { // it was merged into the last row, and more may follow
		return
	}
	if n := len(rows); n > 1 {
		if e := s.ready[spanOf(&rows[n-2])]; e.of != fingerprintOf(&rows[n-2]) {
			s.encode(&rows[n-2])
		}
	}
	if len(s.ready) > len(rows)+stale {
		s.prune(rows)
	}
}

// stale is how many merged rows may be remembered before prune.
const stale = 256

// prune drops rows that were merged.
func (s *series) prune(rows []measure.Interval) {
	still := make(map[span]encoded, len(rows)+stale)
	retain := func(iv *measure.Interval) {
		if e, ok := s.ready[spanOf(iv)]; ok {
			still[spanOf(iv)] = e
		}
	}
	for i := range rows {
		retain(&rows[i])
	}
	for _, iv := range s.newest {
		retain(&iv)
	}
	s.ready = still
}

// encode encodes a row.
func (s *series) encode(iv *measure.Interval) {
	row := s.form.Interval(iv)
	e, err := row.Encode()
	if err != nil {
		return // JSON cannot encode it; encoding the report returns the error
	}
	s.ready[spanOf(iv)] = encoded{fingerprintOf(iv), row}
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
		if e, ok := s.ready[spanOf(&rows[i])]; ok && e.of == fingerprintOf(&rows[i]) {
			out[i] = e.row
			continue
		}
		s.atEnd++
		out[i] = s.form.Interval(&rows[i])
		_, _ = out[i].Encode() // it keeps the hash
	}
	s.ready, s.newest, s.rows = nil, nil, nil
	return out
}
