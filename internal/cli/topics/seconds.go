package topics

import (
	"slices"
	"time"

	"carronade/internal/kafka/cluster"
	"carronade/load"
	"carronade/measure"
)

// seconds are the intervals of a running load. Two of them are open, since answers may be
// reported slightly late. Older ones are in a series, so that an endless load needs no more
// memory than one of an hour. What comes even later counts in the oldest open interval.
type seconds struct {
	see       func(cluster.TopicDone) // nil: not called
	each      uint64                  // operations in a request
	scheduled bool
	series    *measure.Series
	open      [2]measure.Interval // the older one first
	next      int                 // the second after the newer open one
	total     measure.Set

	response, service load.LowerBound

	// State of the request whose operations are being reported.
	acked, failed bool
	classes       []string
}

func newSeconds(w *cluster.TopicLoad) *seconds {
	s := &seconds{
		see: w.Each, each: uint64(max(1, w.PerRequest)), scheduled: w.Rate > 0, series: measure.NewSeries(measure.DefaultSeries),
		total: measure.Set{Service: measure.NewHistogram()},
	}
	for i := range s.open {
		s.open[i] = second(i, measure.Set{})
	}
	s.next = len(s.open)
	return s
}

// second returns an empty interval with empty histograms.
func second(i int, set measure.Set) measure.Interval {
	start := time.Duration(i) * time.Second
	return measure.Interval{Phase: measure.Measurement, Start: start, End: start + time.Second, LagEvents: -1, Set: set}
}

// turn closes the older interval and opens a new one.
func (s *seconds) turn() {
	old := s.open[0]
	s.series.Add(old) // it copies the histograms
	old.Set.Each(func(_ string, h **measure.Histogram) {
		if *h != nil {
			(*h).Reset()
		}
	})
	s.open[0] = s.open[1]
	s.open[1] = second(s.next, old.Set)
	s.next++
}

// at returns the interval of a time, or the nearest of the two open ones.
func (s *seconds) at(t time.Duration) *measure.Interval {
	if t < s.open[1].Start {
		return &s.open[0]
	}
	return &s.open[1]
}

// done counts an operation. Operations of one request come one after the other.
func (s *seconds) done(d cluster.TopicDone) {
	for d.At >= s.open[1].End {
		s.turn()
	}
	sent, row := s.at(d.Sent), s.at(d.At)
	sent.Sent++
	sent.Bytes += d.Bytes
	switch {
	case d.Class == "":
		row.Acked++
		row.AckedBytes += d.Bytes
		s.acked = true
	case d.Certain:
		row.Failed++
		s.failed = true
	default:
		row.Unknown++
	}
	if d.Class != "" {
		batches := uint64(0)
		if !slices.Contains(s.classes, d.Class) {
			s.classes = append(s.classes, d.Class)
			batches = 1
		}
		row.Classes.Add(d.Class, 1, batches)
	}
	if s.scheduled {
		s.time(row, &d)
	}
	if d.Last {
		s.request(sent, row, &d)
	}
	row.InFlight = uint64(d.InFlight-1) * s.each
	if s.see != nil {
		s.see(d)
	}
}

// passage returns when an operation passed the points of its times.
func passage(d *cluster.TopicDone) load.Passage {
	return load.Passage{Ready: d.Due, Free: d.Free, Sent: d.Sent, Done: d.At, Arrived: d.At}
}

// time records the times of an operation that was due.
func (s *seconds) time(row *measure.Interval, d *cluster.TopicDone) {
	p := passage(d)
	e := p.Since(d.Due)
	if d.Class == "" {
		s.response.Record(e, 1)
	}
	for _, set := range []*measure.Set{&row.Set, &s.total} {
		hist(&set.Batching).Record(0) // operations of a request are due together
		hist(&set.SendDelay).Record(e.Delay())
		switch {
		case d.Class == "":
			hist(&set.Response).Record(e.Took())
		case !d.Certain:
			hist(&set.Censored).Record(e.Took())
		}
	}
}

// request counts and times a request, after the last of its operations.
func (s *seconds) request(sent, row *measure.Interval, d *cluster.TopicDone) {
	sent.Batches++
	if s.acked || s.failed {
		row.Answered++
	}
	p := passage(d)
	e := p.Service()
	if s.acked {
		s.service.Record(e, 1)
	}
	for _, set := range []*measure.Set{&row.Set, &s.total} {
		switch {
		case s.acked:
			hist(&set.Service).Record(e.Took())
		case s.failed:
			hist(&set.FailedService).Record(e.Took())
		}
		if s.scheduled {
			hist(&set.Queueing).Record(max(0, d.Free-d.Due))
		}
	}
	s.acked, s.failed, s.classes = false, false, s.classes[:0]
}

func hist(h **measure.Histogram) *measure.Histogram {
	if *h == nil {
		*h = measure.NewHistogram()
	}
	return *h
}

// intervals returns the intervals of a finished load. With a rate, an operation was offered
// when it was due, otherwise when it was sent; operations that were never due count in the
// last interval.
func (s *seconds) intervals(w *cluster.TopicLoad, r *cluster.TopicResult) []measure.Interval {
	for r.Elapsed > s.open[1].End {
		s.turn()
	}
	s.censor(s.at(r.Elapsed-1), w, r)
	for i := range s.open {
		if row := &s.open[i]; i == 0 || r.Elapsed > row.Start || !row.Counts.IsZero() {
			row.End = max(row.Start, min(row.End, r.Elapsed))
			s.series.AddLast(*row)
		}
	}
	rows := s.series.Intervals()
	left := r.Operations + r.Unsent
	for i := range rows {
		row := &rows[i]
		if row.Offered = row.Sent; w.Rate > 0 {
			row.Offered = w.DueBefore(min(row.End, r.Begun)) - w.DueBefore(min(row.Start, r.Begun))
		}
		row.Offered = min(row.Offered, left)
		left -= row.Offered
	}
	for i := range rows {
		rows[i].Within, rows[i].Arrived = rows[i].Length(), rows[i].Acked
	}
	last := &rows[len(rows)-1]
	last.Offered += left
	last.Unsent = r.Unsent
	return rows
}

// mostAges limits how many unsent operations get their age computed one by one; beyond it they
// are recorded in groups, which at a constant rate gives the same result.
const mostAges = 4096

// censor records how long operations that were due but never begun had waited.
func (s *seconds) censor(row *measure.Interval, w *cluster.TopicLoad, r *cluster.TopicResult) {
	due := w.DueBefore(r.Begun) // 0 without a rate
	if due <= r.Operations {
		return
	}
	age := func(n uint64) time.Duration {
		return max(0, r.Begun-time.Duration(float64(n/s.each)/w.Rate*float64(time.Second)))
	}
	requests := (due - r.Operations + s.each - 1) / s.each
	group := s.each * max(1, (requests+mostAges-1)/mostAges)
	for n := r.Operations; n < due; n += group {
		size := min(group, due-n)
		for _, set := range []*measure.Set{&row.Set, &s.total} {
			hist(&set.Censored).RecordSpan(age(n), age(n+size-1), size)
		}
	}
}
