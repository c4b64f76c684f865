package run

import (
	"context"
	"net/url"
	"sync"
	"testing"
	"time"

	"carronade/internal/host"
	"carronade/internal/system"
	"carronade/internal/verdict/fault"
	"carronade/load"
	"carronade/protocol"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// A nodes kind has targets with an address for each node.
type nodes struct{ protocol.Kind }

func (nodes) DefaultPort(string) string { return "17" }

// A surveyed session counts the final surveys.
type surveyed struct {
	protocol.Session
	n int
}

func (s *surveyed) Survey(context.Context) error { s.n++; return nil }

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
