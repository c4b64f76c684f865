package report

import (
	"cmp"
	"slices"

	"carronade/internal/workload"
	"carronade/load"
	"carronade/measure"
	"carronade/units"
)

// The reasons of a run whose program was killed.
const (
	killedTrust   = "the program was killed: it could not assess its own limits, and what was not saved yet is missing"
	killedWarning = "the program was killed while it measured: this report was made of the intervals saved until then"
)

// Assemble makes the report of a run whose program died, from what was known when it began and
// the intervals saved until then. The document is partial, stopped as killed, and sealed. It
// keeps the intervals. The same head and intervals always make the same document.
//
// Batches in flight at the end count as unknown, and events that were due and not sent as
// unsent, in the last interval of their phase. So the two identities hold, and intervals add
// up to their phases.
func Assemble(head *Document, intervals []Interval) *Document {
	d := *head
	d.Intervals = orEmpty(slices.Clone(intervals))
	slices.SortStableFunc(d.Intervals, func(a, b Interval) int { return cmp.Compare(a.StartS, b.StartS) })
	d.Stopped, d.Partial = load.Killed, true
	d.EndedAt = d.StartedAt
	if n := len(d.Intervals); n > 0 {
		d.EndedAt = d.StartedAt.Add(units.Seconds(d.Intervals[n-1].EndS))
	}
	if d.Scenario != nil {
		d.assembleScenario()
		return d.resealed()
	}
	d.Trust = measure.Trust{Level: measure.NotTrusted, Reasons: []string{killedTrust}, Doubts: []string{}, Notes: []string{}, Bounds: []measure.Bound{}}
	d.Steady = measure.Steady{Text: "the run did not complete"}
	d.Checks, d.Problems = []Check{}, []string{}
	d.Warnings = append(slices.Clone(d.Warnings), killedWarning)
	d.Steps, d.Phases, d.Gauges = []Phase{}, []Phase{}, []Gauge{}
	d.Failures, d.Classes = []measure.Failure{}, map[string]uint64{}
	d.Logs, d.LagEvents = []load.LogResult{}, map[string]int64{}
	d.Hosts = orEmpty(d.Hosts)
	for i := range d.Intervals {
		for _, c := range d.Intervals[i].Classes {
			d.Classes[c.Class] += c.Events
		}
	}
	for _, name := range []string{measure.WarmUp, measure.Measurement} {
		d.balance(name)
		if ph, ok := d.assemblePhase(name); ok {
			d.Phases = append(d.Phases, ph)
			if name == measure.Measurement {
				d.Totals, d.Times = ph.Totals, ph.Times
			}
		}
	}
	d.assembleGenerator()
	return d.resealed()
}

// resealed is the document with the hash of what it is now. Its parts came from JSON, so encoding
// cannot fail. If it did, the document would have no hash, and Check would report that.
func (d *Document) resealed() *Document {
	d.computedHash, d.Hash = "", ""
	if err := d.Seal(); err != nil {
		d.Hash = ""
	}
	return d
}

// balance adds the unaccounted events of a phase to its last interval, with what is known of their ages.
func (d *Document) balance(name string) {
	var c measure.Counts
	var rows []*Interval
	readers := uint64(1) // each consumer group reads every event
	for i := range d.Intervals {
		if d.Intervals[i].Phase == name {
			rows = append(rows, &d.Intervals[i])
			readers = max(readers, uint64(len(d.Intervals[i].Groups)))
			c.Add(d.Intervals[i].Counts)
		}
	}
	answered := c.Acked + c.Failed + c.Unknown
	unknown, unsent := excess(c.Sent, answered), excess(c.Offered, c.Sent+c.Dropped+c.Unsent)
	may, unread := uint64(0), uint64(0)
	if d.Op == workload.RoundTrip || c.Consumed > 0 {
		may = excess(readers*c.Sent, readers*c.Failed+c.Consumed+c.Unread) // not read, though the system may have them
		if unread = min(may, excess(readers*c.Acked, c.Consumed+c.Unread)); d.Totals.RateOf == RateSent {
			unread = may
		}
	}
	if unknown+unsent+may == 0 {
		return
	}
	last, end := rows[len(rows)-1], d.Intervals[len(d.Intervals)-1].EndS
	last.Unknown += unknown
	last.Unsent += unsent
	last.Unread += unread
	if d.Totals.RateOf == RateAcked && slices.ContainsFunc(rows, func(iv *Interval) bool { return iv.Response != nil }) {
		last.addAges("response", leastAges(rows, end, 1, answered+c.Dropped+c.Unsent, unknown+unsent))
	}
	if may > 0 {
		last.addAges("end_to_end", leastAges(rows, end, readers, readers*(c.Failed+c.Dropped+c.Unsent)+c.Consumed+c.Unread, may+readers*unsent))
	}
	last.sum, last.raw = nil, nil
}

