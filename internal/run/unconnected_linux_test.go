package run

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"carronade/internal/host"
	"carronade/internal/system"
	"carronade/internal/verdict/fault"
	"carronade/load"
	"carronade/protocol"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// TestUnconnected: a run whose own fault left no connection ends when none comes back, with the score
// of the fault, as if its system had ended.
func TestUnconnected(t *testing.T) {
	const ever = 24 * time.Hour
	for _, tt := range []struct {
		name        string
		from, until time.Duration // the connection is lost
		set         []string      // PID and OTHER are processes
		stopped     load.Reason
		least, most float64 // seconds of the measurement
		exit        int
	}{
		{"for good", 20 * time.Second, ever, []string{"fault=20s:kill=pid:PID"}, load.ByLoss, 80, 83, host.ExitUntrusted},
		{"for good, with a limit", 20 * time.Second, ever, []string{"fault=20s:kill=pid:PID", "slo=outage<30s"}, load.ByLoss, 80, 83, host.ExitUntrusted},
		{"for good, in a round trip", 20 * time.Second, ever, []string{"op=roundtrip", "fault=20s:kill=pid:PID"}, load.ByLoss, 80, 83, host.ExitUntrusted},
		{"until it is started again", 20 * time.Second, 70 * time.Second, []string{"fault=20s:kill=pid:PID"}, load.ByTime, 300, 300, host.ExitOK},
		{"but it did not end anything", 20 * time.Second, ever, []string{"fault=20s:stop=pid:PID,10s"}, load.ByTime, 300, 300, host.ExitOK},
		{"at the end of the measurement", 245 * time.Second, ever, []string{"fault=245s:kill=pid:PID"}, load.ByTime, 300, 300, host.ExitOK},
		{"until a later fault is over", 20 * time.Second, ever, []string{"fault=20s:kill=pid:PID", "fault=150s:stop=pid:OTHER,30s"}, load.ByLoss, 240, 243, host.ExitUntrusted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.most > 100 {
				testkit.Need(t, "a second")
			}
			named := strings.NewReplacer("PID", fmt.Sprint(sleeper(t)), "OTHER", fmt.Sprint(sleeper(t)))
			for i := range tt.set {
				tt.set[i] = named.Replace(tt.set[i])
			}
			synctest.Test(t, func(t *testing.T) {
				m := &fakeKind{perBatch: 1, consumeDelay: time.Millisecond, lostFrom: tt.from, lostUntil: tt.until}
				d, err := Execute(t.Context(), Job{Portable: true, Workload: resolve(t, m, append(tt.set, "rate=100/s", "for=5m", "drain=10s")...)})
				assert.OK(t, err)
				if e := d.Totals.ElapsedS; d.Stopped != tt.stopped || e < tt.least || e > tt.most {
					t.Errorf("ended by %s after %v s, want %s after %v to %v", d.Stopped, e, tt.stopped, tt.least, tt.most)
				}
				assert.Equal(t, d.Partial, tt.stopped == load.ByLoss, "cut short")
				assert.Equal(t, d.ExitCode(), tt.exit, "exit: %+v; %+v; %q", d.Trust, d.Checks, d.Problems)
				assert.Must(t, len(d.Faults.Scores) != 0, "the fault has no score")
				black := d.Faults.Scores[0].Whole.Blackout
				assert.True(t, black != nil && black.More != (tt.until < ever) && black.S >= 49, "the blackout is %+v", black)
			})
		})
	}
}

// TestUnconnectedReading: the same for a run that only reads, whose score says for how long nothing came.
func TestUnconnectedReading(t *testing.T) {
	const ever = 24 * time.Hour
	for _, tt := range []struct {
		name        string
		until       time.Duration // the connection is lost from 20 s on
		set         []string      // PID is a process
		stopped     load.Reason
		least, most float64 // seconds of the measurement
		exit        int
		blackout    float64
	}{
		{"for good", ever, []string{"fault=20s:kill=pid:PID"}, load.ByLoss, 80, 83, host.ExitUntrusted, 60},
		{"for good, with a limit", ever, []string{"fault=20s:kill=pid:PID", "slo=outage<30s"}, load.ByLoss, 80, 83, host.ExitUntrusted, 60},
		{"until it is started again", 70 * time.Second, []string{"fault=20s:kill=pid:PID"}, load.ByTime, 300, 300, host.ExitOK, 50},
		{"stopped, with a limit", 24 * time.Second, []string{"fault=20s:stop=pid:PID,4s", "slo=outage<5s"}, load.ByTime, 300, 300, host.ExitOK, 4},
		{"stopped for longer than it would wait", 50 * time.Second, []string{"fault=20s:stop=pid:PID,30s"}, load.ByTime, 300, 300, host.ExitOK, 30},
		{"marked, and silent", ever, []string{"at=20s", "exec=true"}, load.ByIdle, 30, 31, host.ExitOK, 10},
		{"stopped for too long", 28 * time.Second, []string{"fault=20s:stop=pid:PID,8s", "slo=outage<5s"}, load.ByTime, 300, 300, host.ExitBroken, 8},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for i := range tt.set {
				tt.set[i] = strings.ReplaceAll(tt.set[i], "PID", fmt.Sprint(sleeper(t)))
			}
			synctest.Test(t, func(t *testing.T) {
				m := &fakeKind{feed: 10 * time.Millisecond, lostFrom: 20 * time.Second, lostUntil: tt.until}
				d, err := Execute(t.Context(), Job{Portable: true, Workload: resolve(t, m, append(tt.set, "op=consume", "for=5m")...)})
				assert.OK(t, err)
				if e := d.Totals.ElapsedS; d.Stopped != tt.stopped || e < tt.least || e > tt.most {
					t.Errorf("ended by %s after %v s, want %s after %v to %v", d.Stopped, e, tt.stopped, tt.least, tt.most)
				}
				assert.Equal(t, d.Partial, tt.stopped == load.ByLoss, "cut short")
				assert.Equal(t, d.ExitCode(), tt.exit, "exit: %+v; %+v; %q", d.Trust, d.Checks, d.Problems)
				assert.Must(t, len(d.Faults.Scores) != 0, "the fault has no score")
				black := d.Faults.Scores[0].Whole.Blackout
				assert.True(t, black != nil && black.More != (tt.until < ever) && black.S >= tt.blackout-0.2 &&
					black.S <= tt.blackout+2, "the blackout is %+v, want %v s", black, tt.blackout)
				<-m.session.ended
			})
		})
	}
}

