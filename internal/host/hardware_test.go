package host

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"carronade/measure"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// device is a memory device of SMBIOS.
func device(size uint16, extended uint32, kind byte, speed, configured uint16, maker string) []byte {
	b := make([]byte, 0x28)
	b[0], b[1] = 17, byte(len(b))
	binary.LittleEndian.PutUint16(b[0x0c:], size)
	b[0x10] = 1
	b[0x12] = kind
	binary.LittleEndian.PutUint16(b[0x15:], speed)
	b[0x17] = 2
	binary.LittleEndian.PutUint32(b[0x1c:], extended)
	binary.LittleEndian.PutUint16(b[0x20:], configured)
	return append(b, "DIMM 0\x00"+maker+"\x00\x00"...)
}

func TestMemoryModules(t *testing.T) {
	table := append([]byte{0, 6, 0, 0, 9, 9}, "BIOS\x00\x00"...)
	table = append(table, 1, 4, 0, 0, 0, 0) // without strings there are still two zeros
	table = append(table, device(16384, 0, 0x1a, 3200, 2933, " Samsung ")...)
	table = append(table, device(0, 0, 0x02, 0, 0, "NO DIMM")...)
	table = append(table, device(0x7fff, 65536, 0x22, 5600, 0, "Micron")...)
	table = append(table, device(0x8000|512, 0, 0x07, 0xffff, 0xffff, "QEMU")...)
	table = append(table, 127, 4, 0, 0, 0, 0)
	table = append(table, device(16384, 0, 0x1a, 1, 1, "behind the end")...)
	want := []Module{
		{Bytes: 16 << 30, Type: "DDR4", Speed: 2933, Rated: 3200, Maker: "Samsung", Locator: "DIMM 0"},
		{Bytes: 64 << 30, Type: "DDR5", Speed: 5600, Maker: "Micron", Locator: "DIMM 0"},
		{Bytes: 512 << 10, Maker: "QEMU", Locator: "DIMM 0"},
	}
	assert.Same(t, memoryModules(table), want)
	for n := range table { // cut anywhere
		memoryModules(table[:n])
	}
}

// TestMemoryModule has what dmidecode prints for a module of a server.
func TestMemoryModule(t *testing.T) {
	b := make([]byte, 0x28)
	b[0], b[1] = 17, byte(len(b))
	binary.LittleEndian.PutUint16(b[0x08:], 72)
	binary.LittleEndian.PutUint16(b[0x0a:], 64)
	binary.LittleEndian.PutUint16(b[0x0c:], 0x7fff)
	b[0x0e], b[0x10], b[0x11], b[0x12] = 0x09, 1, 2, 0x1a
	binary.LittleEndian.PutUint16(b[0x15:], 2400)
	b[0x17], b[0x18], b[0x1a], b[0x1b] = 3, 4, 5, 2
	binary.LittleEndian.PutUint32(b[0x1c:], 32<<10)
	binary.LittleEndian.PutUint16(b[0x20:], 2134)
	b = append(b, "DIMM_A1\x00NODE 1\x00Samsung\x00388A5EDE\x00M393A4K40CB1-CRC  \x00\x00"...)
	want := []Module{{
		Bytes: 32 << 30, Type: "DDR4", Speed: 2134, Rated: 2400, Maker: "Samsung", Part: "M393A4K40CB1-CRC",
		Locator: "DIMM_A1", Bank: "NODE 1", Form: "DIMM", Rank: 2, ECC: true,
	}}
	assert.Same(t, memoryModules(b), want)
}

// ataPage is page 0x89 of an ATA disk.
func ataPage(model, firmware string) string {
	b := make([]byte, 572)
	b[1] = 0x89
	put := func(word, letters int, s string) {
		for i := range letters {
			c := byte(' ')
			if i < len(s) {
				c = s[i]
			}
			b[60+2*word+i^1] = c
		}
	}
	put(23, 8, firmware)
	put(27, 40, model)
	return string(b)
}

