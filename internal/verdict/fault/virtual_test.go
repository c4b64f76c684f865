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

func (s *server) Partitioner() load.Partitioner       { return load.RoundRobin(s.lanes) }
func (s *server) Client(stream int32) int             { return int(stream) }
func (s *server) Clients() int                        { return s.lanes }
func (s *server) Route(stream int32) load.Lane        { return s.all[stream] }
func (s *server) Wire() (written, read uint64)        { return 0, 0 }
func (l *lane) ID() int                               { return l.id }
func (l *lane) Room(int32, uint64) int                { return 1 << 20 }
func (l *lane) Flush()                                {}
func (*server) Capabilities() load.TargetCapabilities { return load.TargetCapabilities{} }
func (*lane) Capabilities() load.LaneCapabilities     { return load.LaneCapabilities{} }
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

func TestParse(t *testing.T) {
	const second = time.Second
	for _, tt := range []struct {
		text, name string
		want       fault.Fault
		err        string
	}{
		{"60s:stop=leader,10s", "stop leader", fault.Fault{At: 60 * second, Action: "stop", What: "leader", Number: -1, Length: 10 * second}, ""},
		{"1m:kill=leader:3", "kill leader 3", fault.Fault{At: 60 * second, Action: "kill", What: "leader", Number: 3}, ""},
		{"5s:stop=pid:4711,1s", "stop pid 4711", fault.Fault{At: 5 * second, Action: "stop", What: "pid", Number: 4711, Length: second}, ""},
		{"5s:stop=system, 1s", "stop system", fault.Fault{At: 5 * second, Action: "stop", What: "system", Number: -1, Length: second}, ""},
		{"5s:restart=system", "restart system", fault.Fault{At: 5 * second, Action: "restart", What: "system", Number: -1}, ""},
		{"5s:restart=system,2s", "restart system", fault.Fault{At: 5 * second, Action: "restart", What: "system", Number: -1, Length: 2 * second}, ""},
		{text: "5s", err: "TIME:ACTION=WHAT"},
		{text: "5s:stop", err: "TIME:ACTION=WHAT"},
		{text: "5:stop=system,1s", err: "its time"},
		{text: "5s:stop=system", err: "has a length"},
		{text: "5s:stop=system,1", err: "its length"},
		{text: "5s:kill=system", err: "nothing is left"},
		{text: "5s:kill=leader,3s", err: "does not come back"},
		{text: "5s:restart=leader", err: "only the system"},
		{text: "5s:break=system", err: `"break" is not an action: they are stop, kill and restart`},
		{text: "5s:break=all,a,1s", err: "not an action"},
		{text: "5s:kill=broker", err: "not one of system"},
		{text: "5s:kill=pid", err: "lacks the process id"},
		{text: "5s:kill=pid:0", err: "not a number"},
		{text: "5s:kill=leader:x", err: "not a number"},
		{text: "5s:stop=system:1,1s", err: "not one of system"},
	} {
		got, err := fault.Parse(tt.text)
		switch {
		case tt.err != "":
			assert.ErrorHas(t, err, tt.err, "%s", tt.text)
		case err != nil || got != tt.want || got.String() != tt.name:
			t.Errorf("%s: got %+v (%s), %v, want %+v (%s)", tt.text, got, got.String(), err, tt.want, tt.name)
		}
	}
}

func TestParseMoment(t *testing.T) {
	for _, tt := range []struct {
		text string
		want fault.Moment
		ok   bool
	}{
		{"60s", fault.Moment{At: time.Minute, Kind: "fault"}, true},
		{"70s:heal", fault.Moment{At: 70 * time.Second, Kind: "heal"}, true},
		{"1s:note", fault.Moment{At: time.Second, Kind: "note"}, true},
		{"1s:end", fault.Moment{}, false},
		{"1", fault.Moment{}, false},
	} {
		got, err := fault.ParseMoment(tt.text)
		assert.True(t, (err == nil) == tt.ok && got == tt.want, "%s: got %+v, %v", tt.text, got, err)
	}
}

func TestOverlaps(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"5s:stop=system,2s", "6s:stop=leader,2s", true},
		{"5s:stop=system,2s", "7s:stop=system,2s", false},
		{"5s:stop=pid:7,2s", "6s:stop=pid:8,2s", false},
		{"5s:stop=pid:7,2s", "6s:stop=pid:7,1s", true},
		{"5s:stop=system,2s", "6s:restart=system,1s", true},
		{"5s:stop=system,2s", "6s:kill=leader", false},
		{"5s:restart=system,2s", "6s:restart=system,1s", false},
		{"5s:kill=leader", "5s:kill=leader", false},
	} {
		a := assert.Value(fault.Parse(tt.a))(t)
		b := assert.Value(fault.Parse(tt.b))(t)
		got := []bool{a.Overlaps(&b), b.Overlaps(&a)}
		assert.True(t, got[0] == tt.want && got[1] == tt.want, "%s and %s: got %v, want %v", tt.a, tt.b, got, tt.want)
	}
}

// TestLateEffect: what begins long after a fault is not of it, unless its heal is not long ago.
func TestLateEffect(t *testing.T) {
	for _, tt := range []struct {
		name     string
		stall    span
		marks    []fault.Mark
		observed float64
		noticed  bool
	}{
		{"at once", span{30 * second, 31 * second}, []fault.Mark{faultAt(30 * second)}, 170, true},
		{"within the minute", span{80 * second, 81 * second}, []fault.Mark{faultAt(30 * second)}, 170, true},
		{"long after", span{120 * second, 121 * second}, []fault.Mark{faultAt(30 * second)}, 60, false},
		{"soon after the heal", span{120 * second, 121 * second}, []fault.Mark{faultAt(30 * second), healAt(100 * second)}, 170, true},
		{"long after the heal", span{180 * second, 181 * second}, []fault.Mark{faultAt(30 * second), healAt(100 * second)}, 130, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			x := trial{rate: 100, each: 1000000, length: 200 * second, stalls: map[int][]span{-1: {tt.stall}}, marks: tt.marks}
			s := x.scores(t)[0]
			assert.Equal(t, s.ObservedS, tt.observed, "seconds observed")
			assert.Equal(t, s.Whole.Noticed != nil, tt.noticed, "noticed %v", s.Whole.Noticed)
			switch later := s.Later; {
			case tt.noticed && later != nil:
				t.Errorf("a later blackout of %+v, want none", later)
			case !tt.noticed && (later == nil || later.S < 0.9 || later.S > 1.1):
				t.Errorf("a later blackout of %+v, want 1 s", later)
			}
			assert.True(t, tt.noticed || s.Whole.Over == 0 && s.Whole.Back != nil && s.Whole.Back.S == 0 &&
				s.Whole.Blackout.S <= 1, "got %+v", s.Whole)
		})
	}
}
