package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"runtime/metrics"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"carronade/test/testkit/assert"
)

// A fakeMachine is the files with the counters of a machine.
type fakeMachine struct {
	fs fstest.MapFS
	at time.Duration
}

func (m *fakeMachine) set(name, text string) { m.fs[name] = &fstest.MapFile{Data: []byte(text)} }

func newFakeMachine(unified bool) *fakeMachine {
	m := &fakeMachine{fs: fstest.MapFS{}}
	if unified {
		m.set("proc/self/cgroup", "0::/\n")
		m.set("sys/fs/cgroup/cgroup.controllers", "cpu\n")
		m.set("sys/fs/cgroup/cpu.stat", "usage_usec 5\nnr_throttled 3\nthrottled_usec 1000000\n")
	} else {
		m.set("proc/self/cgroup", "3:cpu,cpuacct:/x\n")
		m.set("sys/fs/cgroup/cpu,cpuacct/x/cpu.stat", "nr_throttled 3\nthrottled_time 1000000000\n")
	}
	m.set("proc/stat", "cpu  100 0 50 1000 20 0 5 10 7 7\ncpu0 1\n")
	m.set("proc/self/stat", "7 (car) x) S 1 1 1 0 -1 0 9 0 4 0 60 40 0 0 20 0 3 0 11 22 33\n")
	m.set("proc/self/task/7/schedstat", "100 5000000000 9\n")
	m.set("proc/self/task/8/schedstat", "100 0 9\n")
	return m
}

func TestCauses(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct {
		name   string
		v1     bool
		happen func(m *fakeMachine, c *Causes)
		length time.Duration
		want   string
	}{
		{"nothing", false, func(*fakeMachine, *Causes) {}, 50 * ms, ""},
		{"throttled", false, func(m *fakeMachine, _ *Causes) {
			m.set("sys/fs/cgroup/cpu.stat", "nr_throttled 4\nthrottled_usec 1080000\n")
			m.set("proc/self/task/8/schedstat", "100 80000000 9\n") // its threads waited meanwhile
		}, 90 * ms, "throttled by the container's processor limit for 80 ms"},
		{"throttled by version 1", true, func(m *fakeMachine, _ *Causes) {
			m.set("sys/fs/cgroup/cpu,cpuacct/x/cpu.stat", "nr_throttled 4\nthrottled_time 1160000000\n")
		}, 90 * ms, "throttled by the container's processor limit for 90 ms"}, // on two processors
		{"throttled for a small part", false, func(m *fakeMachine, _ *Causes) {
			m.set("sys/fs/cgroup/cpu.stat", "throttled_usec 1080000\n")
		}, 200 * ms, ""},
		{"steal", false, func(m *fakeMachine, _ *Causes) { m.set("proc/stat", "cpu  100 0 50 1000 20 0 5 14 7 7\n") }, 60 * ms, "the hypervisor ran other guests for 40 ms"},
		{"others", false, func(m *fakeMachine, _ *Causes) {
			m.set("proc/stat", "cpu  190 0 50 1000 20 0 5 10 7 7\n")
			m.set("proc/self/stat", "7 (car) x) S 1 1 1 0 -1 0 9 0 4 0 70 40 0 0 20 0 3 0 11 22 33\n")
			m.set("proc/self/task/7/schedstat", "100 5045000000 9\n")
			m.set("proc/self/task/9/schedstat", "100 20000000 9\n") // a new one
		}, 50 * ms, "other processes used the processors: a thread waited 45 ms for one"},
		{"its own threads", false, func(m *fakeMachine, _ *Causes) {
			m.set("proc/stat", "cpu  190 0 50 1000 20 0 5 10 7 7\n")
			m.set("proc/self/stat", "7 (car) x) S 1 1 1 0 -1 0 9 0 4 0 120 40 0 0 20 0 3 0 11 22 33\n")
			m.set("proc/self/task/7/schedstat", "100 5045000000 9\n")
		}, 50 * ms, "there were too few processors for its own threads: a thread waited 45 ms for one"},
		{"many short waits", false, func(m *fakeMachine, _ *Causes) {
			m.set("proc/self/task/7/schedstat", "100 5020000000 9\n")
			m.set("proc/self/task/8/schedstat", "100 20000000 9\n")
		}, 50 * ms, ""},
		{"page faults", false, func(m *fakeMachine, _ *Causes) {
			m.set("proc/self/stat", "7 (car) x) S 1 1 1 0 -1 0 9 0 404 0 60 40 0 0 20 0 3 0 11 22 33\n")
		}, 80 * ms, "its memory was paged in from disk: 400 page faults"},
		{"a page fault", false, func(m *fakeMachine, _ *Causes) {
			m.set("proc/self/stat", "7 (car) x) S 1 1 1 0 -1 0 9 0 5 0 60 40 0 0 20 0 3 0 11 22 33\n")
		}, 80 * ms, ""},
		{"stopped", false, func(m *fakeMachine, c *Causes) {
			c.continued = func() time.Duration { return m.at - 2*ms }
			m.set("proc/self/task/7/schedstat", "100 5300000000 9\n")
		}, 300 * ms, "stopped and continued"},
		{"stopped long before", false, func(m *fakeMachine, c *Causes) {
			c.continued = func() time.Duration { return m.at - 301*ms }
		}, 300 * ms, ""},
		{"suspended", false, func(_ *fakeMachine, c *Causes) {
			c.asleep = func() time.Duration { return 3 * time.Second }
		}, 20 * ms, "the machine was suspended for 3 s"},
		{"files that are gone", false, func(m *fakeMachine, _ *Causes) { clear(m.fs) }, 50 * ms, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newFakeMachine(!tt.v1)
			c := newCauses(func() time.Duration { return m.at }, m.fs)
			m.at = time.Second
			c.Look()
			m.at = 1500 * time.Millisecond
			tt.happen(m, c)
			assert.Equal(t, c.Why(tt.length), tt.want)
		})
	}
}