// A run that reads, and ends because nothing arrives, says that it had no connection.
func TestIdleWithoutConnection(t *testing.T) {
	for _, tt := range []struct {
		name string
		from time.Duration // the connection is lost
		want bool
	}{
		{"lost", 5 * time.Second, true},
		{"not known", 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &fakeKind{lostFrom: tt.from, lostUntil: time.Hour}
				if tt.from > 0 {
					m.feed = 10 * time.Millisecond
				}
				d := assert.Value(Execute(t.Context(), Job{Portable: true, Workload: resolve(t, m, "op=consume")}))(t)
				assert.Equal(t, d.Stopped, load.ByIdle, "ended by")
				const warning = "nothing arrived for 10s (--idle-timeout) because there was no connection: there may be more to read"
				assert.Equal(t, slices.Contains(d.Warnings, warning), tt.want, "whether it warns: %q", d.Warnings)
				<-m.session.ended
			})
		})
	}
}

// A nodes kind has targets with an address for each node.
type nodes struct{ protocol.Kind }

func (nodes) Capabilities() protocol.KindCapabilities {
	return protocol.KindCapabilities{DefaultPort: func(string) string { return "17" }}
}

// A surveyed session counts the final surveys.
type surveyed struct {
	protocol.Session
	n int
}

func (s *surveyed) Capabilities() protocol.SessionCapabilities {
	return protocol.SessionCapabilities{Survey: func(context.Context) error { s.n++; return nil }}
}

// TestEndOfSystem: the run goes on without its own system only if a fault of its own has ended that.
func TestEndOfSystem(t *testing.T) {
	testkit.Program(t, "sleep")
	for _, tt := range []struct {
		name, hosts string
		own         bool // the fault kills the system
		crashes     bool // the system ends by itself
		gone        bool // what the fault kills has ended before
		goesOn      bool
	}{
		{"its fault killed it", "a,b", true, false, false, true},
		{"the only address", "a", true, false, false, false},
		{"its fault killed another, and it ended by itself", "a,b", false, true, false, false},
		{"its fault reached nothing, and it ended by itself", "a,b", false, true, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := assert.Value(system.Start(t.Context(), system.Spec{Command: "sleep 1000"}))(t)
			t.Cleanup(func() { _ = s.Stop() })
			w := resolve(t, &fakeKind{}, "rate=100/s", "for=1h")
			w.Kind, w.URL = nodes{w.Kind}, &url.URL{Scheme: "fake", Host: tt.hosts}
			asked := &surveyed{}
			e := &execution{Job: Job{Workload: w}, system: &underTest{System: s}, session: asked}
			rec := fault.NewRecorder(time.Second, 1, 1, func(int32) int { return 0 })
			j := &injector{e: e, mark: &Marker{e: e, rec: rec, began: time.Now()}}
			assert.True(t, !e.goesOn() && e.endedAlone() == "", "it has ended before it did")
			pid := s.Members()[0]
			if !tt.own {
				pid = sleeper(t)
			}
			if tt.gone {
				pid = 1 << 30
			}
			j.signal(t.Context(), t.Context(), &fault.Fault{Action: fault.Kill, What: fault.PID, Number: pid})
			if tt.crashes {
				assert.OK(t, host.End(s.Members()[0]))
			}
			<-s.Died()
			assert.Equal(t, e.goesOn(), tt.goesOn, "whether it goes on")
			assert.Equal(t, e.endedAlone() == "", tt.goesOn, "whether the end was expected")
			var r load.Result
			e.interrupted(&r)
			assert.Equal(t, r.Stopped == load.Interrupted, tt.goesOn, "whether an interrupt of the waiting counts")
			e.survey(t.Context(), new(outcome))
			assert.Equal(t, asked.n == 1, tt.goesOn, "requests for the final state")
			asking := make(chan load.Reason, 1)
			over := make(chan struct{})
			end := sync.OnceFunc(func() { close(over) })
			if e.goesOn() {
				end()
			}
			e.stopFleet(t.Context(), func(why load.Reason) { asking <- why; end() }, over)
			assert.Equal(t, len(asking) == 0, tt.goesOn, "whether a fleet goes on")
		})
	}
}
