package run

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"carronade/internal/host"
	"carronade/internal/verdict/fault"
	"carronade/load"
	"carronade/protocol"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// A run in which nothing moves says what it waits for, after 30 s and whenever the wait has doubled, and says
// when it continues. A run in which nothing should move prints nothing.
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
			"60: no progress for 1m00s; waiting for the answers to 5 events", "75: the run continues, after 1m15s",
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
			"30: no progress for 30 s; waiting for the first events", "60: no progress for 1m00s; waiting for the first events",
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

// Progress is watched while a run opens its target, sends and reads.
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
				assert.Value(Execute(t.Context(), Job{
					Portable: true, Workload: resolve(t, &tt.kind, tt.set...),
					Logf: func(format string, args ...any) {
						mu.Lock()
						defer mu.Unlock()
						got = append(got, fmt.Sprintf(format, args...))
					},
				}))(t)
				// it may have ended before it said that it continues
				assert.NoDiff(t, cmp.Diff(tt.want, got[:min(len(got), 1)], cmpopts.EquateEmpty()), "said")
			})
		})
	}
}

// The message includes what a target says about its connections.
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

func (wordy) Capabilities() load.TargetCapabilities {
	return load.TargetCapabilities{Pending: func() []string { return []string{"1", "2", "3", "4", "5", "6", "7", "8", "9", "10"} }}
}

// TestEndsWithItsSystem: a run whose system has died ends at once. It waits for
// the last answers for well below a second, even if none come any more.
func TestEndsWithItsSystem(t *testing.T) {
	for _, tt := range []struct {
		name string
		mute bool
		most time.Duration
	}{{"all is answered", false, time.Millisecond}, {"nothing is answered", true, lastAnswers}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &fakeKind{noAnswers: tt.mute}
				s := assert.Value(m.Open(t.Context(), protocol.Spec{}))(t)
				r, err := load.New(load.Plan{Schedule: load.Constant(1000), Measurement: load.Limits{Time: time.Hour}, Drain: time.Hour, Portable: true}, s.Target())
				assert.OK(t, err)
				died := make(chan struct{})
				var at time.Time
				time.AfterFunc(10*time.Second, func() { at = time.Now(); close(died) })
				r.Start()
				(&execution{}).await(t.Context(), r, died)
				res, err := r.Wait()
				assert.Must(t, err == nil || tt.mute, "%v", err) // it completes nothing, which is an error
				took := time.Since(at)
				assert.True(t, took <= tt.most && took <= time.Second/2, "it ended %v after its system, want %v at most", took, tt.most)
				assert.Equal(t, res.Stopped, load.BySystem, "stopped by")
			})
		})
	}
}

// Limits of --slo are in the report and decide the exit code, and those on the delivery read events back.
func TestLimits(t *testing.T) {
	for _, c := range []struct {
		name string
		kind fakeKind
		set  []string
		exit int
		text string // of the first check that is not OK, else of the last
	}{
		{"holds", fakeKind{perBatch: 1}, []string{"rate=100/s", "for=5s", "slo=p99<20ms", "slo=throughput>=90/s"}, host.ExitOK, "100/s"},
		{"broken", fakeKind{perBatch: 1, service: 40 * time.Millisecond}, []string{"rate=100/s", "for=5s", "slo=throughput>=50/s", "slo=p99<20ms"}, host.ExitBroken, "40"},
		{"service without a schedule", fakeKind{perBatch: 1}, []string{"concurrency=1", "count=100", "slo=p99<500us"}, host.ExitBroken, "service 1"},
		{"delivery", fakeKind{perBatch: 1, consumeDelay: time.Millisecond}, []string{"rate=100/s", "for=5s", "slo=lost=0"}, host.ExitOK, "0"},
		{"keeps up", fakeKind{perBatch: 1, consumeDelay: time.Millisecond}, []string{"op=roundtrip", "rate=100/s", "for=10s", "slo=keeps-up"}, host.ExitOK, "the backlog was 0 events"},
		{"does not keep up", fakeKind{perBatch: 1, consumeDelay: 40 * time.Second}, []string{"op=roundtrip", "rate=100/s", "for=10s", "slo=keeps-up"}, host.ExitBroken, "nothing is read: the backlog grew"},
		{"too short to be steady", fakeKind{perBatch: 1}, []string{"rate=100/s", "for=2s", "slo=steady"}, host.ExitCannotTell, "too short"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := assert.Value(Execute(t.Context(), Job{Portable: true, Workload: resolve(t, &c.kind, c.set...)}))(t)
				text := ""
				for _, l := range d.Checks {
					if text = l.Text; !l.OK {
						break
					}
				}
				code := d.ExitCode()
				assert.True(t, code == c.exit && strings.Contains(text, c.text), "exit %d, %q; want %d, %q (%+v)", code, text, c.exit, c.text, d.Trust)
			})
		})
	}
}

