package run

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"carronade/internal/run/ledger"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/measure"
	"carronade/units"
)

// A fleetLedger joins what some generators sent with what another one read: for the ledger,
// and for end-to-end times. One goroutine uses it at a time.
type fleetLedger struct {
	verify   bool
	times    bool          // end-to-end times are wanted
	interval time.Duration // length of a row
	warm     bool          // the first phase is the warm-up
	phases   int32         // of the run: more would each take memory

	unanswered bool // nothing is acknowledged

	logs    *Logs    // nil until the reader has said what it reads
	early   [][]byte // chunks that came before
	waiting int      // their size
	ledger  *ledger.Ledger
	pair    *ledger.Join
	logOf   map[int32]int32
	left    [2]uint64     // events without a record: acked, arrived
	newest  time.Duration // arrival that was read
	frozen  load.Frozen   // when the reader did not run
	until   time.Duration // when the reader ended; 0: it has not
	apart   time.Duration // the error of times between the clocks of two generators, once that is known
	broken  error         // the first chunk that could not be read

	byPhase map[int32]*endToEnd
	byRow   map[rowKey]*endToEnd
	open    []*endToEnd // rows that are not compact
}

// A rowKey is an interval of one phase.
type rowKey struct {
	number int64
	warm   bool
}

// endToEnd is what is known of the events that arrived, and of those that should have.
type endToEnd struct {
	events, unread uint64
	times          *measure.Histogram
	ages           *measure.Histogram // of those that did not arrive; nil: none
	lower          load.LowerBound    // empty in a row
	open           bool               // of a row: times is not compact
}

// Bounds of the memory of rows: mostOpen limits those that are not compact, and mostRows all of
// them. A series has half as many (measure.Series), so its rows are at least as long.
const (
	mostOpen = 16
	mostRows = 2 * measure.DefaultSeries
)

// mostEarly limits the chunks that wait for the reader's first one, in bytes.
const mostEarly = 64 << 20

func newFleetLedger(e *execution, plan *load.Plan) *fleetLedger {
	f := &fleetLedger{
		verify: e.Workload.Verify(), times: e.Workload.Op == workload.RoundTrip, interval: plan.Interval,
		logOf: map[int32]int32{}, byPhase: map[int32]*endToEnd{}, byRow: map[rowKey]*endToEnd{},
	}
	if f.interval <= 0 {
		f.interval = time.Second
	}
	names := plan.PhaseNames()
	f.unanswered = plan.Unanswered
	f.warm = len(names) > 1 && names[0] == measure.WarmUp
	f.phases = int32(len(names)) //nolint:gosec // those of a plan
	return f
}

// take takes a chunk of records; see Order.Records.
func (f *fleetLedger) take(chunk []byte) {
	if f.logs == nil && (len(chunk) == 0 || chunk[0] != logsRecord) {
		if f.waiting += len(chunk); f.waiting <= mostEarly {
			f.early = append(f.early, chunk)
			return
		}
		f.read(chunk, func(r *recorded) {
			if r.outcome != nil {
				f.left[0] += uint64(r.outcome.Acked)
			}
			f.left[0] += r.left[0]
			f.left[1] += r.left[1]
		})
		return
	}
	f.read(chunk, f.record)
}

func (f *fleetLedger) read(chunk []byte, each func(r *recorded)) {
	if err := readRecords(chunk, each); err != nil && f.broken == nil {
		f.broken = err
	}
}

// record takes one record.
func (f *fleetLedger) record(r *recorded) {
	switch {
	case r.logs != nil && f.logs == nil:
		f.begin(r.logs)
	case f.logs == nil:
	case r.froze != nil:
		f.frozen.Add(r.froze[0], r.froze[1])
	case f.impossible(r) != nil:
		if f.broken == nil {
			f.broken = f.impossible(r)
		}
	case r.outcome != nil:
		f.logOf[r.outcome.Stream] = r.log
		f.ledger.Fired([]load.Outcome{*r.outcome})
		if f.times {
			f.pair.Fired(split(r))
		}
	case r.arrival != nil:
		as := []load.Arrival{*r.arrival}
		f.newest = max(f.newest, r.arrival.At)
		f.ledger.Arrived(as)
		if f.times {
			f.pair.Arrived(as)
		}
	default:
		f.left[0] += r.left[0]
		f.left[1] += r.left[1]
	}
}

