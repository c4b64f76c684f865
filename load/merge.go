package load

import (
	"cmp"
	"slices"
	"time"

	"carronade/measure"
)

// Merge returns the result of a run that several generators fired together, each a
// portion, with the same plan and the same start. Counts and histograms add up, so that
// percentiles are those of all events. In addition:
//
//   - A stall is a time in which no generator got an answer that it expected.
//   - Levels (in flight, threads, bytes received) add up; Busy and Fullest are those of the
//     generator on which they are largest.
//   - The freezes of all generators are listed with the generators' names; their total is
//     that of the generator that was frozen longest.
//   - Missing adds up; for a schedule with a limit on events, the caller computes it.
//
// names are those of the generators, in the order of the results. Merge keeps and changes
// parts of the results. It panics without a result.
func Merge(names []string, of []*Result) *Result {
	out := *of[0]
	out.Classes = map[string]uint64{}
	out.Warmup, out.Measurement, out.Drain = measure.Tally{}, measure.Tally{}, measure.Tally{}
	out.Steps, out.Parts, out.Intervals, out.Failures, out.Logs, out.Members = nil, nil, nil, nil, nil, nil
	out.Freezes, out.Usage, out.Stall = measure.Freezes{}, measure.Usage{}, measure.Stall{}
	out.Busy, out.Full, out.Fullest, out.WireRead = 0, 0, 0, 0
	out.Threads, out.MostThreads, out.Clients, out.Missing, out.Rebalance = 0, 0, 0, 0, 0
	out.Whole = true
	var rows [][]measure.Interval
	for i, r := range of {
		if r.Started.Before(out.Started) {
			out.Started = r.Started
		}
		if r.Ended.After(out.Ended) {
			out.Ended = r.Ended
		}
		out.Stopped = worse(out.Stopped, r.Stopped)
		out.Whole = out.Whole && r.Whole
		mergeTally(&out.Warmup, &r.Warmup)
		mergeTally(&out.Measurement, &r.Measurement)
		mergeTally(&out.Drain, &r.Drain)
		out.Steps = mergeTallies(out.Steps, r.Steps)
		out.Parts = mergeParts(out.Parts, r.Parts)
		rows = append(rows, r.Intervals)
		out.Failures = mergeFailures(out.Failures, r.Failures)
		for class, n := range r.Classes {
			out.Classes[class] += n
		}
		mergeFreezes(&out.Freezes, &r.Freezes, names[i])
		pauses := max(out.Usage.GCPauses, r.Usage.GCPauses) // those of one can disturb its own events only
		out.Usage = addUsage(out.Usage, r.Usage)
		out.Usage.GCPauses = pauses
		out.Busy, out.Fullest = max(out.Busy, r.Busy), max(out.Fullest, r.Fullest)
		out.Full += r.Full / float64(len(of))
		out.WireRead += r.WireRead
		out.Threads += r.Threads
		out.MostThreads += r.MostThreads
		out.Clients += r.Clients
		out.Missing += r.Missing
		out.Rebalance = max(out.Rebalance, r.Rebalance)
		out.Logs = mergeLogs(out.Logs, r.Logs)
		out.Members = mergeMembers(out.Members, r.Members)
	}
	out.Intervals = mergeIntervals(rows)
	out.Stall = commonStalls(of, out.Measurement.Length())
	sortFailures(out.Failures)
	return &out
}

// worse returns the reason of two that says more: what ended one generator early is the
// reason of all.
func worse(a, b Reason) Reason {
	order := []Reason{ByTime, BySchedule, ByEvents, ByBytes, ByFeed, ByIdle, ByEnd, ByLimit, ByFailures, ByFailureRate, Interrupted, BySystem, ByLoss, ByMemory, ByTarget, ByGenerator, ByLease, Killed}
	if slices.Index(order, b) > slices.Index(order, a) {
		return b
	}
	return a
}

// mergeTally adds a tally of one generator to that of all.
func mergeTally(to, from *measure.Tally) {
	if from.End == from.Start && from.Counts.IsZero() && from.Arrived == 0 {
		return
	}
	if to.Name == "" {
		to.Name, to.Rate, to.Start, to.End = from.Name, from.Rate, from.Start, from.End
	}
	to.Start, to.End = min(to.Start, from.Start), max(to.End, from.End)
	addEvents(to, from)
	to.InFlight += from.InFlight
	to.InFlightPeak += from.InFlightPeak
}

// addEvents adds the events of a tally, and their times, to those of another.
func addEvents(to, from *measure.Tally) {
	to.Counts.Add(from.Counts)
	to.Set.Merge(&from.Set)
	to.Lower.Merge(&from.Lower)
	to.Statuses.Merge(from.Statuses)
	to.Arrived += from.Arrived
	to.ArrivedBytes += from.ArrivedBytes
	to.Answers += from.Answers
	to.Sends += from.Sends
	to.SendBytes += from.SendBytes
	to.SendWire += from.SendWire
}