// TestCausesBefore: what happened before the last look is not the cause of a
// later freeze, and a second call for the same freeze gives the same cause.
func TestCausesBefore(t *testing.T) {
	m := newFakeMachine(true)
	c := newCauses(func() time.Duration { return m.at }, m.fs)
	m.set("sys/fs/cgroup/cpu.stat", "throttled_usec 1080000\n")
	m.at = 500 * time.Millisecond
	c.Look() // too early to be kept
	m.at = time.Second
	c.Look()
	m.at = 1100 * time.Millisecond
	assert.Equal(t, c.Why(80*time.Millisecond), "", "for what was before")
	m.set("sys/fs/cgroup/cpu.stat", "throttled_usec 1140000\n")
	m.at = 1300 * time.Millisecond
	for range 2 {
		assert.Equal(t, c.Why(100*time.Millisecond), "throttled by the container's processor limit for 60 ms")
		m.at += time.Millisecond
	}
	for range 100 {
		m.at += time.Second
		c.Look()
	}
	assert.True(t, len(c.past) <= maxPast, "%d moments are kept", len(c.past))
}

// On a machine that is always busy, the usual waiting is not the cause of a freeze; much more waiting is.
func TestAttributable(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct {
		name   string
		looked []time.Duration // how long a thread had waited at each second
		waited time.Duration   // half a second later
		length time.Duration
		want   bool
	}{
		{"calm before", []time.Duration{0, 1 * ms, 2 * ms}, 42 * ms, 50 * ms, true},
		{"as always", []time.Duration{0, 60 * ms, 120 * ms}, 160 * ms, 50 * ms, false},
		{"much more than always", []time.Duration{0, 60 * ms, 120 * ms}, 220 * ms, 50 * ms, true},
		{"the usual rate is unknown", []time.Duration{0}, 40 * ms, 50 * ms, false},
		{"nearly all of the time", []time.Duration{0}, 240 * ms, 400 * ms, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newFakeMachine(true)
			wait := func(d time.Duration) { m.set("proc/self/task/8/schedstat", fmt.Sprintf("100 %d 9\n", d)) }
			wait(0)
			c := newCauses(func() time.Duration { return m.at }, m.fs)
			for i, d := range tt.looked {
				m.at = time.Duration(i) * time.Second
				wait(d)
				c.Look()
			}
			m.at += 500 * ms
			wait(tt.waited)
			got := c.Why(tt.length)
			assert.True(t, (got != "") == tt.want, "got %q", got)
		})
	}
}