func TestProcessors(t *testing.T) {
	files := map[string]string{
		"proc/cpuinfo": "processor : 0\ncpu family : 6\nmodel : 63\nmodel name : a processor\nstepping : 2\nmicrocode : 0x46\n\nprocessor : 1\nmodel : 64\n",
		"sys/devices/system/cpu/cpu0/cache/index0/level":           "1\n",
		"sys/devices/system/cpu/cpu0/cache/index0/type":            "Data\n",
		"sys/devices/system/cpu/cpu0/cache/index0/size":            "32K\n",
		"sys/devices/system/cpu/cpu0/cache/index0/shared_cpu_list": "0,24\n",
		"sys/devices/system/cpu/cpu0/cache/index3/level":           "3\n",
		"sys/devices/system/cpu/cpu0/cache/index3/type":            "Unified\n",
		"sys/devices/system/cpu/cpu0/cache/index3/size":            "30720K\n",
		"sys/devices/system/cpu/cpu0/cache/index3/shared_cpu_list": "0-11,24-35\n",
		"sys/devices/system/cpu/cpu0/cache/index4/level":           "4\n",
		"sys/devices/system/cpu/cpu0/cache/index4/size":            "huge\n",
		"sys/devices/system/node/node10/cpulist":                   "12-23\n",
		"sys/devices/system/node/node2/cpulist":                    "0-11,24-35\n",
		"sys/devices/system/node/node2/meminfo":                    "Node 2 MemTotal:       32849140 kB\nNode 2 MemFree: 1 kB\n",
		"sys/devices/system/node/node3/cpulist":                    "\n",
		"sys/devices/system/node/possible":                         "0-3\n",
		"sys/block/sda/size":                                       "1953525168\n",
		"sys/block/sda/device/vendor":                              "ATA     \n",
		"sys/block/sda/device/model":                               "Samsung SSD 850 \n",
		"sys/block/sda/device/rev":                                 "2B6Q\n",
		"sys/block/sda/device/vpd_pg89":                            ataPage("Samsung SSD 850 EVO 1TB", "EMT02B6Q"),
		"sys/block/sda/queue/rotational":                           "0\n",
		"sys/block/sda/queue/logical_block_size":                   "512\n",
		"sys/block/sda/queue/physical_block_size":                  "4096\n",
		"sys/block/sda/queue/write_cache":                          "write back\n",
		"sys/block/nvme0n1/size":                                   "8\n",
		"sys/block/nvme0n1/device/firmware_rev":                    "GDC5602Q  \n",
		"sys/block/nvme0n1/queue/logical_block_size":               "512\n",
		"sys/block/nvme0n1/queue/physical_block_size":              "512\n",
		"sys/block/sdb/size":                                       "8\n",
		"sys/block/sdb/device/model":                               "short\n",
		"sys/block/sdb/device/rev":                                 "0001\n",
		"sys/block/sdb/device/vpd_pg89":                            ataPage("", ""),
	}
	var got Hardware
	describeHardware(&got, tree(files), nil)
	want := Hardware{
		CPUVersion: "family 6, model 63, stepping 2, microcode 0x46",
		Caches:     []Cache{{Level: 1, Type: "data", Bytes: 32 << 10, SharedBy: 2}, {Level: 3, Type: "unified", Bytes: 30 << 20, SharedBy: 24}},
		NUMA:       []Node{{ID: 2, CPUs: "0-11,24-35", Memory: 32849140 << 10}, {ID: 10, CPUs: "12-23"}},
		Disks: []Disk{
			{Name: "nvme0n1", Firmware: "GDC5602Q", Bytes: 4096, Kind: "nvme", Sector: 512},
			{Name: "sda", Model: "Samsung SSD 850 EVO 1TB", Firmware: "EMT02B6Q", Bytes: 1000204886016, Kind: "ssd", Sector: 512, Physical: 4096, Cache: "write back"},
			{Name: "sdb", Model: "short", Firmware: "0001", Bytes: 4096},
		},
	}
	assert.Same(t, got, want)
}

