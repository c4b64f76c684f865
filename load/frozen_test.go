package load

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"carronade/measure"
	"carronade/test/testkit/assert"
)

// fake is a target in virtual time: one lane per client, which answers as the function answer says.
type fake struct {
	partitioner Partitioner
	clients     int
	sink        Sink
	lanes       []*fakeLane
	room        int
	groups      int    // batches of a batch group at most
	unplaced    uint64 // the first events have no place, the place of others is their number
	// From downFrom to downUntil lanes have no connection; both 0: they always have one.
	downFrom, downUntil time.Duration
	// answer returns when a batch written at a given time is answered, and how.
	answer func(lane int, s Batch, at time.Duration) (done time.Duration, o Outcome)
}

type fakeLane struct {
	f    *fake
	id   int
	mu   sync.Mutex
	open map[uint64]Batch
}

func newFake(partitioner Partitioner, clients int, answer func(lane int, s Batch, at time.Duration) (time.Duration, Outcome)) *fake {
	f := &fake{partitioner: partitioner, clients: clients, room: 1 << 20, answer: answer}
	for i := range clients {
		f.lanes = append(f.lanes, &fakeLane{f: f, id: i, open: map[uint64]Batch{}})
	}
	return f
}

func (f *fake) Partitioner() Partitioner       { return f.partitioner }
func (f *fake) Client(s int32) int             { return int(s) % f.clients }
func (f *fake) Clients() int                   { return f.clients }
func (f *fake) Start(s Sink)                   { f.sink = s }
func (f *fake) Route(s int32) Lane             { return f.lanes[f.Client(s)] }
func (f *fake) Wire() (written, read uint64)   { return 0, 0 }
func (*fake) Capabilities() TargetCapabilities { return TargetCapabilities{} }
func (l *fakeLane) ID() int                    { return l.id }
func (l *fakeLane) Room(int32, uint64) int     { return l.f.room }
func (l *fakeLane) Flush()                     {}

func (l *fakeLane) Capabilities() LaneCapabilities {
	return LaneCapabilities{BatchGroup: func(int32, uint64, int) int { return l.f.groups }}
}

// singles returns the batches that a batch group represents.
func singles(v Batch) []Batch {
	n := v.count()
	out := make([]Batch, n)
	for i := range out {
		s := v
		s.Batches, s.Events, s.Bytes = 0, v.Events/int32(n), v.Bytes/int64(n)
		s.Seq += uint64(i)
		s.First += uint64(i) * uint64(s.Events)
		out[i] = s
	}
	return out
}

func (l *fakeLane) Fire(batches []Batch) int {
	now := l.f.sink.Now()
	if now >= l.f.downFrom && now < l.f.downUntil {
		if l.f.downUntil != Never {
			time.AfterFunc(l.f.downUntil-now, func() { l.f.sink.Ready(l.id, l.f.downUntil) })
		}
		return 0
	}
	for i := range batches {
		batches[i].Bytes = int64(batches[i].Events) * 10
		var run Outcome // consecutive batches with the same result
		for _, s := range singles(batches[i]) {
			done, o := l.f.answer(l.id, s, now)
			o.Batch, o.Lane, o.Sent, o.Done, o.Place = s, int32(l.id), now, done, -1
			if s.First >= l.f.unplaced {
				o.Place = int64(s.First)
			}
			if o.Acked+o.Failed+o.Unknown == 0 {
				o.Acked = s.Events
			}
			l.mu.Lock()
			l.open[s.Seq] = s
			l.mu.Unlock()
			if run.Events > 0 && (run.Done != o.Done || run.Class != o.Class) {
				l.completeAt(run)
				run = Outcome{}
			}
			if run.Events == 0 {
				run = o
				continue
			}
			run.Batches = int32(run.count() + 1)
			run.Events += o.Events
			run.Bytes += o.Bytes
			run.Acked += o.Acked
			run.Failed += o.Failed
			run.Unknown += o.Unknown
		}
		l.completeAt(run)
	}
	return len(batches)
}

// completeAt completes the batch when its answer is due.
func (l *fakeLane) completeAt(o Outcome) {
	if o.Done == Never {
		return
	}
	time.AfterFunc(o.Done-l.f.sink.Now(), func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if _, ok := l.open[o.Seq]; !ok {
			return
		}
		for i := range o.count() {
			delete(l.open, o.Seq+uint64(i))
		}
		l.f.sink.Complete([]Outcome{o})
	})
}

func (l *fakeLane) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.open {
		l.f.sink.Complete([]Outcome{{Batch: s, Lane: int32(l.id), Sent: s.Free, Done: l.f.sink.Now(), Unknown: s.Events, Class: Canceled, Text: "closed", Place: -1}})
	}
	clear(l.open)
	return nil
}