// impossible says what a record has that the run has not; nil if it has nothing of that kind.
func (f *fleetLedger) impossible(r *recorded) error {
	logs := int32(len(f.logs.Names)) //nolint:gosec // few logs
	switch {
	case r.outcome != nil && f.times && r.outcome.Phase >= f.phases:
		return fmt.Errorf("%w: one is of phase %d, and the run has %d", errRecords, r.outcome.Phase, f.phases)
	case r.outcome != nil && r.log >= logs:
		return fmt.Errorf("%w: one is in log %d, and %d are read", errRecords, r.log, logs)
	case r.arrival != nil && r.arrival.Log >= logs:
		return fmt.Errorf("%w: one is in log %d, and %d are read", errRecords, r.arrival.Log, logs)
	}
	return nil
}

// begin makes the ledger, and takes what came before.
func (f *fleetLedger) begin(logs *Logs) {
	f.logs = logs
	logOf := func(stream int32) int32 {
		if log, ok := f.logOf[stream]; ok {
			return log
		}
		return -1
	}
	f.ledger = ledger.New(ledger.Config{
		Logs: len(logs.Names), Names: logs.Names, Start: logs.Starts, LogOf: logOf, RunID: logs.Run, Stamped: logs.Stamped, Memory: ledgerBytes,
	})
	f.pair = ledger.NewJoin(logOf, f.arrived)
	f.pair.Missing(f.missed)
	if logs.Stamped {
		f.pair.Stamped(logs.Run)
	}
	early := f.early
	f.early, f.waiting = nil, 0
	for _, chunk := range early {
		f.read(chunk, f.record)
	}
}

// split returns the outcome of a batch for the join: of each event alone if they were due at
// different times.
func split(r *recorded) []load.Outcome {
	o := r.outcome
	if r.dues == nil {
		return []load.Outcome{*o}
	}
	all := make([]load.Outcome, 0, len(r.dues))
	for k, due := range r.dues {
		one, i := *o, int32(k) //nolint:gosec // an index in a batch
		one.First, one.Events, one.DueFirst, one.DueLast = o.First+uint64(k), 1, due, due
		one.Acked, one.Unknown, one.Failed = 0, 0, 0
		switch {
		case i < o.Acked:
			one.Acked = 1
		case i >= o.Events-o.Unknown:
			one.Unknown = 1
		default:
			one.Failed = 1
		}
		if o.Place >= 0 {
			one.Place = o.Place + int64(k)
		}
		all = append(all, one)
	}
	return all
}

// arrived records the end-to-end time of events.
func (f *fleetLedger) arrived(o load.Outcome, at, earliest time.Duration) {
	n := uint64(max(o.Events, 0))
	p := o.ReadAt(at, earliest, f.frozen.Within)
	e := p.Since(o.DueFirst)
	phase := entry(f.byPhase, o.Phase)
	phase.events += n
	phase.times.RecordN(e.Took(), n)
	phase.lower.Record(e, n)
	row := f.row(rowKey{int64(at / f.interval), f.warm && o.Phase == 0})
	row.events += n
	row.times.RecordN(e.Took(), n)
}

// missed records the age of events that have not arrived. If not everything that arrived is known, they may have
// arrived when they were sent, and no age is.
func (f *fleetLedger) missed(o load.Outcome) {
	at := max(f.newest, f.until)
	known := at - f.apart
	if f.incomplete() {
		known = 0
	}
	unread := o.Acked
	if f.unanswered {
		unread += o.Unknown
	}
	f.unread(o.Phase, at, o.Age(o.DueFirst, known), o.Acked+o.Unknown, unread)
}

// incomplete reports whether something that arrived has no record.
func (f *fleetLedger) incomplete() bool { return f.left[1] > 0 || f.broken != nil }

// unread records the age at a time of events, and that some of them are unread.
func (f *fleetLedger) unread(phase int32, at, age time.Duration, events, unread int32) {
	for _, to := range []*endToEnd{entry(f.byPhase, phase), f.row(rowKey{int64(at / f.interval), f.warm && phase == 0})} {
		to.unread += uint64(max(unread, 0))
		if to.ages == nil {
			to.ages = measure.NewHistogram()
		}
		to.ages.RecordN(age, uint64(max(events, 0)))
	}
}