func TestHardware(t *testing.T) {
	files := map[string]string{
		"sys/class/dmi/id/sys_vendor":                           "Dell Inc.\n",
		"sys/class/dmi/id/product_name":                         "PowerEdge R730\n",
		"proc/cpuinfo":                                          "physical id : 0\ncore id : 0\n\nphysical id : 0\ncore id : 0\n\nphysical id : 1\ncore id : 0\n\nphysical id : 1\ncore id : 1\n",
		"sys/devices/system/node/online":                        "0-1\n",
		"sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq":  "3500000\n",
		"proc/meminfo":                                          "SwapTotal: 1024 kB\n",
		"sys/kernel/mm/transparent_hugepage/enabled":            "always [madvise] never\n",
		"sys/block/sda/size":                                    "2000\n",
		"sys/block/sda/queue/rotational":                        "1\n",
		"sys/block/sda/queue/scheduler":                         "[mq-deadline] none\n",
		"sys/block/sda/device/vendor":                           "DELL    \n",
		"sys/block/sda/device/model":                            "PERC H730\n",
		"sys/block/nvme0n1/size":                                "4000\n",
		"sys/block/nvme0n1/device/model":                        "SAMSUNG MZ\n",
		"sys/block/vda/size":                                    "8\n",
		"sys/block/vda/device/vendor":                           "0x1af4\n",
		"sys/block/sdb/size":                                    "8\n",
		"sys/block/sdb/queue/rotational":                        "0\n",
		"sys/block/loop0/size":                                  "8\n",
		"sys/block/sdc/size":                                    "0\n",
		"proc/mdstat":                                           "Personalities : [raid1] [raid6]\nmd0 : active raid1 sdb1[1] sda1[0]\n      1 blocks [2/2] [UU]\nmd1 : active (auto-read-only) raid5 sdc1[0](S) sdd1[1]\nunused devices: <none>\n",
		"proc/self/mountinfo":                                   "22 27 0:21 / /proc rw - proc proc rw\n27 1 8:1 / / rw - ext4 /dev/sda1 rw\n28 1 8:1 /x /again rw - ext4 /dev/sda1 rw\n29 1 0:9 / /mnt/my\\040data rw shared:1 - xfs /dev/md0 rw\n30 1 0:10 / /net rw - cifs //me:pw@srv/share rw\n31 1 0:11 / /run rw - tmpfs tmpfs rw\n33 1 0:13 / /tmp rw - ext4 /dev/hidden rw\n32 1 0:12 / /tmp rw - tmpfs tmpfs rw\nbad\n1 2 - x\n",
		"sys/class/net/lo/mtu":                                  "65536\n",
		"sys/class/net/eth0/mtu":                                "9000\n",
		"sys/class/net/eth0/speed":                              "10000\n",
		"sys/class/net/eth0/device/uevent":                      "DRIVER=ixgbe\nPCI_ID=1\n",
		"sys/class/net/eth1/speed":                              "-1\n",
		"sys/class/net/docker0/mtu":                             "1500\n",
		"proc/self/cgroup":                                      "0::/kubepods/burstable/pod1\n",
		"proc/pressure/cpu":                                     "some avg10=0.00 avg60=0.35 avg300=3.48 total=5051197195\n",
		"sys/devices/system/clocksource/clocksource0/available": "tsc\n",
	}
	var got Hardware
	describeHardware(&got, tree(files), func(string) (uint64, uint64) { return 100, 40 })
	want := Hardware{
		Machine: "Dell Inc. PowerEdge R730", Sockets: 2, PhysicalCores: 3, NUMANodes: 2, MaxMHz: 3500, Swap: 1 << 20, HugePages: "madvise",
		Disks: []Disk{
			{Name: "nvme0n1", Model: "SAMSUNG MZ", Bytes: 4000 * 512, Kind: "nvme"},
			{Name: "sda", Model: "DELL PERC H730", Bytes: 2000 * 512, Kind: "hdd", Scheduler: "mq-deadline"},
			{Name: "sdb", Bytes: 8 * 512, Kind: "ssd"},
			{Name: "vda", Bytes: 8 * 512, Kind: "virtual"},
		},
		RAID: []Array{{"md0", "raid1", []string{"sda1", "sdb1"}}, {"md1", "raid5", []string{"sdc1", "sdd1"}}},
		FileSystems: []FileSystem{
			{Mount: "/", Type: "ext4", Device: "/dev/sda1", Bytes: 100, Free: 40},
			{Mount: "/mnt/my data", Type: "xfs", Device: "/dev/md0", Bytes: 100, Free: 40},
			{Mount: "/net", Type: "cifs", Device: "srv/share"},
			{Mount: "/tmp", Type: "tmpfs", Bytes: 100, Free: 40},
		},
		Network:   []Interface{{Name: "eth0", Mbit: 10000, MTU: 9000, Driver: "ixgbe"}, {Name: "eth1"}},
		Container: "kubernetes", PressureStalls: true,
	}
	assert.Same(t, got, want)
	got = Hardware{}
	describeHardware(&got, tree(nil), nil)
	assert.Same(t, got, Hardware{}, "without files")
}

func TestCountList(t *testing.T) {
	for s, want := range map[string]int{"": 0, "0": 1, "0-3": 4, "0-3,8": 5, "x": 0, "3-1": 0, "0-": 0, "0-99999999999": 0} {
		assert.Equal(t, countList(s), want, "%q", s)
	}
}

