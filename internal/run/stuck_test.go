package run

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"carronade/load"
	"carronade/protocol"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// TestWatchProgress: a run in which nothing moves says what it waits for, after
// 30 s and whenever the wait has doubled, and says when it continues. A run in
// which nothing should move prints nothing.
func TestWatchProgress(t *testing.T) {
	testkit.Need(t, "some seconds")
	slow := load.Constant(1.0 / 100)
	for _, tt := range []struct {
		name  string
		kind  fakeKind
		plan  load.Plan
		reads bool
		want  []string
	}{
		{"it goes on", fakeKind{}, load.Plan{}, false, nil},
		{"no answer", fakeKind{noAnswers: true}, load.Plan{}, false, []string{
			"30: no progress for 30 s; waiting for the answers to 5 events",
			"60: no progress for 1m00s; waiting for the answers to 5 events",
			"120: no progress for 2m00s; waiting for the answers to 5 events",
		}},
		{"a late answer", fakeKind{service: 75 * time.Second}, load.Plan{}, false, []string{
			"30: no progress for 30 s; waiting for the answers to 5 events",
			"60: no progress for 1m00s; waiting for the answers to 5 events",
			"75: the run continues, after 1m15s",
			"105: no progress for 30 s; waiting for the answers to 5 events, the newest answer came at 1m15s",
			"135: no progress for 1m00s; waiting for the answers to 5 events, the newest answer came at 1m15s",
			"150: the run continues, after 1m15s",
		}},
		{"nothing is taken", fakeKind{noRoom: true}, load.Plan{}, false, []string{
			"30: no progress for 30 s; waiting for a connection that takes events",
			"60: no progress for 1m00s; waiting for a connection that takes events",
			"120: no progress for 2m00s; waiting for a connection that takes events",
		}},
		{"an event in 100 s", fakeKind{}, load.Plan{Schedule: slow}, false, nil},
		{"an event in 100 s, and it is not taken", fakeKind{noRoom: true}, load.Plan{Schedule: load.Constant(1.0 / 10)}, false, []string{
			"30: no progress for 30 s; waiting for a connection that takes events, of which 4 have become due",
			"60: no progress for 1m00s; waiting for a connection that takes events, of which 7 have become due",
			"120: no progress for 2m00s; waiting for a connection that takes events, of which 13 have become due",
		}},
		{"a gate that allows nothing", fakeKind{}, load.Plan{Gate: load.NewGate()}, false, nil},
		{"no connection to read from", fakeKind{lostFrom: 1, lostUntil: time.Hour}, load.Plan{}, true, []string{
			"30: no progress for 30 s; waiting for the first events: no connection is open",
			"60: no progress for 1m00s; waiting for the first events: no connection is open",
			"120: no progress for 2m00s; waiting for the first events: no connection is open",
		}},
		{"nothing to read", fakeKind{}, load.Plan{}, true, []string{
			"30: no progress for 30 s; waiting for the first events",
			"60: no progress for 1m00s; waiting for the first events",
			"120: no progress for 2m00s; waiting for the first events",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := assert.Value(tt.kind.Open(t.Context(), protocol.Spec{}))(t)
				began := time.Now()
				var got []string
				e := &execution{Job: Job{Logf: func(format string, args ...any) {
					got = append(got, fmt.Sprintf("%d: ", time.Since(began)/time.Second)+fmt.Sprintf(format, args...))
				}}}
				var l progressFunc
				var end func()
				if tt.reads {
					r := load.NewReading(load.ReadPlan{Portable: true}, s.Source())
					r.Start()
					l, end = readingProgress(r, s.Source(), false), func() { r.Abort(); _, _ = r.Wait() }
				} else {
					tt.plan.Portable = true
					r := assert.Value(load.New(tt.plan, s.Target()))(t)
					r.Start()
					time.Sleep(time.Millisecond / 2)
					l, end = sendingProgress(r, s.Target()), func() { r.Abort(); _, _ = r.Wait() }
				}
				unguard := e.watchProgress(l)
				time.Sleep(155 * time.Second)
				unguard()
				end()
				assert.Same(t, got, tt.want, "said")
			})
		})
	}
}

// TestWatchedStages: progress is watched while a run opens its target, sends
// and reads.
func TestWatchedStages(t *testing.T) {
	for _, tt := range []struct {
		name      string
		kind      fakeKind
		set, want []string
	}{
		{"opening", fakeKind{openDelay: 40 * time.Second}, []string{"count=1"}, []string{"no progress for 30 s; waiting for a connection to fake://here"}},
		{"sending", fakeKind{service: 40 * time.Second}, []string{"count=1", "drain=1m"}, []string{"no progress for 30 s; waiting for the answers to 1 event"}},
		{"reading without an assignment", fakeKind{noAssignment: true}, []string{"op=consume", "for=40s"}, []string{"no progress for 30 s; waiting for the first events: no partitions are assigned, for 30 s in all"}},
		{"reading until nothing comes", fakeKind{}, []string{"op=consume", "idle-timeout=40s"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var got []string
				_, err := Execute(t.Context(), Job{
					Portable: true, Workload: resolve(t, &tt.kind, tt.set...),
					Logf: func(format string, args ...any) {
						mu.Lock()
						defer mu.Unlock()
						got = append(got, fmt.Sprintf(format, args...))
					},
				})
				assert.OK(t, err)
				// it may have ended before it said that it continues
				assert.NoDiff(t, cmp.Diff(tt.want, got[:min(len(got), 1)], cmpopts.EquateEmpty()), "said")
			})
		})
	}
}

// TestPendingIsNamed: the message includes what a target says about its
// connections.
func TestPendingIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := assert.Value((&fakeKind{noAnswers: true}).Open(t.Context(), protocol.Spec{}))(t)
		r := assert.Value(load.New(load.Plan{Portable: true}, s.Target()))(t)
		r.Start()
		time.Sleep(time.Second)
		_, waits := sendingProgress(r, wordy{s.Target()})()
		assert.Equal(t, waits(), "the answers to 5 events: 1; 2; 3; 4; 5; 6; 7; 8; and 2 more")
		r.Abort()
		_, _ = r.Wait()
	})
}

type wordy struct{ load.Target }

func (wordy) Pending() []string {
	return []string{"1", "2", "3", "4", "5", "6", "7", "8", "9", "10"}
}
