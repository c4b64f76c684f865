package load

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"carronade/test/testkit/assert"

	"github.com/google/go-cmp/cmp"
)

// A fakeFollower completes each read after a time, as an answer says.
type fakeFollower struct {
	takes  time.Duration
	answer func(o *Outcome)
	now    func() time.Duration
	done   func([]Outcome)
	mu     sync.Mutex
	most   int // reads at a time
	at     int
	began  []time.Duration
	open   map[uint64]Outcome
	// Reads from the event stuckAt on end only when the follower is stopped; 0: none.
	stuckAt uint64
}

func (*fakeFollower) Logs() []string { return []string{"log-0"} }

func (f *fakeFollower) Start(now func() time.Duration, done func([]Outcome)) {
	f.now, f.done, f.open = now, done, map[uint64]Outcome{}
}

func (f *fakeFollower) Read(sent []Outcome) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, o := range sent {
		f.at++
		f.most = max(f.most, f.at)
		o.Sent, o.Acked, o.Failed, o.Unknown = f.now(), o.Events, 0, 0
		f.began = append(f.began, o.Sent)
		f.open[o.Seq] = o
		if f.stuckAt > 0 && o.First >= f.stuckAt {
			continue
		}
		time.AfterFunc(f.takes, func() {
			f.mu.Lock()
			now, open := f.open[o.Seq]
			delete(f.open, o.Seq)
			f.at--
			f.mu.Unlock()
			if !open || now.First != o.First {
				return
			}
			o.Done = f.now()
			if f.answer != nil {
				f.answer(&o)
			}
			f.done([]Outcome{o})
		})
	}
}

func (*fakeFollower) Pending() []string { return nil }

func (f *fakeFollower) Stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, o := range f.open {
		o.Done, o.Acked, o.Unknown, o.Class = f.now(), 0, o.Events, Canceled
		f.done([]Outcome{o})
	}
	clear(f.open)
}

// fireStage runs a plan with a second stage.
func fireStage(t *testing.T, plan Plan, stage StagePlan, of *fakeFollower, target Target) (*Result, StageResult) {
	t.Helper()
	plan.Portable = true
	s := NewStage(stage, of, &plan)
	plan.Completed = func() { s.CatchUp(time.Second, nil) }
	r := assert.Value(New(plan, target))(t)
	s.Start(r)
	r.Start()
	res := assert.Value(r.Wait())(t)
	return res, s.Result(res)
}

// TestStage: each acked batch is read once, when it has been acked for the delay, and
// counts from its due time; failed ones are not read.
func TestStage(t *testing.T) {
	for _, delay := range []time.Duration{0, 20 * time.Second} {
		t.Run(fmt.Sprint(delay), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := 0
				f := newFake(Single(), 1, func(_ int, s Batch, at time.Duration) (time.Duration, Outcome) {
					if n++; n%10 == 0 {
						return at + time.Millisecond, Outcome{Failed: 1, Class: Rejected, Text: "no"}
					}
					return at + time.Millisecond, Outcome{}
				})
				var sent []time.Duration
				of := &fakeFollower{takes: 30 * time.Millisecond}
				plan := Plan{Schedule: Constant(1000), BatchEvents: 1, MaxInFlight: 100, Measurement: Limits{Events: 500}}
				stage := StagePlan{Name: "read", Delay: delay, Done: func(o, _ *Outcome) { sent = append(sent, o.Done+delay) }}
				res, got := fireStage(t, plan, stage, of, f)
				diff := cmp.Diff(sent, of.began)
				assert.True(t, diff == "" && len(sent) == 450, "%d reads; when reads began:\n%s", len(sent), diff)
				c := got.Counts
				if c.Offered != 450 || c.Sent != 450 || c.Acked != 450 || got.Unread+got.Missed != 0 || res.Measurement.Consumed != 450 {
					t.Errorf("counts %+v, unread %d, missed %d, consumed %d", c, got.Unread, got.Missed, res.Measurement.Consumed)
				}
				want := delay + 31*time.Millisecond
				if h := res.Measurement.EndToEnd; h.Count() != 450 || h.Min() > want || h.Max() < want || h.Max() > want+want/100 {
					t.Errorf("end to end %v to %v of %d, want %v of 450", h.Min(), h.Max(), h.Count(), want)
				}
				if h := got.Set.Response; h.Count() != 450 || h.Max() < 30*time.Millisecond || h.Max() > 31*time.Millisecond {
					t.Errorf("response of reads up to %v, of %d", h.Max(), h.Count())
				}
				assert.Equal(t, got.Set.SendDelay.Max(), 0, "reads that began late")
			})
		})
	}
}

