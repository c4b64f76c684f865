package host

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"carronade/test/testkit/assert"
)

// tree returns a file system with these files, by their paths.
func tree(files map[string]string) fstest.MapFS {
	m := fstest.MapFS{}
	for name, data := range files {
		m[name] = &fstest.MapFile{Data: []byte(data)}
	}
	return m
}

func TestDescribeFiles(t *testing.T) {
	const cpuinfo = "processor\t: 0\nmodel name\t: Intel(R) Xeon(R) CPU @ 2.80GHz\nflags\t\t: fpu hypervisor avx2\n"
	for _, test := range []struct {
		name  string
		files map[string]string
		want  Host
	}{
		{"nothing", nil, Host{}},
		{
			"a physical machine",
			map[string]string{
				"proc/cpuinfo":                          "model name\t: AMD EPYC 7B13\nflags\t: fpu avx2\n",
				"proc/meminfo":                          "MemTotal:       16384 kB\nMemFree: 1 kB\n",
				"proc/sys/kernel/osrelease":             "6.1.0-28-amd64\n",
				"etc/os-release":                        "ID=debian\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n",
				"proc/sys/net/ipv4/ip_local_port_range": "32768\t60999\n",
				"proc/sys/net/ipv4/tcp_wmem":            "4096\t16384\t4194304\n",
				"proc/sys/net/ipv4/tcp_rmem":            "4096\t131072\t6291456\n",
				"sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
				"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor":            "performance\n",
			},
			Host{
				CPU: "AMD EPYC 7B13", Memory: 16 << 20, Kernel: "6.1.0-28-amd64",
				Distribution: "Debian GNU/Linux 12 (bookworm)", Clock: "tsc", Governor: "performance",
				Limits: Limits{LocalPorts: 28232, SendBuffer: 4194304, RecvBuffer: 6291456},
			},
		},
		{
			"two kinds of cores",
			map[string]string{
				"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor":  "performance\n",
				"sys/devices/system/cpu/cpu1/cpufreq/scaling_governor":  "powersave\n",
				"sys/devices/system/cpu/cpu10/cpufreq/scaling_governor": "performance\n",
				"sys/devices/system/cpu/cpufreq/scaling_governor":       "another file\n",
			},
			Host{Governor: "performance, powersave"},
		},
		{
			"a container, groups of version 2, seen from inside",
			map[string]string{
				"proc/cpuinfo":                     cpuinfo,
				"proc/meminfo":                     "MemTotal: 1048576 kB\n",
				"proc/self/cgroup":                 "0::/host/path/not/mounted\n",
				"sys/fs/cgroup/cgroup.controllers": "cpu memory\n",
				"sys/fs/cgroup/cpu.max":            "150000 100000\n",
				"sys/fs/cgroup/memory.max":         "536870912\n",
			},
			Host{CPU: "Intel(R) Xeon(R) CPU @ 2.80GHz", Virtual: true, Memory: 1 << 30, CPULimit: 1.5, MemoryLimit: 512 << 20},
		},
		{
			"no limits, groups of version 2",
			map[string]string{
				"proc/self/cgroup": "0::/user.slice\n",
				"sys/fs/cgroup/user.slice/cgroup.controllers": "cpu memory\n",
				"sys/fs/cgroup/user.slice/cpu.max":            "max 100000\n",
				"sys/fs/cgroup/user.slice/memory.max":         "max\n",
			},
			Host{},
		},
		{
			"groups of version 1",
			map[string]string{
				"proc/meminfo":                                    "MemTotal: 1048576 kB\n",
				"proc/self/cgroup":                                "4:memory:/app\n2:cpu,cpuacct:/app\n",
				"sys/fs/cgroup/cpu,cpuacct/app/cpu.stat":          "throttled_time 5\n",
				"sys/fs/cgroup/cpu,cpuacct/app/cpu.cfs_quota_us":  "50000\n",
				"sys/fs/cgroup/cpu,cpuacct/app/cpu.cfs_period_us": "100000\n",
				"sys/fs/cgroup/memory/app/memory.limit_in_bytes":  "9223372036854771712\n",
			},
			Host{Memory: 1 << 30, CPULimit: 0.5},
		},
		{
			"invalid files",
			map[string]string{
				"proc/cpuinfo":                          "model name\n",
				"proc/meminfo":                          "MemTotal: many kB\n",
				"proc/self/cgroup":                      "x\n1:\n::\n",
				"proc/sys/net/ipv4/ip_local_port_range": "60999 32768\n",
				"proc/sys/net/ipv4/tcp_wmem":            "1\n",
			},
			Host{},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got Host
			describeFiles(&got, tree(test.files))
			assert.Same(t, got, test.want)
		})
	}
}