// row returns a row to add events to.
func (f *fleetLedger) row(key rowKey) *endToEnd {
	if f.byRow[key] == nil && len(f.byRow) >= mostRows {
		f.joinRows()
		key.number /= 2
	}
	row := entry(f.byRow, key)
	if !row.open {
		if len(f.open) >= mostOpen {
			f.compact()
		}
		row.open = true
		f.open = append(f.open, row)
	}
	return row
}

func (f *fleetLedger) compact() {
	for _, r := range f.open {
		r.times, r.ages, r.open = r.times.Compact(), r.ages.Compact(), false
	}
	f.open = f.open[:0]
}

// joinRows makes rows twice as long.
func (f *fleetLedger) joinRows() {
	f.compact()
	f.interval *= 2
	all := f.byRow
	f.byRow = make(map[rowKey]*endToEnd, len(all)/2+1)
	for key, from := range all {
		key.number /= 2
		to := f.byRow[key]
		if to == nil {
			f.byRow[key] = from
			continue
		}
		to.events += from.events
		to.unread += from.unread
		to.times.Merge(from.times)
		to.times = to.times.Compact()
		if from.ages != nil {
			mergeInto(&to.ages, from.ages)
			to.ages = to.ages.Compact()
		}
	}
}

func entry[K comparable](m map[K]*endToEnd, k K) *endToEnd {
	to := m[k]
	if to == nil {
		to = &endToEnd{times: measure.NewHistogram()}
		m[k] = to
	}
	return to
}

// finish adds what is known at the end, and then the verdict and the times to a result.
func (f *fleetLedger) finish(e *execution, g *Combined, out *outcome) {
	var reading *Reading
	for i := range g.Agents {
		a := &g.Agents[i]
		for _, chunk := range a.Records {
			f.take(chunk)
		}
		a.Records = nil
		if g.Rows[i].Reads {
			reading = a.Reading
			if reading != nil && g.Rows[i].State != "complete" {
				reading.Whole = nil // it stopped before the others had ended
			}
			if a.Result != nil {
				out.result.Logs = a.Result.Logs
			}
		}
	}
	warn := func(format string, args ...any) { out.warnings = append(out.warnings, fmt.Sprintf(format, args...)) }
	if f.broken != nil {
		warn("some events were not checked: %v", f.broken)
	}
	if f.logs == nil {
		warn("nothing was read back: the generator that reads was lost before its first interval")
		if f.verify {
			out.ledger = &measure.Ledger{Method: "none", Acked: out.result.Measurement.Acked + out.result.Warmup.Acked, Inexact: out.result.Measurement.Acked + out.result.Warmup.Acked}
		}
		return
	}
	verdict := f.verdict(reading)
	recorded := verdict.Acked - f.left[0]
	switch {
	case reading == nil:
		warn("reading back failed: the generator that reads was lost")
	case reading.Trouble != "":
		warn("reading back failed: %s", reading.Trouble)
	}
	if n := f.left[0] + f.left[1]; n > 0 {
		warn("%s events were not checked: the generators had no room for their records", units.FormatCount(n))
	}
	// Records that a lost generator had not delivered yet are missing, and nothing of it says so.
	acked := out.result.Measurement.Acked + out.result.Warmup.Acked
	if verdict.Acked < acked {
		missing := acked - verdict.Acked
		warn("%s acked events were not checked: a generator was lost before their records came", units.FormatCount(missing))
		verdict.Acked, verdict.Inexact, verdict.Complete = acked, verdict.Inexact+missing, false
	}
	if verdict.Unread > 0 && reading != nil {
		verdict.Blocked = reading.Blocked
	}
	if f.verify {
		out.ledger = &verdict
	} else if verdict.Blocked != "" {
		warn("not everything was read: %s", verdict.Blocked)
	}
	if f.times {
		f.giveUp(reading, verdict.Acked-min(verdict.Acked, recorded), g.Apart)
		f.addTimes(out.result, g.Apart)
	}
}