func FuzzHardware(f *testing.F) {
	f.Add(device(16384, 0, 0x1a, 3200, 2933, "x"), "md0 : active raid1 sdb1[1]", "27 1 8:1 / /a\\040 rw - ext4 /dev/sda1 rw", "physical id : 0\ncore id : 0\n\n")
	f.Fuzz(func(_ *testing.T, table []byte, a, b, c string) {
		memoryModules(table)
		arrays(a)
		fileSystems(b, nil)
		topology(c)
		cpuVersion(c)
		ataIdentity(table)
		caches(tree(map[string]string{"sys/devices/system/cpu/cpu0/cache/index0/level": "1", "sys/devices/system/cpu/cpu0/cache/index0/size": a}))
		numa(tree(map[string]string{"sys/devices/system/node/node0/meminfo": b}))
		countList(a)
		bracketed(b)
	})
}

func TestIdentity(t *testing.T) {
	me := Self()
	for _, tt := range []struct {
		name         string
		id           Identity
		alive, known bool
	}{
		{"itself", me, true, true},
		{"its number, given again", Identity{Host: me.Host, PID: me.PID, Start: "1"}, false, true},
		{"no process", Identity{Host: me.Host, PID: 1 << 30, Start: "1"}, false, true},
		{"another host", Identity{Host: "elsewhere", PID: me.PID, Start: me.Start}, false, false},
		{"no host", Identity{}, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			alive, known := tt.id.Alive()
			assert.True(t, alive == tt.alive && known == tt.known, "got alive %v, known %v, want %v, %v", alive, known, tt.alive, tt.known)
		})
	}
}

// A process that was killed is not alive.
func TestIdentityOfTheKilled(t *testing.T) {
	cmd := exec.Command(testkit.Program(t, "sleep"), "60")
	if err := cmd.Start(); err != nil {
		t.Skip(err)
	}
	id, ok := Identify(cmd.Process.Pid)
	assert.True(t, ok, "a running process was not found")
	alive, known := id.Alive()
	assert.True(t, alive && known, "got alive %v, known %v for a running process, want both", alive, known)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	alive, known = id.Alive()
	assert.True(t, !alive && known, "got alive %v, known %v for a killed process, want false, true", alive, known)
	id, ok = Identify(cmd.Process.Pid)
	assert.True(t, !ok, "got the identity %v of a process that has ended", id)
}

func TestDataDir(t *testing.T) {
	given := filepath.Join(t.TempDir(), "data")
	t.Setenv("XDG_DATA_HOME", given)
	got, err := DataDir()
	assert.True(t, err == nil && got == given, "got %s, %v; want %s, which is given", got, err, given)
	if runtime.GOOS != "linux" {
		return
	}
	home := t.TempDir()
	t.Setenv("HOME", home)
	for _, no := range []string{"", "not/absolute"} {
		t.Setenv("XDG_DATA_HOME", no)
		got, err := DataDir()
		assert.True(t, err == nil && got == home+"/.local/share", "got %s, %v with XDG_DATA_HOME=%q; want the home's", got, err, no)
	}
	t.Setenv("HOME", "")
	got, err = DataDir()
	assert.True(t, err != nil, "got %s without a home, want an error", got)
}

func TestShell(t *testing.T) {
	words := Shell("echo one && echo two")
	out, err := exec.Command(words[0], words[1:]...).Output()
	got := strings.Fields(string(out))
	assert.True(t, err == nil && len(got) == 2 && got[0] == "one" && got[1] == "two", "got %q, %v; want both words", out, err)
}

func asMap(list []measure.Figure) map[string]float64 {
	out := make(map[string]float64)
	for _, f := range list {
		out[f.Name+" "+f.Unit] = f.Value
	}
	return out
}

