package load

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"carronade/measure"
	"carronade/test/testkit/assert"
)

// fake is a target in virtual time: one lane per client, which answers as the function
// answer says.
type fake struct {
	partitioner Partitioner
	clients     int
	sink        Sink
	lanes       []*fakeLane
	room        int
	groups      int    // batches of a batch group at most
	unplaced    uint64 // the first events have no place, the place of others is their number
	// From downFrom to downUntil lanes have no connection; both 0: they always have
	// one.
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

func (f *fake) Partitioner() Partitioner     { return f.partitioner }
func (f *fake) Client(s int32) int           { return int(s) % f.clients }
func (f *fake) Clients() int                 { return f.clients }
func (f *fake) Start(s Sink)                 { f.sink = s }
func (f *fake) Route(s int32) Lane           { return f.lanes[f.Client(s)] }
func (f *fake) Wire() (written, read uint64) { return 0, 0 }

func (l *fakeLane) ID() int                { return l.id }
func (l *fakeLane) Room(int32, uint64) int { return l.f.room }
func (l *fakeLane) Flush()                 {}

func (l *fakeLane) BatchGroup(int32, uint64, int) int { return l.f.groups }

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

// frozen answers each batch after 1 ms of service, except that for 500 ms from freeze
// on it neither works nor answers.
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
				res, err := Fire(t.Context(), Plan{
					Schedule: Constant(200), MaxInFlight: tt.bound, BatchEvents: 1,
					Overload: tt.overload, Measurement: Limits{Time: 3 * time.Second}, Portable: true,
				}, f)
				assert.OK(t, err)
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
