package fault_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"carronade/internal/verdict/fault"
	"carronade/load"
	"carronade/test/testkit/assert"
)

// A span is a stretch of time in which a lane does not work.
type span struct{ from, to time.Duration }

// A server is a system in virtual time: each lane serves one event after the other, each in the
// same time, except in the spans in which it stands still.
type server struct {
	lanes   int
	service func(at time.Duration) time.Duration // time that an event takes that begins then
	stalls  map[int][]span                       // by lane; -1: all lanes
	// refuse says how events end that are sent in a stall; nil: they wait.
	refuse func(o *load.Outcome)

	sink load.Sink
	all  []*lane
}

type lane struct {
	of   *server
	id   int
	mu   sync.Mutex
	free time.Duration
	open map[uint64]load.Batch
}

func (s *server) Partitioner() load.Partitioner { return load.RoundRobin(s.lanes) }
func (s *server) Client(stream int32) int       { return int(stream) }
func (s *server) Clients() int                  { return s.lanes }
func (s *server) Route(stream int32) load.Lane  { return s.all[stream] }
func (s *server) Wire() (written, read uint64)  { return 0, 0 }
func (l *lane) ID() int                         { return l.id }
func (l *lane) Room(int32, uint64) int          { return 1 << 20 }
func (l *lane) Flush()                          {}
func (s *server) stalled(l int, at time.Duration) (until time.Duration) {
	for _, of := range []int{-1, l} {
		for _, x := range s.stalls[of] {
			if at >= x.from && at < x.to {
				until = max(until, x.to)
			}
		}
	}
	return until
}

func (s *server) Start(sink load.Sink) { s.sink = sink }

func (l *lane) Fire(batches []load.Batch) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.of.sink.Now()
	for _, b := range batches {
		o := load.Outcome{Batch: b, Lane: int32(l.id), Sent: now, Place: -1}
		if until := l.of.stalled(l.id, now); until > 0 && l.of.refuse != nil {
			o.Done = now
			l.of.refuse(&o)
		} else {
			at := max(now, l.free)
			if until := l.of.stalled(l.id, at); until > 0 {
				at = until
			}
			o.Done = at + time.Duration(b.Events)*l.of.service(at)
			l.free = o.Done
			o.Acked = b.Events
		}
		l.open[b.Seq] = b
		time.AfterFunc(o.Done-now, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			if _, ok := l.open[o.Seq]; ok {
				delete(l.open, o.Seq)
				l.of.sink.Complete([]load.Outcome{o})
			}
		})
	}
	return len(batches)
}

func (l *lane) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range l.open {
		l.of.sink.Complete([]load.Outcome{{Batch: b, Lane: int32(l.id), Sent: b.Free, Done: l.of.sink.Now(), Unknown: b.Events, Class: load.Canceled, Text: "closed", Place: -1}})
	}
	clear(l.open)
	return nil
}

// A trial is a run against a server, with marks.
type trial struct {
	rate          float64 // events/s
	each          time.Duration
	lanes         int
	length, limit time.Duration
	service       func(at time.Duration) time.Duration
	stalls        map[int][]span
	refuse        func(o *load.Outcome)
	marks         []fault.Mark

	inFlight int  // 0: as many events as there are
	drop     bool // events that are due while inFlight is reached are dropped, and do not wait
}

func faultAt(at time.Duration) fault.Mark {
	return fault.Mark{Kind: fault.MarkFault, Name: "stall", AtS: at.Seconds()}
}

func healAt(at time.Duration) fault.Mark {
	return fault.Mark{Kind: fault.MarkHeal, Name: "stall", AtS: at.Seconds()}
}

// scores runs a trial in virtual time and scores its marks.
func (x *trial) scores(t *testing.T) (out []fault.Score) {
	t.Helper()
	if x.lanes == 0 {
		x.lanes = 1
	}
	if x.limit == 0 {
		x.limit = 50 * time.Millisecond
	}
	if x.service == nil {
		x.service = func(time.Duration) time.Duration { return x.each }
	}
	synctest.Test(t, func(t *testing.T) {
		s := &server{lanes: x.lanes, service: x.service, stalls: x.stalls, refuse: x.refuse}
		for i := range x.lanes {
			s.all = append(s.all, &lane{of: s, id: i, open: map[uint64]load.Batch{}})
		}
		plan := load.Plan{
			Schedule: load.Constant(x.rate), MaxInFlight: 1 << 20, BatchEvents: 1, Threads: x.lanes,
			Measurement: load.Limits{Time: x.length}, Drain: time.Minute, Portable: true,
		}
		if x.inFlight > 0 {
			plan.MaxInFlight = x.inFlight
		}
		if x.drop {
			plan.Overload = load.Drop
		}
		rec := fault.NewRecorder(x.limit, x.lanes, x.lanes, func(stream int32) int { return int(stream) })
		var last sync.Map
		plan.Trace = func(thread int, out []load.Outcome) {
			rec.Add(thread, out)
			last.Store(thread, out[len(out)-1].Done)
		}
		plan.Dropped = rec.Dropped
		for _, m := range x.marks {
			assert.Must(t, rec.Mark(m), "a mark was refused")
		}
		res := assert.Value(load.Fire(t.Context(), plan, s))(t)
		answers := time.Duration(0)
		last.Range(func(_, at any) bool { answers = max(answers, at.(time.Duration)); return true })
		in := fault.Input{
			Marks: rec.Marks(), Window: rec.Window, Errors: rec.Errors, Start: res.Measurement.Start, End: res.Measurement.End,
			Answers: answers, Limit: x.limit, Budget: 0.01, Scheduled: true,
		}
		if x.lanes > 1 {
			in.Lanes = slices.Repeat([]string{"p"}, x.lanes)
		}
		out = fault.Scores(in)
	})
	return out
}

// within reports whether two times differ by at most a bin, or 1 %.
func within(got, want float64) bool {
	d := got - want
	return max(d, -d) <= max(fault.Bin.Seconds(), 0.01*want)+1e-9
}

func wantTime(t *testing.T, what string, got *fault.Time, want float64) {
	t.Helper()
	assert.True(t, got != nil && !got.More && within(got.S, want), "%s: got %+v, want %.3f s", what, got, want)
}

func wantNumber(t *testing.T, what string, got *float64, want float64) {
	t.Helper()
	if got == nil || max(*got-want, want-*got) > 0.01*want {
		t.Errorf("%s: got %v, want %v within 1 %%", what, show(got), want)
	}
}

func show(x *float64) any {
	if x == nil {
		return nil
	}
	return *x
}