func TestHostString(t *testing.T) {
	for _, test := range []struct {
		name string
		host Host
		want string
	}{
		{
			"whole",
			Host{OS: "linux", Kernel: "6.1.0-28-amd64", Arch: "amd64", CPU: "Intel(R) Xeon(R) CPU @ 2.80GHz", Cores: 4, Memory: 16 << 30, Go: "go1.26.8"},
			"4 x Intel Xeon, 16 GiB, Linux 6.1.0 (amd64), go1.26.8",
		},
		{
			"limited",
			Host{OS: "linux", Arch: "arm64", Cores: 8, CPULimit: 1.5, Memory: 16 << 30, MemoryLimit: 512 << 20, Go: "go1.26.8"},
			"8 x arm64, limited to 1.5 of them, 512 MiB, Linux (arm64), go1.26.8",
		},
		{"little known", Host{OS: "plan9", Arch: "386", Cores: 1, Go: "go1.26.8"}, "1 x 386, plan9 (386), go1.26.8"},
		{
			"not whole GiB",
			Host{OS: "darwin", Kernel: "24.0.0", Arch: "arm64", CPU: "Apple M3", Cores: 8, Memory: 7800 << 20, Go: "go1.26.8"},
			"8 x Apple M3, 7.6 GiB, macOS 24.0.0 (arm64), go1.26.8",
		},
	} {
		assert.Equal(t, test.host.String(), test.want, test.name)
	}
}

func TestDescribe(t *testing.T) {
	h := Describe()
	assert.True(t, h.OS == runtime.GOOS && h.Cores >= 1 && h.Go != "", "got %+v", h)
	if runtime.GOOS == "linux" && (h.Kernel == "" || h.Memory == 0 || h.Limits.OpenFiles == 0 || h.Limits.LocalPorts == 0) {
		t.Errorf("got %+v, want kernel, memory and limits", h)
	}
	b := assert.Value(json.Marshal(h))(t)
	assert.Same(t, assert.Value(ParseHost(b))(t), h, "read from JSON")
}

func TestParseHostFails(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"nothing", "", "not what carronade host --json prints"},
		{"another document", `{"name":"x"}`, "names no system"},
		{"a list", `[]`, "not what carronade host --json prints"},
		{"huge", strings.Repeat(" ", maxHostBytes+1), "larger than 1 MiB"},
	} {
		h, err := ParseHost([]byte(test.text))
		assert.ErrorHas(t, err, test.want, "%s: got %+v", test.name, h)
	}
}

var sink []byte

func TestSampler(t *testing.T) {
	s := NewSampler()
	var first time.Duration
	for first < 30*time.Millisecond { // the kernel counts in ticks on some machines
		x := uint64(1)
		for range 5_000_000 {
			x ^= x << 13
			x ^= x >> 7
		}
		sink = append(sink[:0], byte(x))
		u := s.Sample()
		first += u.CPU
	}
	sink = make([]byte, 32<<20)
	for i := range sink {
		sink[i] = 1
	}
	runtime.GC()
	runtime.GC()
	u, w := s.SampleAll()
	assert.True(t, u.GCPauses >= 2 && u.GCPauseMax > 0,
		"got %d pauses of up to %v, want those of at least two collections", u.GCPauses, u.GCPauseMax)
	if runtime.GOOS == "linux" {
		assert.True(t, u.RSS >= 32<<20, "got %d bytes resident, want more than the 32 MiB just written", u.RSS)
		assert.True(t, u.MaxRSS >= u.RSS, "got a largest of %d below the %d resident", u.MaxRSS, u.RSS)
	}
	assert.True(t, w.Count == 0 || w.Max > 0 && w.P99 <= w.Max, "got %+v, want P99 up to Max", w)
	runtime.KeepAlive(sink)
	u = s.Sample()
	assert.True(t, u.GCPauses <= 50, "got %d pauses in the next sample, want only those since the last sample", u.GCPauses)
}

func TestSamplerAllocates(t *testing.T) {
	s := NewSampler()
	got := testing.AllocsPerRun(100, func() { s.Sample() })
	assert.True(t, got <= 0, "a sample allocates %v times, want none", got)
}