// frozen answers each batch after 1 ms of service, except that for 500 ms from freeze on it neither works nor answers.
func frozen(freeze time.Duration) func(int, Batch, time.Duration) (time.Duration, Outcome) {
	const service, freezeLength = time.Millisecond, 500 * time.Millisecond
	return func(_ int, _ Batch, at time.Duration) (time.Duration, Outcome) {
		if at >= freeze && at < freeze+freezeLength {
			at = freeze + freezeLength
		}
		return at + service, Outcome{}
	}
}

func TestFrozenTarget(t *testing.T) {
	for _, tt := range []struct {
		name              string
		bound             int
		overload          Overload
		response, service uint64 // number over 20 ms
		dropped           uint64
	}{
		{"bound 1000", 1000, Queue, 97, 97, 0},
		{"bound 1, queue", 1, Queue, 121, 1, 0},
		{"bound 1, drop", 1, Drop, 1, 1, 100},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(Single(), 1, frozen(time.Second))
				res := assert.Value(Fire(t.Context(), Plan{
					Schedule: Constant(200), MaxInFlight: tt.bound, BatchEvents: 1,
					Overload: tt.overload, Measurement: Limits{Time: 3 * time.Second}, Portable: true,
				}, f))(t)
				h := &res.Measurement
				assert.Equal(t, h.Offered, 600, "offered")
				assert.Equal(t, over(h.Response), tt.response, "response times over 20 ms")
				assert.Equal(t, over(h.Service), tt.service, "service times over 20 ms")
				assert.Equal(t, h.Dropped, tt.dropped, "dropped")
				assert.True(t, h.Unsent == 0 && h.Failed == 0 && h.Unknown == 0,
					"unsent %d failed %d unknown %d, want none", h.Unsent, h.Failed, h.Unknown)
				assert.Equal(t, res.Stall.Longest, 501*time.Millisecond, "longest time without an answer")
				if s := res.Stall; s.Count != 1 || len(s.Spans) != 1 || s.Spans[0] != (measure.Span{At: s.LongestAt, Length: s.Longest}) {
					t.Errorf("got the stalls %+v, want the longest alone", s)
				}
				got := len(res.Intervals)
				assert.True(t, got == 4 || got == 3, "%d intervals, want 3 or 4", got)
			})
		})
	}
}

// The counterpart of TestFrozenTarget: the same 200 events/s, each answered 1 ms after it was sent, and the
// generator does not run for 500 ms, from the due time of an event on. Users would have seen 1 ms for each
// event. The upper values must show what was measured, and the lower ones what users would have seen.

const frozenAt, frozenFor = time.Second, 500 * time.Millisecond

// over counts the times above 20 ms.
func over(h *measure.Histogram) (n uint64) {
	h.EachBucket(func(top time.Duration, c uint64) {
		if top > 20*time.Millisecond {
			n += c
		}
	})
	return n
}

// stalled blocks the sending thread once, when it fires the event due at frozenAt.
type stalled struct {
	*fake
	done bool
}

type stalledLane struct {
	*fakeLane
	s *stalled
}

func (s *stalled) Route(n int32) Lane { return &stalledLane{s.lanes[s.Client(n)], s} }

func (l *stalledLane) Fire(batches []Batch) int {
	if !l.s.done && l.f.sink.Now() >= frozenAt {
		l.s.done = true
		time.Sleep(frozenFor)
	}
	return l.fakeLane.Fire(batches)
}

func serve(took time.Duration) func(int, Batch, time.Duration) (time.Duration, Outcome) {
	return func(_ int, _ Batch, at time.Duration) (time.Duration, Outcome) { return at + took, Outcome{} }
}