func TestVitals(t *testing.T) {
	var before, now hostCounters
	before.parseCPU([]byte("cpu  100 0 50 1000 20 0 5 10 7 7\ncpu0 1\n"))
	now.parseCPU([]byte("cpu  200 0 100 1100 30 0 5 30 9 9\n"))
	before.parseDisks([]byte("   8  0 sda 1 0 100 0 1 0 200 0 0 0 500\n   8  1 sda1 1 0 100 0 1 0 200 0 0 0 0\n 7 0 loop0 1 1 9 1 1 1 9\n"), [][]byte{[]byte("sda")})
	now.parseDisks([]byte("   8  0 sda 1 0 300 0 1 0 1200 0 0 0 3500\nbad\n8 0\n8 0 sda 1\n"), [][]byte{[]byte("sda")})
	before.cpu, _ = pressure([]byte("some avg10=0.00 avg60=0.35 avg300=3.48 total=1000000\nfull avg10=0 avg60=0 avg300=0 total=9\n"))
	now.cpu, now.pressed = 1500000, true
	now.available, now.received, now.looping = 7, 400, 800
	before.received = 200
	now.faults, now.swapped, now.paging = 6, 2, true
	now.throttled, now.limited = 5e8, true
	want := map[string]float64{
		"CPU cores": 0.75, "steal %": 100 * 20.0 / 280, "I/O wait %": 100 * 10.0 / 280, "CPU pressure %": 25, "memory pressure %": 0, "I/O pressure %": 0,
		"memory available bytes": 7, "disk read bytes/s": 51200, "disk written bytes/s": 256000, "disk queue requests": 1.5,
		"page faults 1/s": 3, "paged out bytes/s": float64(os.Getpagesize()), "throttled %": 25, "received bytes/s": 100, "sent bytes/s": 0, "loopback bytes/s": 400,
	}
	assert.Same(t, asMap(now.figures(&before, 2*time.Second)), want)
	got := now.figures(&before, 0)
	assert.True(t, got == nil, "got %v over no time, want nothing", got)
	got = (&hostCounters{}).figures(&before, time.Second)
	assert.True(t, got == nil, "got %v without counters, want nothing", got)
}

func TestPressure(t *testing.T) {
	for _, bad := range []string{"", "full avg10=0 total=5", "some avg10=0", "some total="} {
		n, ok := pressure([]byte(bad))
		assert.True(t, !ok, "%q: got %d, want nothing", bad, n)
	}
}

func TestVitalsHere(t *testing.T) {
	v := NewMetrics()
	at := v.at
	v.now = func() time.Time { // at least a second later
		if at = at.Add(time.Second); at.Before(time.Now()) {
			at = time.Now()
		}
		return at
	}
	got, err := v.Figures(t.Context())
	assert.OK(t, err)
	v.Close()
	if runtime.GOOS != "linux" {
		return
	}
	f := asMap(got)
	assert.True(t, f["memory available bytes"] > 0 && f["CPU cores"] <= float64(runtime.NumCPU())*2, "got %v", f)
	_, ok := f["loopback bytes/s"]
	assert.True(t, ok, "got %v, want the loopback, too", f)
	got, err = v.Figures(t.Context())
	assert.True(t, err == nil && len(got) == 0, "got %v, %v when closed, want nothing", got, err)
}

func BenchmarkVitals(b *testing.B) {
	v := NewMetrics()
	defer v.Close()
	b.ReportAllocs()
	for b.Loop() {
		_, _ = v.Figures(b.Context())
	}
}