// The number of reads in flight has a limit, and waiting for one of them is not the generator's delay.
func TestStageInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := &fakeFollower{takes: 10 * time.Millisecond}
		plan := Plan{Schedule: Constant(1000), BatchEvents: 1, MaxInFlight: 100, Measurement: Limits{Events: 100}}
		_, got := fireStage(t, plan, StagePlan{MaxInFlight: 2}, of, newFake(Single(), 1, constantly(time.Millisecond)))
		assert.True(t, of.most == 2 && got.Acked == 100, "%d reads at a time, %d read", of.most, got.Acked)
		late, response := got.Set.SendDelay.Max(), got.Set.Response.Max()
		assert.True(t, late == 0 && response >= 300*time.Millisecond, "late %v, response %v", late, response)
	})
}

// TestStageQueue: sending waits while as many events wait to be read as the queue holds.
func TestStageQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := &fakeFollower{takes: 10 * time.Millisecond}
		plan := Plan{BatchEvents: 1, MaxInFlight: 100, Measurement: Limits{Events: 100}}
		res, got := fireStage(t, plan, StagePlan{MaxInFlight: 1, Queue: 5}, of, newFake(Single(), 1, constantly(time.Millisecond)))
		if got.Acked != 100 || res.Measurement.InFlightPeak > 5 || res.Measurement.Length() < 900*time.Millisecond {
			t.Errorf("%d read, %d in flight at most, sent in %v", got.Acked, res.Measurement.InFlightPeak, res.Measurement.Length())
		}
	})
}

// Events that could not be read, were not read in time or have no place are counted apart.
func TestStageFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := &fakeFollower{takes: time.Millisecond, answer: func(o *Outcome) {
			if o.First%10 == 3 {
				o.Acked, o.Failed, o.Class, o.Text = 0, o.Events, Rejected, "deleted"
			}
		}, stuckAt: 90}
		plan := Plan{Schedule: Constant(1000), BatchEvents: 1, MaxInFlight: 100, Measurement: Limits{Events: 100}}
		f := newFake(Single(), 1, constantly(0))
		f.unplaced = 5
		_, got := fireStage(t, plan, StagePlan{MaxInFlight: 1}, of, f)
		if got.Missed != 5 || got.Classes["rejected"] != 8 || got.Unknown != 1 || got.Acked != 77 || got.Unread != 9 || got.Unsent != 9 || got.Text != "deleted" {
			t.Errorf("missed %d, classes %v, read %d, unread %d, unsent %d, text %q", got.Missed, got.Classes, got.Acked, got.Unread, got.Unsent, got.Text)
		}
	})
}

// What an event waits because the queue of reads is full is not the generator's delay.
func TestStageWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := &fakeFollower{takes: 10 * time.Millisecond}
		plan := Plan{Schedule: Constant(1000), BatchEvents: 1, MaxInFlight: 100, Measurement: Limits{Events: 500}}
		res, got := fireStage(t, plan, StagePlan{MaxInFlight: 5, Queue: 10}, of, newFake(Single(), 1, constantly(time.Millisecond)))
		m := &res.Measurement
		assert.True(t, got.Acked == 500 && m.Response.Max() >= 400*time.Millisecond,
			"%d read, response up to %v", got.Acked, m.Response.Max())
		late := m.SendDelay.Max()
		assert.True(t, late <= time.Millisecond, "sent %v late", late)
		if lower := m.Lower.Response; lower != nil && lower.Max() < m.Response.Max()-time.Millisecond {
			t.Errorf("response up to %v, its lower bound up to %v", m.Response.Max(), lower.Max())
		}
	})
}

// TestStageGivenUp: when waiting for reads ends early, no read begins or is counted later.
func TestStageGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := &fakeFollower{takes: 300 * time.Millisecond}
		plan := Plan{Schedule: Constant(1000), BatchEvents: 1, MaxInFlight: 100, Measurement: Limits{Events: 500}, Portable: true}
		s := NewStage(StagePlan{MaxInFlight: 50}, of, &plan)
		cancel := make(chan struct{})
		close(cancel)
		plan.Completed = func() { s.CatchUp(time.Hour, cancel) }
		r := assert.Value(New(plan, newFake(Single(), 1, constantly(time.Millisecond))))(t)
		s.Start(r)
		r.Start()
		res := assert.Value(r.Wait())(t)
		time.Sleep(time.Minute)
		got := s.Result(res)
		assert.True(t, got.Acked == res.Measurement.Consumed && res.Measurement.EndToEnd.Count() == got.Acked &&
			got.Acked+got.Unknown+got.Unread == 500 && got.Unread > 0,
			"%d read, %d consumed, %d end-to-end times, %d without an answer, %d unread",
			got.Acked, res.Measurement.Consumed, res.Measurement.EndToEnd.Count(), got.Unknown, got.Unread)
	})
}