// A limit that is broken ends the run after its delay, in a run with steps at the step that breaks it.
func TestAbortOnFail(t *testing.T) {
	for _, c := range []struct {
		name        string
		set         []string
		stopped     load.Reason
		least, most float64 // seconds of the measurement
	}{
		{"at once", []string{"rate=100/s", "for=60s", "slo=p90<20ms", "abort-on-fail=0s"}, load.ByLimit, 1, 3},
		{"after a delay", []string{"rate=100/s", "for=60s", "slo=p90<20ms", "abort-on-fail=10s"}, load.ByLimit, 10, 13},
		{"too few events for the percentile", []string{"rate=1/s", "for=60s", "slo=p90<20ms", "abort-on-fail=0s"}, load.ByTime, 60, 60},
		{"nothing is answered", []string{"rate=100/s", "for=60s", "drain=1s", "slo=p90<3s", "abort-on-fail=0s"}, load.ByLimit, 3, 9},
		{"not requested", []string{"rate=100/s", "for=20s", "slo=p90<20ms"}, load.ByTime, 20, 20},
		{"holds", []string{"rate=100/s", "for=20s", "slo=p90<50ms", "abort-on-fail=0s"}, load.ByTime, 20, 20},
		{"holds, and the warm-up ends late in an interval", []string{"rate=100/s", "warmup=900ms", "for=5s", "slo=throughput>=90/s", "abort-on-fail=0s"}, load.ByTime, 5, 5},
		{"holds, and answers come in the drain", []string{"rate=100/s", "for=5s", "drain=60s", "slo=target-share>=40%", "abort-on-fail=0s"}, load.ByTime, 5, 5},
		{"step", []string{"shape=steps(100/s:10s,200/s:10s,400/s:10s)", "slo=target-share>=99%", "max-in-flight=10", "batch-events=1", "abort-on-fail=0s"}, load.ByLimit, 19, 23},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &fakeKind{perBatch: 1, service: 40 * time.Millisecond, noAnswers: c.name == "nothing is answered"}
				if c.name == "holds, and answers come in the drain" {
					m.service = 2 * time.Second
					c.set = append(c.set, "max-in-flight=1000")
				}
				d := assert.Value(Execute(t.Context(), Job{Portable: true, Workload: resolve(t, m, c.set...)}))(t)
				if e := d.Totals.ElapsedS; d.Stopped != c.stopped || e < c.least || e > c.most {
					t.Errorf("ended by %s after %v s, want %s after %v to %v", d.Stopped, e, c.stopped, c.least, c.most)
				}
				if c.name == "nothing is answered" {
					return // the end of such a target is an error
				}
				want := host.ExitOK // also with steps: the last one that holds the limit is the answer
				if !strings.Contains(c.name, "step") && !strings.HasPrefix(c.name, "holds") {
					want = host.ExitBroken
				}
				assert.Equal(t, d.ExitCode(), want, "exit: %+v", d.Checks)
			})
		})
	}
}

// TestPauseEndsLater: a pause that could not be ended stays known, is tried again, and the report says what
// became of it, with the command that does it by hand. It has a heal if it has the fault.
func TestPauseEndsLater(t *testing.T) {
	failure := errors.New("no lock")
	for _, tt := range []struct {
		name     string
		failures int
		marked   bool // the fault was made
		exit     bool // the program exits without waiting
		left     bool
		heals    int
		want     string
	}{
		{"at the end", 1, true, false, false, 1, "--fault stop system was undone only when the run had ended: no lock"},
		{"at the end, made in part", 1, false, false, false, 0, "--fault stop system was undone only when the run had ended: no lock"},
		{"never", 9, true, false, true, 0, "--fault stop system was not undone: no lock; by hand: docker unpause b"},
		{"at an exit", 2, true, true, false, 0, ""},
		{"not at an exit", 9, true, true, true, 0, "--fault stop system was not undone: no lock; by hand: docker unpause b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			printed := ""
			e := &execution{Job: Job{
				Workload: resolve(t, &fakeKind{}, "rate=100/s", "for=1h"),
				Logf:     func(_ string, args ...any) { printed, _ = args[0].(string) },
			}}
			rec := fault.NewRecorder(time.Second, 1, 1, func(int32) int { return 0 })
			left := tt.failures
			p := &pause{fault: "stop system", marked: tt.marked, byHand: "docker unpause b", end: func() error {
				if left == 0 {
					return nil
				}
				left--
				return failure
			}}
			j := &injector{e: e, mark: &Marker{e: e, rec: rec, began: time.Now()}, pauses: map[*pause]bool{p: true}}
			err := j.endPause(p)
			assert.Must(t, errors.Is(err, failure) && j.pauses[p], "got %v, and it is known: %v", err, j.pauses[p])
			if tt.exit {
				j.release()
			} else {
				j.endPauses()
				printed = strings.Join(j.problems, "; ")
			}
			assert.Equal(t, printed, tt.want)
			assert.Equal(t, j.pauses[p], tt.left, "whether it is among those that have not ended")
			marks := rec.Marks()
			assert.True(t, len(marks) == tt.heals, "the marks are %+v, want %d", marks, tt.heals)
		})
	}
}

// A returner can do what its target can, and its lanes what the lanes of the target can.
func TestReturnerCapabilities(t *testing.T) {
	of := wordy{fakeTarget{&fakeSession{m: &fakeKind{}}}}
	r := &returner{Target: of, lanes: map[load.Lane]*returnerLane{}}
	assert.Equal(t, len(r.Capabilities().Pending()), len(of.Capabilities().Pending()))
	of.Target = preparing{of.Target, preparedLane{fakeLane{}}}
	assert.True(t, (&returner{Target: of, lanes: map[load.Lane]*returnerLane{}}).Route(0).Capabilities().Prepare != nil, "its lanes cannot be prepared")
}

type preparing struct {
	load.Target
	lane load.Lane
}

func (p preparing) Route(int32) load.Lane { return p.lane }

type preparedLane struct{ load.Lane }

func (preparedLane) Capabilities() load.LaneCapabilities {
	return load.LaneCapabilities{Prepare: func() {}}
}