// The limits of the groups above the process's own hold too, and the lowest one counts.
func TestCgroupParents(t *testing.T) {
	const mib = 1 << 20
	for _, tt := range []struct {
		name      string
		files     map[string]string
		cpu       float64
		memory    uint64     // the lowest limit
		tightest  groupLimit // of memory
		tasks     groupLimit
		throttled uint64
	}{
		{
			name: "version 2", cpu: 0.5, memory: 100 * mib, tightest: groupLimit{200 * mib, 190 * mib}, tasks: groupLimit{100, 90}, throttled: 7000,
			files: map[string]string{
				"proc/self/cgroup":                           "0::/a/b/c\n",
				"sys/fs/cgroup/cgroup.controllers":           "cpu memory pids\n", // the root has no limits
				"sys/fs/cgroup/a/cgroup.controllers":         "cpu memory pids\n",
				"sys/fs/cgroup/a/b/cgroup.controllers":       "cpu memory pids\n",
				"sys/fs/cgroup/a/b/c/cgroup.controllers":     "cpu memory pids\n",
				"sys/fs/cgroup/a/cpu.max":                    "50000 100000\n",
				"sys/fs/cgroup/a/b/cpu.max":                  "max 100000\n",
				"sys/fs/cgroup/a/b/c/cpu.max":                "200000 100000\n",
				"sys/fs/cgroup/a/memory.max":                 "209715200\n", // the larger limit is nearly used up, by other groups
				"sys/fs/cgroup/a/memory.current":             "199229440\n",
				"sys/fs/cgroup/a/b/memory.max":               "max\n",
				"sys/fs/cgroup/a/b/c/memory.max":             "104857600\n",
				"sys/fs/cgroup/a/b/c/memory.current":         "10485760\n",
				"sys/fs/cgroup/a/pids.max":                   "max\n",
				"sys/fs/cgroup/a/b/pids.max":                 "100\n",
				"sys/fs/cgroup/a/b/pids.current":             "90\n",
				"sys/fs/cgroup/a/b/c/pids.max":               "50\n",
				"sys/fs/cgroup/a/b/c/pids.current":           "7\n",
				"sys/fs/cgroup/a/cpu.stat":                   "throttled_usec 5\n",
				"sys/fs/cgroup/a/b/c/cpu.stat":               "usage_usec 9\nthrottled_usec 2\n",
				"sys/fs/cgroup/a/b/other/cgroup.controllers": "cpu\n",
				"sys/fs/cgroup/a/b/other/cpu.max":            "1000 100000\n", // of another group
			},
		},
		{
			name: "version 1", cpu: 0.25, memory: 50 * mib, tightest: groupLimit{100 * mib, 10 * mib}, tasks: groupLimit{20, 5}, throttled: 12,
			files: map[string]string{
				"proc/self/cgroup":                                "4:memory:/x/y\n3:pids:/x\n2:cpu,cpuacct:/x/y\n",
				"sys/fs/cgroup/cpu,cpuacct/x/cpu.stat":            "throttled_time 5\n",
				"sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us":    "25000\n",
				"sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us":   "100000\n",
				"sys/fs/cgroup/cpu,cpuacct/x/y/cpu.stat":          "throttled_time 7\n",
				"sys/fs/cgroup/cpu,cpuacct/x/y/cpu.cfs_quota_us":  "-1\n",
				"sys/fs/cgroup/cpu,cpuacct/x/y/cpu.cfs_period_us": "100000\n",
				"sys/fs/cgroup/memory/x/memory.limit_in_bytes":    "104857600\n",
				"sys/fs/cgroup/memory/x/memory.usage_in_bytes":    "10485760\n",
				"sys/fs/cgroup/memory/x/y/memory.limit_in_bytes":  "9223372036854771712\n",
				"sys/fs/cgroup/memory/x/y/memory.stat":            "hierarchical_memory_limit 52428800\n", // of a group that cannot be seen
				"sys/fs/cgroup/pids/x/pids.max":                   "20\n",
				"sys/fs/cgroup/pids/x/pids.current":               "5\n",
			},
		},
		{
			name: "a path outside the mount", cpu: 2, throttled: 0,
			files: map[string]string{
				"proc/self/cgroup":                 "0::/../../a\n",
				"sys/fs/cgroup/cgroup.controllers": "cpu\n",
				"sys/fs/cgroup/cpu.max":            "200000 100000\n",
			},
		},
		{name: "no groups", files: map[string]string{"proc/self/cgroup": ""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := tree(tt.files)
			g := findCgroup(root)
			assert.Equal(t, g.cpuLimit(root), tt.cpu, "processors")
			assert.Equal(t, g.memoryLimit(root, 1<<40), tt.memory, "memory")
			assert.Equal(t, tightest(g.memoryLimits(root, 1<<40)), tt.tightest, "memory that is left")
			assert.Equal(t, tightest(g.taskLimits(root)), tt.tasks, "tasks")
			assert.Equal(t, g.throttled(root), tt.throttled, "throttled")
		})
	}
}

// A file that exists stays, and on a file system without hard links one is made, too.
func TestMakeFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	none := func(string, string) error { return errors.ErrUnsupported }
	for i, link := range []func(string, string) error{none, os.Link} {
		assert.OK(t, makeFile(path, []byte{byte(i)}, link))
	}
	got, err := os.ReadFile(path)
	assert.True(t, err == nil && string(got) == "\x00", "the file has %q, %v", got, err)
	left, err := os.ReadDir(dir)
	assert.True(t, err == nil && len(left) == 1, "the folder has %v, %v", left, err)
}

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
			m.set("proc/self/task/8/schedstat", "100 80000000 9\n") // its threads waited at the same time
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
		assert.Equal(t, tt.c.CountsWaits(), tt.want, tt.name)
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
		got := Reason(test.err)
		assert.True(t, errors.Is(got, test.want) && got.Error() == test.want.Error(), "%s: got %v, want %v", test.name, got, test.want)
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
		assert.Same(t, readState(tree(tt.files)), tt.want, "%s: state", tt.name)
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
