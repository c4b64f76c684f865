package load

import (
	"testing"
	"time"
)

// instant is a target that answers at once, so that what is left is the
// engine.
type instant struct {
	sink Sink
	out  []Outcome
	room int
	most int // shots of a volley
}

func (n *instant) Deal() Deal                   { return Single() }
func (n *instant) Client(int32) int             { return 0 }
func (n *instant) Clients() int                 { return 1 }
func (n *instant) Start(s Sink)                 { n.sink = s }
func (n *instant) Route(int32) Lane             { return n }
func (n *instant) Wire() (written, read uint64) { return 0, 0 }
func (n *instant) ID() int                      { return 0 }
func (n *instant) Room(int32, uint64) int       { return n.room }
func (n *instant) Close() error                 { return nil }

func (n *instant) Volley(int32, uint64, int) int { return n.most }

func (n *instant) Fire(shots []Shot) int {
	now := n.sink.Now()
	for i := range shots {
		shots[i].Bytes = 100
		n.out = append(n.out, Outcome{Shot: shots[i], Sent: now, Done: now, Acked: shots[i].Events, Place: -1})
	}
	return len(shots)
}

func (n *instant) Flush() {
	n.sink.Settle(n.out)
	n.out = n.out[:0]
}

// BenchmarkShot is what the engine costs for each shot: composed, fired,
// settled and recorded on every clock.
func BenchmarkShot(b *testing.B) {
	for _, bb := range []struct {
		name string
		plan Plan
		room int
		most int
	}{
		{"full speed, one event", Plan{EventsPerShot: 1, MaxInFlight: 256}, 1, 0},
		{"full speed, one event, in volleys", Plan{EventsPerShot: 1, MaxInFlight: 256}, 1, 128},
		{"open loop, one event", Plan{Schedule: Constant(1e12), EventsPerShot: 1, MaxInFlight: 256}, 1, 0},
		{"open loop, 1000 events", Plan{Schedule: Constant(1e12), MaxInFlight: 5}, 1000, 0},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			bb.plan.Hold = Limits{Events: uint64(b.N * bb.room)}
			start := time.Now()
			r, err := Fire(b.Context(), bb.plan, &instant{room: bb.room, most: bb.most})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(r.Hold.Acked)/time.Since(start).Seconds()/1e6, "Mevents/s")
		})
	}
}

// BenchmarkDropHeld is a look at a lane that takes no more, where thousands of
// stripes have events waiting that the buffer still holds.
func BenchmarkDropHeld(b *testing.B) {
	const stripes = 4096
	for _, s := range []struct {
		name string
		of   Schedule
	}{{"constant", Constant(1e6)}, {"sine", Sine(1e6, 5e5, time.Minute)}} {
		b.Run(s.name, func(b *testing.B) {
			f := newFake(RoundRobin(stripes), 1, nil)
			r, err := New(Plan{Schedule: s.of, EventsPerShot: 1, MaxInFlight: 1, Overload: Drop, BufferBytes: 1 << 30, EventBytes: 100, Hold: Limits{Time: time.Hour}}, f)
			if err != nil {
				b.Fatal(err)
			}
			t := newThread(r, 0, 1)
			ls := &laneState{Lane: f.lanes[0], full: true}
			t.byID[0], t.lanes = ls, append(t.lanes, ls)
			for i := range int32(stripes) {
				s := &stripe{id: i, end: 1 << 40}
				s.ready = t.readyAt(s)
				t.enqueue(s, 0)
			}
			now := time.Second
			b.ReportAllocs()
			for b.Loop() {
				if now += time.Microsecond; now == 2*time.Second {
					now = time.Second // before anything is too much
				}
				t.drop(ls.queue, now)
			}
			if ls.queue.n != stripes {
				b.Fatalf("%d stripes wait, want %d", ls.queue.n, stripes)
			}
		})
	}
}