// verdict is the ledger's, with what the reader knows of the logs.
func (f *fleetLedger) verdict(reading *Reading) measure.Ledger {
	var whole []bool
	var ends []int64
	if n := len(f.logs.Names); reading != nil {
		if len(reading.Whole) == n {
			whole = reading.Whole
		}
		if len(reading.Ends) == n {
			ends = reading.Ends
		}
		for log, spans := range reading.Removed[:min(n, len(reading.Removed))] {
			for _, s := range spans {
				f.ledger.Removed(int32(log), s.From, s.To) //nolint:gosec // few logs
			}
		}
		for log, gone := range reading.Gone[:min(n, len(reading.Gone))] {
			f.ledger.Gone(int32(log), gone) //nolint:gosec // few logs
		}
	}
	if f.incomplete() { // what is missing may have been read
		whole, ends = nil, f.logs.Starts
	}
	v := f.ledger.Verdict(whole, ends)
	if f.left[0] > 0 {
		v.Complete = false
		v.Acked += f.left[0]
		v.Inexact += f.left[0]
	}
	return v
}

// giveUp records as unread what did not arrive until the reader ended, and some acked events that have no record,
// of which nothing is known.
func (f *fleetLedger) giveUp(reading *Reading, unrecorded uint64, apart time.Duration) {
	f.apart = apart
	if reading != nil {
		f.until = reading.Until
	}
	f.pair.GiveUpRest()
	phase := int32(0)
	if f.warm {
		phase = 1
	}
	for unrecorded > 0 {
		n := min(unrecorded, math.MaxInt32)
		f.unread(phase, max(f.newest, f.until), 0, int32(n), 0)
		unrecorded -= n
	}
}

// addTimes adds the end-to-end times to the phases and to the intervals of a result. Lower
// bounds take the two clocks into account.
func (f *fleetLedger) addTimes(r *load.Result, apart time.Duration) {
	for _, phase := range slices.Sorted(maps.Keys(f.byPhase)) {
		from := f.byPhase[phase]
		lower := measure.LeastOf(earlier(from.lower.Bound(), apart), from.times) // rounding puts none above what was measured
		to := []*measure.Tally{&r.Measurement}
		step := int(phase) // steps are in the order of phases; two of them may have one name
		if f.warm {
			step--
		}
		if step < 0 {
			to[0] = &r.Warmup
		} else if step < len(r.Steps) {
			to = append(to, &r.Steps[step])
		}
		for _, t := range to {
			t.Consumed += from.events
			t.Unread += from.unread
			mergeInto(&t.EndToEnd, from.times)
			mergeInto(&t.Lower.EndToEnd, lower)
			if from.ages != nil {
				mergeInto(&t.UnreadAges, from.ages)
			}
		}
	}
	order := func(a, b rowKey) int { return cmp.Compare(a.number, b.number) }
	for _, key := range slices.SortedFunc(maps.Keys(f.byRow), order) {
		from, at := f.byRow[key], -1
		for i := range r.Intervals { // the last one of the phase that had begun, or its first one
			iv := &r.Intervals[i]
			if (iv.Phase == measure.WarmUp) == key.warm && (at < 0 || iv.Start <= time.Duration(key.number)*f.interval) {
				at = i
			}
		}
		if at >= 0 {
			iv := &r.Intervals[at]
			iv.Consumed += from.events
			iv.Unread += from.unread
			mergeInto(&iv.EndToEnd, from.times)
			iv.EndToEnd = iv.EndToEnd.Compact() // there are thousands of them
			if from.ages != nil {
				mergeInto(&iv.UnreadAges, from.ages)
				iv.UnreadAges = iv.UnreadAges.Compact()
			}
		}
	}
}

func mergeInto(to **measure.Histogram, from *measure.Histogram) {
	if *to == nil {
		*to = measure.NewHistogram()
	}
	(*to).Merge(from)
}

// earlier returns a histogram of times that are shorter, but not negative.
func earlier(h *measure.Histogram, by time.Duration) *measure.Histogram {
	out := measure.NewHistogram()
	h.EachBucket(func(top time.Duration, n uint64) { out.RecordN(max(0, top-by), n) })
	return out
}