// leastAges returns the least ages, at the end, of the events that are due and not done. Of those due until
// the end of an interval, as many are not done as there are more of them than of events that are done,
// whichever those are: they are at least as old as that end. An event counts once for each of its readers.
func leastAges(rows []*Interval, end float64, readers, done, left uint64) *measure.Histogram {
	h := measure.NewHistogram()
	var due, older uint64
	for _, iv := range rows {
		due += readers * iv.Offered
		if n := min(excess(due, done), left); n > older {
			h.RecordN(units.Seconds(end-iv.EndS), n-older)
			older = n
		}
	}
	return h
}

// addAges adds the ages of events that are missing in a time.
func (iv *Interval) addAges(name string, ages *measure.Histogram) {
	if ages.Count() == 0 {
		return
	}
	set := iv.set()
	times, missing, sum := &set.Response, &set.Censored, &iv.Response
	if name == "end_to_end" {
		times, missing, sum = &set.EndToEnd, &set.UnreadAges, &iv.EndToEnd
	}
	if *missing != nil {
		ages.Merge(*missing)
	}
	*missing = ages
	if *times == nil {
		*times = measure.NewHistogram()
	}
	var extra []float64
	if *sum != nil {
		for _, v := range (*sum).Percentiles {
			extra = append(extra, v.P)
		}
	}
	*sum = measure.Summarize(*times, ages, extra)
	iv.times, iv.Histograms = set, nil
}

// set returns a copy of the histograms of the interval.
func (iv *Interval) set() *measure.Set {
	if iv.times != nil {
		set := *iv.times
		return &set
	}
	set := new(measure.Set)
	set.Each(func(name string, h **measure.Histogram) { *h = iv.Histogram(name) })
	return set
}

// assemblePhase sums up the intervals of a phase; false if there are none.
func (d *Document) assemblePhase(name string) (Phase, bool) {
	rows := slices.DeleteFunc(slices.Clone(d.Intervals), func(iv Interval) bool { return iv.Phase != name })
	if len(rows) == 0 {
		return Phase{}, false
	}
	ph := Phase{Name: name, StartS: rows[0].StartS, EndS: rows[len(rows)-1].EndS}
	t := &ph.Totals
	t.RateOf = d.Totals.RateOf
	var arrived uint64
	var within, sent, bytesSent, wire, answers float64
	for i := range rows {
		iv := &rows[i]
		part := 1.0
		if length := iv.EndS - iv.StartS; iv.WithinS < length {
			part = iv.WithinS / length
		}
		sent, bytesSent, wire, answers = sent+part*float64(iv.Sent), bytesSent+part*float64(iv.Bytes), wire+part*float64(iv.WireBytes), answers+part*float64(iv.Answered)
		arrived += iv.Arrived
		within += iv.WithinS
		t.Counts.Add(iv.Counts)
		t.Statuses.Merge(iv.Statuses)
		t.InFlightMean += float64(iv.InFlight) / float64(len(rows))
		t.InFlightMax = max(t.InFlightMax, iv.InFlight)
	}
	events, bytes := t.Acked, t.AckedBytes
	switch t.RateOf {
	case RateSent:
		events, bytes = t.Sent, t.Bytes
	case RateConsumed:
		events, bytes = t.Consumed, t.Bytes
	}
	// Phases need not meet where intervals do, and the last answers of the warm-up arrive in intervals of
	// the measurement: neither makes a phase longer.
	if within > 0 {
		ph.StartS = d.startOf(name, rows)
		ph.EndS = ph.StartS + within
		if t.RateOf == RateAcked && t.Acked > 0 { // how many bytes of them arrived in the phase is not known
			bytes = uint64(float64(bytes) * float64(arrived) / float64(t.Acked))
		}
		events = arrived
	}
	t.ElapsedS = ph.EndS - ph.StartS
	elapsed := units.Seconds(t.ElapsedS)
	t.EventsPerS, t.BytesPerS = measure.PerSecond(events, elapsed), measure.PerSecond(bytes, elapsed)
	if within > 0 && t.ElapsedS > 0 && t.RateOf != RateConsumed { // else by an older version
		sent /= t.ElapsedS
		t.SentPerS, t.SentBytesPerS, t.WireBytesPerS, t.AnswersPerS = &sent, bytesSent/t.ElapsedS, wire/t.ElapsedS, answers/t.ElapsedS
	}
	ph.Times = assembleTimes(rows)
	return ph, true
}