// mergeTallies adds steps by name: a generator that had no events in a step may lack it.
func mergeTallies(to, from []measure.Tally) []measure.Tally {
	for i := range from {
		at := slices.IndexFunc(to, func(t measure.Tally) bool { return t.Name == from[i].Name && t.Start == from[i].Start })
		if at < 0 {
			at = len(to)
			to = append(to, measure.Tally{})
		}
		mergeTally(&to[at], &from[i])
	}
	slices.SortStableFunc(to, func(a, b measure.Tally) int { return cmp.Compare(a.Start, b.Start) })
	return to
}

func mergeParts(to, from []PartResult) []PartResult {
	for i := range from {
		if i == len(to) {
			to = append(to, PartResult{Classes: map[string]uint64{}})
		}
		mergeTally(&to[i].Tally, &from[i].Tally)
		to[i].Name = from[i].Name
		for class, n := range from[i].Classes {
			to[i].Classes[class] += n
		}
	}
	return to
}

// mergeFailures adds failures by class and text, up to the limit of one run.
func mergeFailures(to, from []measure.Failure) []measure.Failure {
	for _, f := range from {
		same := func(g measure.Failure) bool { return g.Class == f.Class && g.Text == f.Text }
		at := slices.IndexFunc(to, same)
		if at < 0 && len(to) >= maxTexts {
			f.Text = otherTexts
			at = slices.IndexFunc(to, same)
		}
		if at < 0 {
			to = append(to, f)
			continue
		}
		to[at].Events += f.Events
		to[at].Batches += f.Batches
	}
	return to
}

func sortFailures(fs []measure.Failure) {
	slices.SortFunc(fs, func(a, b measure.Failure) int {
		return cmp.Or(cmp.Compare(b.Events, a.Events), cmp.Compare(a.Class, b.Class), cmp.Compare(a.Text, b.Text))
	})
}

func mergeFreezes(to, from *measure.Freezes, name string) {
	named := func(fs []measure.Freeze) []measure.Freeze {
		fs = slices.Clone(fs)
		for i := range fs {
			fs[i].Who += " of " + name
		}
		return fs
	}
	to.Count += from.Count
	to.Total = max(to.Total, from.Total)
	to.Longest = append(to.Longest, named(from.Longest)...)
	slices.SortStableFunc(to.Longest, func(a, b measure.Freeze) int { return cmp.Compare(b.Length, a.Length) })
	to.Longest = to.Longest[:min(len(to.Longest), mostListed)]
	to.Process = append(to.Process, named(from.Process)...)
	slices.SortStableFunc(to.Process, func(a, b measure.Freeze) int { return cmp.Compare(a.At, b.At) })
}

// addUsage adds the usage of another process over the same time.
func addUsage(a, b measure.Usage) measure.Usage {
	return measure.Usage{
		CPU: a.CPU + b.CPU, RSS: a.RSS + b.RSS, MaxRSS: a.MaxRSS + b.MaxRSS,
		GCPauses: a.GCPauses + b.GCPauses, GCPauseMax: max(a.GCPauseMax, b.GCPauseMax), GCCPU: a.GCCPU + b.GCCPU,
	}
}

// mergeLogs adds what was consumed of each log. Only the generator that reads a log knows
// its lag.
func mergeLogs(to, from []LogResult) []LogResult {
	for _, l := range from {
		at := slices.IndexFunc(to, func(o LogResult) bool { return o.Log == l.Log })
		if at < 0 {
			to = append(to, l)
			continue
		}
		to[at].Consumed += l.Consumed
		to[at].Bytes += l.Bytes
		to[at].Lag = max(to[at].Lag, l.Lag)
	}
	return to
}

// mergeMembers adds what each member read. Each generator has a row for all of them, and reads as some.
func mergeMembers(to, from []MemberResult) []MemberResult {
	for i, m := range from {
		if i == len(to) {
			to = append(to, m)
			continue
		}
		o := &to[i]
		o.Consumed += m.Consumed
		o.Bytes += m.Bytes
		o.EventsPerS += m.EventsPerS
		o.Partitions = max(o.Partitions, m.Partitions)
		o.Rebalances += m.Rebalances
		o.UnassignedS += m.UnassignedS
	}
	return to
}

// mergeIntervals adds the rows of several generators. They end together, apart from the
// last ones and from those of long runs, of which a generator with fewer rows has joined
// fewer: rows of one phase that begin together, or overlap by more than half of the
// shorter, become one.
func mergeIntervals(of [][]measure.Interval) []measure.Interval {
	type source struct {
		row  measure.Interval
		from int
	}
	var all []source
	for i, rows := range of {
		for _, row := range rows {
			all = append(all, source{row, i})
		}
	}
	slices.SortStableFunc(all, func(a, b source) int {
		return cmp.Or(cmp.Compare(a.row.Phase, b.row.Phase), cmp.Compare(a.row.Start, b.row.Start))
	})
	var out []measure.Interval
	for i := 0; i < len(all); {
		group := all[i : i+1]
		end := all[i].row.End
		for i+len(group) < len(all) {
			next := all[i+len(group)].row
			first := &all[i].row
			if next.Phase != first.Phase || next.Start != first.Start && end-next.Start <= min(next.Length(), end-first.Start)/2 {
				break
			}
			group = all[i : i+len(group)+1]
			end = max(end, next.End)
		}
		i += len(group)
		byGenerator := map[int]*measure.Interval{}
		var order []int
		for _, s := range group {
			if own := byGenerator[s.from]; own != nil {
				*own = measure.Join(*own, s.row)
				continue
			}
			row := s.row
			byGenerator[s.from] = &row
			order = append(order, s.from)
		}
		sum := *byGenerator[order[0]]
		for _, from := range order[1:] {
			sum = addInterval(sum, byGenerator[from])
		}
		out = append(out, sum)
	}
	late := func(iv *measure.Interval) int { // a warm-up comes first
		if iv.Phase == measure.WarmUp {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(out, func(a, b measure.Interval) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(late(&a), late(&b)))
	})
	return out
}