func TestFrozenSender(t *testing.T) {
	for _, tt := range []struct {
		name               string
		bound              int
		response, sendSlow uint64 // over 20 ms
	}{
		// The events due in the freeze are sent at its end: the first 0.5 s late, each
		// following one 5 ms less: 97 by 20 ms or more, whose cell ends above 20 ms.
		{"bound 1000", 1000, 97, 97},
		// One at a time, the backlog of 100 shrinks by one in 1.25 ms: as for the frozen target, 121 events
		// wait for longer than 20 ms. Only the first was sent late; the others found the bound full.
		{"bound 1", 1, 121, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &stalled{fake: newFake(Single(), 1, serve(time.Millisecond))}
				res := assert.Value(Fire(t.Context(), Plan{
					Schedule: Constant(200), MaxInFlight: tt.bound, BatchEvents: 1,
					Measurement: Limits{Time: 3 * time.Second}, Portable: true,
				}, f))(t)
				h := &res.Measurement
				assert.Equal(t, over(h.Response), tt.response, "response times over 20 ms")
				assert.Equal(t, over(h.SendDelay), tt.sendSlow, "send delays over 20 ms")
				assert.Equal(t, h.SendDelay.Count(), 600, "send delays")
				for name, low := range map[string]*measure.Histogram{"response": h.Lower.Response, "service": h.Lower.Service} {
					got := low.Max()
					assert.True(t, got <= time.Millisecond, "lower value of %s: %v at most, want 1 ms", name, got)
					assert.Equal(t, low.Percentile(50), time.Millisecond, "lower value of %s: p50", name)
					if got := low.Count(); got < 400 {
						t.Errorf("lower value of %s: %d recorded, want most of 600", name, got)
					}
				}
				if got := res.Freezes; got.Count != 1 || got.Total != frozenFor || got.Longest[0].At != frozenAt || got.Longest[0].Who != frozeSending {
					t.Errorf("freezes: got %+v, want one of the sending thread, %v at %v", got, frozenFor, frozenAt)
				}
			})
		})
	}
}

// The reader of the answers does not run: they arrived 1 ms after they were sent, and are read at the end of
// the freeze. That is neither service time of the system nor, if the bound was full, its queueing.
func TestFrozenReader(t *testing.T) {
	for _, tt := range []struct {
		name                        string
		bound                       int
		stated                      bool // the reader reports since when answers may have waited; else the watchdog does
		response, service, sendSlow uint64
	}{
		{"bound 1000", 1000, true, 97, 97, 0},
		{"bound 1000, seen by the watchdog", 1000, false, 97, 97, 0},
		// The event in flight completes at the end of the freeze, though its answer arrived after 1 ms: all
		// events due in between could have been sent from then on.
		{"bound 1", 1, true, 121, 1, 96},
		{"bound 1, seen by the watchdog", 1, false, 121, 1, 96},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const thaw = frozenAt + frozenFor
				answer := func(_ int, _ Batch, at time.Duration) (time.Duration, Outcome) {
					o := Outcome{}
					done := at + time.Millisecond
					if done > frozenAt && done < thaw {
						if tt.stated {
							o.Earliest = frozenAt // when it last read
						}
						done = thaw
					}
					return done, o
				}
				f := newFake(Single(), 1, answer)
				r := assert.Value(New(Plan{
					Schedule: Constant(200), MaxInFlight: tt.bound, BatchEvents: 1,
					Measurement: Limits{Time: 3 * time.Second}, Portable: true,
				}, f))(t)
				r.Start()
				if !tt.stated {
					time.AfterFunc(thaw-time.Nanosecond, func() { r.watchdog.note(frozeProcess, frozenAt, thaw) })
				}
				res := assert.Value(r.Wait())(t)
				h := &res.Measurement
				assert.Equal(t, over(h.Response), tt.response, "response times over 20 ms")
				assert.Equal(t, over(h.Service), tt.service, "service times over 20 ms")
				if got := over(h.SendDelay); got < min(tt.sendSlow, 1) || tt.sendSlow == 0 && got > 0 {
					t.Errorf("%d send delays over 20 ms, want about %d", got, tt.sendSlow)
				}
				got := h.Lower.Service.Max()
				assert.True(t, got <= time.Millisecond, "lower value of service: %v at most, want 1 ms", got)
				got = h.Lower.Response.Percentile(99)
				assert.True(t, got <= time.Millisecond, "lower value of response: p99 %v, want 1 ms", got)
				got = res.Stall.Longest
				assert.True(t, got <= 20*time.Millisecond, "longest time without an answer %v, but the system answered all the time", got)
			})
		})
	}
}

// Delays caused by the system are not attributed to the generator: upper and lower values agree.
func TestFrozenTargetIsNotBlamed(t *testing.T) {
	for _, bound := range []int{1, 1000} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake(Single(), 1, frozen(time.Second))
			res := assert.Value(Fire(t.Context(), Plan{
				Schedule: Constant(200), MaxInFlight: bound, BatchEvents: 1,
				Measurement: Limits{Time: 3 * time.Second}, Portable: true,
			}, f))(t)
			h := &res.Measurement
			if !h.Response.Equal(h.Lower.Response) || !h.Service.Equal(h.Lower.Service) {
				t.Errorf("bound %d: upper and lower values differ: response %v and %v at p99", bound, h.Response.Percentile(99), h.Lower.Response.Percentile(99))
			}
			assert.True(t, res.Freezes.Count == 0 && h.SendDelay.Max() <= 0,
				"bound %d: %d freezes, send delay up to %v, want none", bound, res.Freezes.Count, h.SendDelay.Max())
		})
	}
}