func TestPaused(t *testing.T) {
	h := metrics.Float64Histogram{Counts: []uint64{5, 3, 1}, Buckets: []float64{0, 1e-3, 20e-3, 1}}
	before := evidence{pauses: []uint64{5, 2, 1}, edges: h.Buckets}
	now := evidence{pauses: h.Counts, edges: h.Buckets}
	assert.Equal(t, now.paused(&before), time.Millisecond)
	assert.Equal(t, now.paused(&now), 0, "without a pause")
}

// A kernel that does not count how long threads waited is recognized.
func TestCountsWaits(t *testing.T) {
	silent := newFakeMachine(true)
	for _, task := range []string{"7", "8"} {
		delete(silent.fs, "proc/self/task/"+task+"/schedstat")
		silent.set("proc/self/task/"+task+"/stat", "")
	}
	now := func() time.Duration { return 0 }
	for _, tt := range []struct {
		name string
		c    *Causes
		want bool
	}{
		{"counted", newCauses(now, newFakeMachine(true).fs), true},
		{"built without", newCauses(now, silent.fs), false},
		{"no such files", newCauses(now, nil), true},
	} {
		t.Run(tt.name, func(t *testing.T) { assert.Equal(t, tt.c.CountsWaits(), tt.want) })
	}
}

// TestCausesHere: this machine's counters can be read.
func TestCausesHere(t *testing.T) {
	c := NewCauses()
	defer c.Close()
	c.Close() // twice is fine
	got := c.Why(time.Hour)
	assert.True(t, got == "" || c.root != nil, "got %q", got)
	assert.True(t, c.root == nil || len(c.past[0].waits) != 0 || text(c.root, "proc/self/schedstat") == "", "no thread's waiting was read")
}

func BenchmarkCauses(b *testing.B) {
	c := NewCauses()
	defer c.Close()
	b.ReportAllocs()
	for b.Loop() {
		c.Why(time.Second)
	}
}

func TestReason(t *testing.T) {
	missing := &fs.PathError{Op: "open", Path: "nothing", Err: syscall.ENOENT}
	bare := errors.New("bare")
	for _, test := range []struct {
		name      string
		err, want error
	}{
		{"a path's", missing, syscall.ENOENT},
		{"a path's, wrapped", fmt.Errorf("read it: %w", missing), syscall.ENOENT},
		{"a call's", os.NewSyscallError("pipe2", syscall.EMFILE), syscall.EMFILE},
		{"neither", bare, bare},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := Reason(test.err)
			assert.True(t, errors.Is(got, test.want) && got.Error() == test.want.Error(), "got %v, want %v", got, test.want)
		})
	}
}