// addInterval adds what another generator did at the same time.
func addInterval(a measure.Interval, b *measure.Interval) measure.Interval {
	out := measure.Join(a, *b)
	out.Start, out.End = min(a.Start, b.Start), max(a.End, b.End)
	out.Within = max(a.Within, b.Within)
	out.InFlight = a.InFlight + b.InFlight
	out.Generator = addUsage(a.Generator, b.Generator)
	if a.LagEvents >= 0 && b.LagEvents >= 0 {
		out.LagEvents = a.LagEvents + b.LagEvents
	} else {
		out.LagEvents = max(a.LagEvents, b.LagEvents)
	}
	out.LagLogs = nil
	for i := range max(len(a.LagLogs), len(b.LagLogs)) {
		lag := int64(-1)
		if i < len(a.LagLogs) {
			lag = a.LagLogs[i]
		}
		if i < len(b.LagLogs) {
			lag = max(lag, b.LagLogs[i])
		}
		out.LagLogs = append(out.LagLogs, lag)
	}
	return out
}

// commonStalls returns the times in which no generator that had something to send got an
// answer.
func commonStalls(of []*Result, length time.Duration) measure.Stall {
	of = slices.DeleteFunc(slices.Clone(of), func(r *Result) bool {
		// One that was lost, whose intervals alone are known, has no stalls.
		return r.Measurement.Offered == 0 && r.Measurement.Consumed == 0 || r.Threads == 0 && r.Mode != Consuming
	})
	switch len(of) {
	case 0:
		return measure.Stall{}
	case 1:
		return of[0].Stall
	}
	common, longest := of[0].Stall.Spans, of[0].Stall
	for _, r := range of[1:] {
		common = intersect(common, r.Stall.Spans)
		if r.Stall.Longest < longest.Longest {
			longest = r.Stall
		}
	}
	// Gaps too short to be listed: the shortest of the longest ones is an upper bound.
	out := measure.Stall{Longest: min(longest.Longest, StallAfter), LongestAt: longest.LongestAt}
	var sum time.Duration
	for _, s := range common {
		if s.Length <= StallAfter {
			continue
		}
		out.Count++
		out.Spans = append(out.Spans, s)
		sum += s.Length
		if s.Length > out.Longest {
			out.Longest, out.LongestAt = s.Length, s.At
		}
	}
	if length > 0 {
		out.Share = min(1, sum.Seconds()/length.Seconds())
	}
	return out
}

// intersect returns the times that are in a span of both lists, which are in order of
// time.
func intersect(a, b []measure.Span) []measure.Span {
	var out []measure.Span
	for i, j := 0, 0; i < len(a) && j < len(b); {
		from := max(a[i].At, b[j].At)
		to := min(a[i].At+a[i].Length, b[j].At+b[j].Length)
		if to > from {
			out = append(out, measure.Span{At: from, Length: to - from})
		}
		if a[i].At+a[i].Length < b[j].At+b[j].Length {
			i++
		} else {
			j++
		}
	}
	return out
}

// MergeSnapshots returns the state of a run that several generators fire together, of the
// same interval of each. It keeps and changes parts of the snapshots. It panics without any.
func MergeSnapshots(of []*Snapshot) Snapshot {
	out := *of[0]
	out.Rows, out.Merged, out.Total = nil, nil, measure.Counts{}
	out.Freezes, out.Frozen = 0, 0
	var rows [][]measure.Interval
	for _, s := range of {
		if s.At > out.At {
			out.At, out.Phase = s.At, s.Phase
		}
		out.Left = min(out.Left, s.Left)
		out.Total.Add(s.Total)
		out.Freezes += s.Freezes
		out.Frozen = max(out.Frozen, s.Frozen)
		out.Rebalance = max(out.Rebalance, s.Rebalance)
		rows = append(rows, s.Rows)
	}
	out.Rows = mergeIntervals(rows)
	out.Interval = measure.Interval{LagEvents: -1}
	for i := range out.Rows {
		if i == 0 {
			out.Interval = out.Rows[0]
			continue
		}
		usage := out.Interval.Generator
		out.Interval = measure.Join(out.Interval, out.Rows[i])
		out.Interval.Phase = out.Rows[i].Phase
		out.Interval.Generator = addUsage(usage, out.Rows[i].Generator) // of the same time
	}
	return out
}