// startOf returns when a phase began, of its intervals. If the warm-up lasted into the first of them, it began
// at the end of the warm-up. Else it lasted from there to the end of that interval, whose parts in several
// steps have rows of their own.
func (d *Document) startOf(name string, rows []Interval) float64 {
	if name == measure.WarmUp {
		return rows[0].StartS
	}
	within := 0.0
	for i := range d.Intervals {
		switch iv := &d.Intervals[i]; {
		case iv.Phase == measure.WarmUp && iv.WithinS > 0 && iv.StartS <= rows[0].StartS && rows[0].StartS < iv.EndS:
			return iv.StartS + iv.WithinS
		case iv.Phase == name && iv.StartS == rows[0].StartS:
			within += iv.WithinS
		}
	}
	return rows[0].EndS - within
}

// assembleTimes joins the histograms of intervals. A time without histograms is left out.
func assembleTimes(rows []Interval) Times {
	var extra []float64
	joined := measure.Set{}
	joined.Each(func(name string, h **measure.Histogram) {
		for i := range rows {
			part := rows[i].Histogram(name)
			if part == nil {
				continue
			}
			if *h == nil {
				*h = measure.NewHistogram()
			}
			(*h).Merge(part)
		}
		if *h == nil && slices.ContainsFunc(rows, func(iv Interval) bool { return iv.Time(name) != nil }) {
			*h = measure.NewHistogram()
		}
	})
	for i := range rows {
		for _, s := range []*measure.Summary{rows[i].Response, rows[i].Service, rows[i].SendDelay} {
			if s == nil || extra != nil {
				continue
			}
			for _, v := range s.Percentiles {
				extra = append(extra, v.P)
			}
		}
	}
	of := func(h *measure.Histogram) *measure.Summary { return measure.Summarize(h, nil, extra) }
	return Times{
		Response: measure.Summarize(joined.Response, joined.Censored, extra),
		Service:  of(joined.Service), SendDelay: of(joined.SendDelay), Batching: of(joined.Batching), Queueing: of(joined.Queueing),
		FailedService: of(joined.FailedService), EndToEnd: measure.Summarize(joined.EndToEnd, joined.UnreadAges, extra),
	}
}

// assembleGenerator sums up the generator's cost over the measurement.
func (d *Document) assembleGenerator() {
	g := &d.Generator
	*g = Generator{Processors: g.Processors}
	for i := range d.Intervals {
		u := d.Intervals[i].Generator
		g.MaxRSSBytes = max(g.MaxRSSBytes, u.RSSBytes)
		if d.Intervals[i].Phase != measure.Measurement {
			continue
		}
		g.CPUS += u.CPUS
		g.RSSBytes = u.RSSBytes
		g.GCPauses += u.GCPauses
		g.GCPauseMaxUS = max(g.GCPauseMaxUS, u.GCPauseMaxUS)
		g.GCCPUS += u.GCCPUS
	}
	if g.Processors > 0 && d.Totals.ElapsedS > 0 {
		g.CPUShare = g.CPUS / (d.Totals.ElapsedS * float64(g.Processors))
	}
	if n := max(d.Totals.Sent, d.Totals.Consumed); n > 0 {
		g.CPUUSPerEvent = g.CPUS * 1e6 / float64(n)
	}
}

func excess(n, of uint64) uint64 { return n - min(n, of) }
