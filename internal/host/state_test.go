package host

import (
	"context"
	"net"
	"os"
	"testing"
	"time"

	"carronade/test/testkit/assert"
)

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