func BenchmarkSample(b *testing.B) {
	s := NewSampler()
	b.ReportAllocs()
	for b.Loop() {
		s.Sample()
	}
}

func TestWatch(t *testing.T) {
	stat := func(user, steal string) string { return "cpu  " + user + " 0 0 900 0 0 0 " + steal + " 7 7\ncpu0 1\n" }
	files := map[string]string{
		"proc/self/cgroup":                 "0::/\n",
		"sys/fs/cgroup/cgroup.controllers": "cpu\n",
		"sys/fs/cgroup/cpu.stat":           "usage_usec 5\nthrottled_usec 1000\n",
		"proc/stat":                        stat("100", "50"),
	}
	for _, test := range []struct {
		name  string
		looks []clocks
		after map[string]string
		want  []string // a part of each trouble or remark
	}{
		{"no trouble", []clocks{{time.Second, time.Second}, {2 * time.Second, 2 * time.Second}}, nil, nil},
		{"disciplined", []clocks{{1000500 * time.Microsecond, time.Second}}, nil, nil},
		{"set once", []clocks{{31 * time.Second, time.Second}, {32 * time.Second, 2 * time.Second}}, nil, []string{"was set once during the run, by up to 30s"}},
		{"set back and forth", []clocks{{0, time.Second}, {2 * time.Second, 2 * time.Second}}, nil, []string{"was set 2 times during the run, by up to -1s"}},
		{"stolen", []clocks{{time.Second, time.Second}}, map[string]string{"proc/stat": stat("170", "80")}, []string{"gave 30% of"}},
		{"a little stolen", []clocks{{time.Second, time.Second}}, map[string]string{"proc/stat": stat("199", "51")}, nil},
		{"throttled", []clocks{{time.Second, time.Second}}, map[string]string{"sys/fs/cgroup/cpu.stat": "throttled_usec 201000\n"}, []string{"slowed the generator for 200ms"}},
		{"a little throttled", []clocks{{time.Second, time.Second}}, map[string]string{"sys/fs/cgroup/cpu.stat": "throttled_usec 2000\n"}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			at := clocks{}
			root := tree(files)
			w := newWatch(func() clocks { return at }, root)
			for _, at = range test.looks {
				w.Look()
			}
			for name, data := range test.after {
				root[name] = &fstest.MapFile{Data: []byte(data)}
			}
			got := append(w.Troubles(), w.Remarks()...)
			assert.Must(t, len(got) == len(test.want), "got %d troubles, want %d: %q", len(got), len(test.want), got)
			for i := range got {
				assert.True(t, strings.Contains(got[i], test.want[i]), "got %q, want it to contain %q", got[i], test.want[i])
			}
		})
	}
}

func TestWatchHere(t *testing.T) {
	w := NewWatch()
	w.Look()
	n, by := w.Steps()
	assert.True(t, n == 0, "the clock was set %d times, by %v, within a moment", n, by)
	s := w.Stolen()
	assert.True(t, s >= 0 && s <= 1, "got a stolen share of %v", s)
	d := w.Throttled()
	assert.True(t, d >= 0, "got %v throttled", d)
}

func FuzzFiles(f *testing.F) {
	f.Add("cpu 1 2 3 4 5 6 7 8 9", "0::/", "100 200")
	f.Add("cpu", "1:cpu:/x", "max")
	f.Fuzz(func(_ *testing.T, a, b, c string) {
		root := tree(map[string]string{
			"proc/stat": a, "proc/meminfo": a, "proc/vmstat": a, "proc/loadavg": c, "proc/cpuinfo": a, "etc/os-release": a,
			"proc/self/cgroup":                 b,
			"sys/fs/cgroup/cgroup.controllers": c, "sys/fs/cgroup/cpu.max": c, "sys/fs/cgroup/memory.max": c,
			"proc/sys/net/ipv4/ip_local_port_range": c, "proc/sys/net/ipv4/tcp_wmem": c,
		})
		var h Host
		describeFiles(&h, root)
		_ = h.String()
		readState(root)
		parseLoad(a)
		stolen(a)
	})
}

// Computing takes processor time, where the system reports it.
func TestCPU(t *testing.T) {
	before := CPU()
	if before == 0 {
		t.Skip("this system does not report it")
	}
	for CPU() < before+time.Millisecond {
	}
}