func TestReadState(t *testing.T) {
	page := uint64(os.Getpagesize())
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  State
	}{
		{"nothing", nil, State{Read: true, Clocks: []string{}}},
		{"a machine", map[string]string{
			"proc/meminfo": "MemTotal: 100 kB\nMemAvailable:   50 kB\nSwapTotal: 30 kB\nSwapFree: 10 kB\n",
			"proc/vmstat":  "nr_free_pages 1\npswpin 3\npswpout 4\npswpinx 9\n",
			"proc/loadavg": "13.95 6.87 2.99 20/257 3863\n",
			"proc/stat":    "cpu  4 0 4 8 0 0 0 0 0 0\ncpu0 2 0 2 4 0 0 0 0 0 0\ncpu11 2 0 2 4 0 0 0 0 0 0\nintr 5\ncpus 1\n",
			"sys/devices/system/clocksource/clocksource0/available_clocksource": "tsc hpet acpi_pm \n",
			"sys/devices/system/cpu/cpu0/cpufreq/scaling_driver":                "intel_pstate\n",
			"proc/sys/net/core/wmem_max":                                        "212992\n",
			"proc/sys/net/core/rmem_max":                                        "4194304\n",
			"proc/self/cgroup":                                                  "0::/a\n",
			"sys/fs/cgroup/a/cgroup.controllers":                                "memory\n",
			"sys/fs/cgroup/a/memory.max":                                        "50000\n",
			"sys/fs/cgroup/a/memory.current":                                    "12345\n",
			"sys/fs/cgroup/a/memory.stat":                                       "anon 1\nfile 9000\ninactive_file 2345\nactive_file 5\n",
		}, State{
			Read: true, Available: 50 << 10, GroupLimit: 50000, GroupMemory: 10000, SwapUsed: 20 << 10, SwapMoved: 7 * page, Load: 13.95, Runnable: 20, Processors: 2,
			Clocks: []string{"tsc", "hpet", "acpi_pm"}, GovernorDriver: "intel_pstate", SendBufferMax: 212992, RecvBufferMax: 4194304,
		}},
		{"cgroups of version 1", map[string]string{
			"proc/self/cgroup": "4:memory:/x\n",
			"sys/fs/cgroup/memory/x/memory.limit_in_bytes": "100\n",
			"sys/fs/cgroup/memory/x/memory.usage_in_bytes": "77\n",
			"sys/fs/cgroup/memory/x/memory.stat":           "inactive_file 1\ntotal_inactive_file 7\n",
		}, State{Read: true, GroupLimit: 100, GroupMemory: 70, Clocks: []string{}}},
		{"what makes no sense", map[string]string{
			"proc/meminfo": "MemAvailable: x kB\nSwapTotal: 1 kB\nSwapFree: 10 kB\n", "proc/vmstat": "pswpin\n", "proc/loadavg": "NaN 1 1 2/3 4\n",
			"proc/sys/net/core/wmem_max": "many\n",
		}, State{Read: true, Clocks: []string{}}},
	} {
		t.Run(tt.name, func(t *testing.T) { assert.Same(t, readState(tree(tt.files)), tt.want, "state") })
	}
	assert.True(t, !readState(nil).Read, "a system without such files is said to have them")
}

func TestParseLoad(t *testing.T) {
	for text, want := range map[string]struct {
		minute float64
		n      int
	}{
		"0.00 0.01 0.05 1/80 11206": {0, 1}, "1.5 1 1 -2/3 4": {1.5, 0}, "1.5 1 1 2 4": {1.5, 0}, "-1 1 1 2/3 4": {0, 0}, "": {0, 0}, "1 2 3": {0, 0},
	} {
		minute, n := parseLoad(text)
		assert.True(t, minute == want.minute && n == want.n, "%q: got %v and %d, want %v", text, minute, n, want)
	}
}

func TestRouteTo(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:9", "localhost:9"} {
		r, err := RouteTo(t.Context(), addr)
		assert.True(t, err == nil && r.Here && r.Interface == "", "%s: got %+v and %v", addr, r, err)
	}
	own := assert.Value(net.InterfaceAddrs())(t)
	for _, a := range own { // an address of this machine is reached without leaving it
		n, ok := a.(*net.IPNet)
		if !ok || n.IP.To4() == nil {
			continue
		}
		r, err := RouteTo(t.Context(), net.JoinHostPort(n.IP.String(), "9"))
		assert.True(t, err == nil && r.Here, "%s: got %+v and %v", n.IP, r, err)
	}
	_, err := RouteTo(t.Context(), "no port")
	assert.True(t, err != nil, "an address without a port has a way")
}

func TestLoopbackSpeed(t *testing.T) {
	got, err := LoopbackSpeed(t.Context(), 20*time.Millisecond)
	assert.True(t, err == nil && got > 0, "got %v and %v", got, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = LoopbackSpeed(ctx, time.Hour)
	assert.True(t, err != nil, "an ended context is ignored")
}
