package run

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"carronade/internal/report"
	"carronade/internal/verdict/fault"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/units"
)

// The limit on response that scores of faults use if no limit on a percentile was given.
const (
	faultLimit  = 100 * time.Millisecond
	faultBudget = 0.01
)

// A Marker puts marks on the time axis of a run in progress. It is safe for concurrent use.
type Marker struct {
	e   *execution
	rec *fault.Recorder

	mu       sync.Mutex
	began    time.Time // of the run, with a monotonic reading
	ended    bool
	reserved int // marks that the run's own faults and commands are still to make
	planned  int // reserved at first
	remote   int // marks of requests
}

// ErrEnded is the error of a mark on a run that has ended.
var ErrEnded = errors.New("the run has ended")

// Mark adds a mark. What it stands for happened between two moments of this process's clock: the
// middle is when. An error is ErrEnded, or that there are too many: room for the marks of the run's
// own faults is left.
func (m *Marker) Mark(kind, name, by string, from, to time.Time) (fault.Mark, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended {
		return fault.Mark{}, ErrEnded
	}
	if n := len(m.rec.Marks()); n+m.reserved >= fault.MostMarks {
		own := ""
		if m.reserved > 0 {
			own = fmt.Sprintf(" beside the %d of its own faults", m.reserved)
		}
		return fault.Mark{}, fmt.Errorf("the run has %d marks, which are all that it takes%s", n, own)
	}
	return m.add(kind, name, by, from, to)
}

// MarkRemote is Mark for a request over the network. Requests get at most half of the room besides the
// run's own faults, so that its owner finds room for theirs.
func (m *Marker) MarkRemote(kind, name, by string, from, to time.Time) (fault.Mark, error) {
	m.mu.Lock()
	most := (fault.MostMarks - m.planned) / 2
	if m.remote >= most {
		m.mu.Unlock()
		return fault.Mark{}, fmt.Errorf("the run takes at most %d marks of requests, which it has", most)
	}
	m.remote++
	m.mu.Unlock()
	mark, err := m.Mark(kind, name, by, from, to)
	if err != nil {
		m.mu.Lock()
		m.remote--
		m.mu.Unlock()
	}
	return mark, err
}

// own adds a mark of the run's own fault or command, for which room was reserved.
func (m *Marker) own(kind, name, by string, from, to time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended {
		return ErrEnded
	}
	m.reserved = max(0, m.reserved-1)
	_, err := m.add(kind, name, by, from, to)
	return err
}

// reserve leaves room for marks of own.
func (m *Marker) reserve(n int) {
	m.mu.Lock()
	m.reserved = min(n, fault.MostMarks)
	m.planned = m.reserved
	m.mu.Unlock()
}

// add adds a mark, with mu locked.
func (m *Marker) add(kind, name, by string, from, to time.Time) (fault.Mark, error) {
	a, b := max(0, from.Sub(m.began)), max(0, to.Sub(m.began))
	mask := maskOf(m.e.Workload)
	mark := fault.Mark{Kind: kind, Name: mask.Text(name), AtS: ((a + b) / 2).Seconds(), BoundS: ((b - a) / 2).Seconds(), By: by}
	if !m.rec.Mark(mark) {
		return fault.Mark{}, fmt.Errorf("the run has %d marks, which are all that it takes", fault.MostMarks)
	}
	if m.e.Marked != nil {
		m.e.Marked(mark)
	}
	return mark, nil
}

// end refuses further marks.
func (m *Marker) end() {
	m.mu.Lock()
	m.ended = true
	m.mu.Unlock()
}

// A marking records what scores of faults need. A nil marking does nothing.
type marking struct {
	Marker
	plan   *load.Plan
	limit  time.Duration
	budget float64
	per    string
	lanes  []string
	laneOf func(stream int32) int
	left   string               // why no lanes are scored
	now    func() time.Duration // of the run
	last   []time.Duration

	answering load.Answering // of a run that only reads; nil: it is not known when its logs are empty
	looking   chan struct{}  // closed: the run is over
	looked    sync.WaitGroup
}

// newMarking prepares the recording, nil if the run takes no marks.
func (e *execution) newMarking(plan *load.Plan, tgt load.Target) *marking {
	if !e.Workload.TakesMarks() || e.Share != nil { // the program that commands the run takes them
		return nil
	}
	m := &marking{plan: plan, Marker: Marker{e: e}}
	m.limit, m.budget = termsOf(e.Workload.Limits(), plan.Schedule != nil)
	m.findLanes(e, tgt)
	plan.Unsent = func(thread int, stream int32, first, last time.Duration, events uint64) {
		m.rec.Unsent(thread, stream, first, last, m.now(), events)
	}
	plan.Dropped = func(thread int, stream int32, first, last time.Duration, events uint64) { // rec is made later
		m.rec.Dropped(thread, stream, first, last, events)
	}
	before := plan.Trace
	plan.Trace = func(thread int, out []load.Outcome) {
		if before != nil {
			before(thread, out)
		}
		m.rec.Add(thread, out)
		for i := range out {
			m.last[thread] = max(m.last[thread], out[i].Done)
		}
	}
	return m
}