func TestParseStat(t *testing.T) {
	const tail = " S 7 42 42 0 -1 4194560 100 200 6 0 11 22 33 44 20 0 5 0 987 1000000 321 18446744073709551615 1 1"
	for _, test := range []struct {
		name, line string
		want       procStat
		ok         bool
	}{
		{"plain", "42 (srv)" + tail, procStat{'S', 7, 5, 6, 11, 22, 33, 44, 987, 1000000, 321}, true},
		{"a name with parentheses and blanks", "42 (a) R 1 (b\n)" + tail, procStat{'S', 7, 5, 6, 11, 22, 33, 44, 987, 1000000, 321}, true},
		{"cut", "42 (srv) S 7 42", procStat{}, false},
		{"no name", "42 srv S 7", procStat{}, false},
		{"nothing", "", procStat{}, false},
		{"ends in the name", "42 (srv)", procStat{}, false},
	} {
		got, ok := parseStat([]byte(test.line))
		assert.True(t, ok == test.ok && (!ok || got == test.want), "%s: got %+v, %v, want %+v, %v", test.name, got, ok, test.want, test.ok)
	}
}

func TestInterfaces(t *testing.T) {
	const dev = `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:   5000    9 0 0 0 0 0 0 5000 9 0 0 0 0 0 0
  eth0: 1000 2 0 0 0 0 0 0 300 4 0 0 0 0 0 0
  eth1:7 2 0 0 0 0 0 0 8 4 0 0 0 0 0 0
`
	in, out, lo := interfaces([]byte(dev))
	assert.True(t, in == 1007 && out == 308 && lo == 5000, "got %d received, %d sent, %d over loopback, want 1007, 308, 5000", in, out, lo)
}

func FuzzProc(f *testing.F) {
	f.Add([]byte("42 (srv) S 7 42 42 0 -1 4194560 100 200 0 0 11 22 33 44 20 0 5 0 987 1000000 321"))
	f.Add([]byte("eth0: 1 2 3\n"))
	f.Add([]byte("some avg10=0.00 avg60=0.35 avg300=3.48 total=5051197195\n"))
	f.Fuzz(func(_ *testing.T, b []byte) {
		parseStat(b)
		interfaces(b)
		numberAfter(b, "rchar:")
		lastNumber(b)
		pressure(b)
		var v hostCounters
		v.parseCPU(b)
		v.parseDisks(b, [][]byte{[]byte("sda")})
	})
}

// TestFreeMemory: of the machine and the groups, whatever has the least left counts.
func TestFreeMemory(t *testing.T) {
	const mib = 1 << 20
	const machine = "MemTotal: 1048576 kB\nMemAvailable: 524288 kB\nSwapFree: 102400 kB\n"
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  MemoryRoom
	}{
		{"machine", map[string]string{"proc/meminfo": machine}, MemoryRoom{Bytes: 612 * mib}},
		{"version 2", map[string]string{
			"proc/meminfo": machine, "proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/cgroup.controllers": "memory\n",
			"sys/fs/cgroup/a/memory.max": "209715200\n", "sys/fs/cgroup/a/memory.current": "52428800\n", "sys/fs/cgroup/a/memory.stat": "inactive_file 10485760\n",
		}, MemoryRoom{Bytes: 160 * mib, Container: true}},
		{"version 1", map[string]string{
			"proc/meminfo": machine, "proc/self/cgroup": "4:memory:/x\n",
			"sys/fs/cgroup/memory/x/memory.limit_in_bytes": "209715200\n", "sys/fs/cgroup/memory/x/memory.usage_in_bytes": "52428800\n",
		}, MemoryRoom{Bytes: 150 * mib, Container: true}},
		{"version 1, a group that cannot be seen", map[string]string{
			"proc/meminfo": machine, "proc/self/cgroup": "4:memory:/x\n",
			"sys/fs/cgroup/memory/x/memory.limit_in_bytes": "9223372036854771712\n", "sys/fs/cgroup/memory/x/memory.stat": "hierarchical_memory_limit 52428800\n",
		}, MemoryRoom{Bytes: 50 * mib, Container: true}},
		{"a limit above what is free", map[string]string{
			"proc/meminfo": machine, "proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/cgroup.controllers": "memory\n",
			"sys/fs/cgroup/a/memory.max": "943718400\n", "sys/fs/cgroup/a/memory.current": "0\n",
		}, MemoryRoom{Bytes: 612 * mib}},
		{"nothing is known", nil, MemoryRoom{}},
	} {
		assert.Equal(t, freeMemory(tree(tt.files)), tt.want, tt.name)
	}
}
