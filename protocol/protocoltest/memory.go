package protocoltest

import (
	"maps"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"carronade/load"
)

// Memory checks how many bytes of Go memory, heap and stacks, a connection takes beyond
// the first few. It compares two numbers of connections, each of which has sent some
// events and is idle since. The system should be another process, since the memory of
// this one is measured; for the same reason no other test may run at the same time.
func (s System) Memory(t *testing.T, few, many int, most int64) {
	t.Helper()
	before, after := s.memory(t, few), s.memory(t, many)
	each := (after - before) / int64(many-few)
	t.Logf("%d connections take %d KiB, %d take %d KiB; each %.1f KiB", few, before>>10, many, after>>10, float64(each)/1024)
	if most = int64(float64(most) * memoryFactor); each > most {
		t.Errorf("a connection takes %d bytes, want at most %d", each, most)
	}
}

// memory returns the Go memory that a number of used connections take.
func (s System) memory(t *testing.T, connections int) int64 {
	t.Helper()
	options := maps.Clone(s.Options)
	if options == nil {
		options = map[string]string{}
	}
	options["clients"] = strconv.Itoa(connections)
	s.Options = options
	before := goMemory()
	sess := s.open(t)
	defer sess.Close()
	events := 4 * connections
	var answered atomic.Int64
	used := make(chan struct{})
	run, err := load.New(load.Plan{
		Schedule: &pausing{Schedule: load.Constant(4000), events: uint64(events)}, BatchEvents: 1, MaxInFlight: 16,
		Measurement: load.Limits{Time: quiet},
		Observe: func(out []load.Outcome) {
			for i := range out {
				n := int64(out[i].Events)
				if now := answered.Add(n); now >= int64(events) && now-n < int64(events) {
					close(used)
				}
			}
		},
	}, sess.Target())
	if err != nil {
		t.Fatal(err)
	}
	run.Start()
	select {
	case <-used:
	case <-run.Done():
		t.Error("the run ended before every connection was used")
	case <-time.After(2 * time.Minute):
		t.Errorf("%d events were answered in two minutes, want %d", answered.Load(), events)
	}
	taken := goMemory() - before
	run.Abort()
	if _, err := run.Wait(); err != nil {
		t.Fatal(err)
	}
	return taken
}

// quiet is when a pausing schedule goes on: after the test.
const quiet = time.Hour

// A pausing schedule has some events, and then none for a long time.
type pausing struct {
	load.Schedule
	events uint64
}

// Due implements load.Schedule.
func (p *pausing) Due(n uint64) time.Duration {
	if n < p.events {
		return p.Schedule.Due(n)
	}
	return quiet - time.Second + p.Schedule.Due(n-p.events)
}

// Count implements load.Schedule.
func (p *pausing) Count(at time.Duration) uint64 {
	if late := quiet - time.Second; at > late {
		return p.events + p.Schedule.Count(at-late)
	}
	return min(p.events, p.Schedule.Count(at))
}

// goMemory returns the bytes that live objects and stacks take.
func goMemory() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what the first one left in pools
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