// termsOf returns the limit on response times of the first limit on a percentile of them.
func termsOf(limits []workload.Limit, scheduled bool) (time.Duration, float64) {
	main := "service"
	if scheduled {
		main = "response"
	}
	for _, l := range limits {
		if l.Stat == workload.PercentileStat && (l.Time == "" || l.Time == main) && l.Value > 0 {
			return time.Duration(l.Value * float64(time.Second)), 1 - l.Percentile/100
		}
	}
	return faultLimit, faultBudget
}

// findLanes decides what has a score of its own: partitions, where the target has several, else
// connections.
func (m *marking) findLanes(e *execution, tgt load.Target) {
	streams := tgt.Partitioner().Streams()
	of := func(s int32) int { return tgt.Client(s) }
	m.per = "connection"
	if logOf := e.session.Target().Capabilities().LogOf; logOf != nil {
		partition := func(s int32) int { return int(logOf(s)) }
		if len(distinct(streams, partition)) > 1 {
			m.per, of = "partition", partition
		}
	}
	ids := distinct(streams, of)
	if len(ids) < 2 || len(ids) > fault.MostLanes {
		if len(ids) > 1 {
			m.left = fmt.Sprintf("only the whole run is scored: %d %ss are more than %d", len(ids), m.per, fault.MostLanes)
		}
		m.per, m.laneOf = "", func(int32) int { return 0 }
		return
	}
	lane := make([]int, streams)
	for s := range lane {
		lane[s], _ = slices.BinarySearch(ids, of(int32(s)))
	}
	m.laneOf = func(s int32) int { return lane[s] }
	for _, id := range ids {
		m.lanes = append(m.lanes, fmt.Sprintf("%s %d", m.per, id))
	}
}

// distinct returns the values of a function of streams, in order.
func distinct(streams int, of func(s int32) int) []int {
	seen := map[int]bool{}
	var out []int
	for s := range int32(streams) {
		if v := of(s); !seen[v] {
			seen[v] = true
			out = append(out, v)
		}
	}
	slices.Sort(out)
	return out
}

// open makes the recorder, before the run starts.
func (m *marking) open(r *load.Run) {
	if m == nil {
		return
	}
	m.now, m.last = r.Now, make([]time.Duration, r.Threads())
	m.rec = fault.NewRecorder(m.limit, r.Threads(), max(1, len(m.lanes)), m.laneOf)
}

// begin takes marks from now on.
func (m *marking) begin(r *load.Run) {
	if m == nil {
		return
	}
	m.began = r.Started()
	if m.e.Marks != nil {
		m.e.Marks(&m.Marker)
	}
}

// report scores the marks.
func (m *marking) report(r *load.Result) *report.Faults {
	if m == nil {
		return nil
	}
	m.end()
	m.endReading()
	marks := m.rec.Marks()
	f := &report.Faults{LimitS: m.limit.Seconds(), Budget: m.budget, Per: m.per, Marks: marks, Scores: []fault.Score{}}
	if m.reads() {
		f.LimitS, f.Budget = 0, 0 // nothing is due, so nothing is late
	}
	if len(marks) == 0 {
		f.Marks = []fault.Mark{}
		return f
	}
	answers := time.Duration(0)
	for _, at := range m.last {
		answers = max(answers, at)
	}
	end := r.Measurement.End
	since, full, fewer := m.rec.Full()
	if full { // what is missing must not look like an outage
		end, answers = min(end, since), min(answers, since)
		f.Notes = append(f.Notes, fmt.Sprintf("the memory for scores was full at %s: they count until then", units.FormatDuration(since)))
	}
	if fewer {
		f.Notes = append(f.Notes, "some events that failed are missing in the classes of scores: there were too many moments with failures")
	}
	in := fault.Input{
		Marks: marks, Lanes: m.lanes, Window: m.window(r.Measurement.End), Errors: m.rec.Errors,
		Start: r.Measurement.Start, End: end, Answers: answers,
		Limit: m.limit, Budget: m.budget, Scheduled: m.plan.Schedule != nil, Ceiling: m.e.Workload.FaultCeiling(), Reading: m.reads(),
	}
	if m.answering != nil {
		in.Patience = m.answering.Patience()
	}
	f.Scores = append(f.Scores, fault.Scores(in)...)
	if m.left != "" {
		f.Notes = append(f.Notes, m.left)
	}
	if m.plan.Unanswered {
		f.Notes = append(f.Notes, "nothing is acknowledged, so there are no scores")
		f.Scores = []fault.Score{}
	}
	return f
}

// window adds to the bins of the whole run what its schedule had due.
func (m *marking) window(end time.Duration) func(lane int, from, to time.Duration) fault.Series {
	s := m.plan.Schedule
	return func(lane int, from, to time.Duration) fault.Series {
		out := m.rec.Window(lane, from, to)
		if lane >= 0 || s == nil {
			return out
		}
		out.Offered = make([]uint32, len(out.Cells))
		for i := range out.Cells {
			a := out.From + time.Duration(i)*fault.Bin
			out.Offered[i] = uint32(s.Count(min(a+fault.Bin, end)) - s.Count(min(a, end)))
		}
		return out
	}
}
