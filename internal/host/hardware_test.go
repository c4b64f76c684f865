package host

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
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
			if alive, known := tt.id.Alive(); alive != tt.alive || known != tt.known {
				t.Errorf("got alive %v, known %v, want %v, %v", alive, known, tt.alive, tt.known)
			}
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
		if got, err := DataDir(); err != nil || got != home+"/.local/share" {
			t.Errorf("got %s, %v with XDG_DATA_HOME=%q; want the home's", got, err, no)
		}
	}
	t.Setenv("HOME", "")
	got, err = DataDir()
	assert.True(t, err != nil, "got %s without a home, want an error", got)
}

func TestShell(t *testing.T) {
	words := Shell("echo one && echo two")
	out, err := exec.Command(words[0], words[1:]...).Output()
	if got := strings.Fields(string(out)); err != nil || len(got) != 2 || got[0] != "one" || got[1] != "two" {
		t.Errorf("got %q, %v; want both words", out, err)
	}
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

func BenchmarkDescribe(b *testing.B) {
	for b.Loop() {
		Describe()
	}
}
