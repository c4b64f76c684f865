package host

import (
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// A Hardware describes a machine's hardware, as far as the kernel shows it:
// what people list by hand in written reports. It is part of Host. What is
// unknown, or what this user may not read, is left out.
type Hardware struct {
	Machine        string       `json:"machine,omitempty"` // maker and product; of a virtual machine, the hypervisor's
	Sockets        int          `json:"sockets,omitempty"`
	PhysicalCores  int          `json:"physical_cores,omitempty"` // of all sockets; below Cores with hyper-threading
	NUMANodes      int          `json:"numa_nodes,omitempty"`
	NUMA           []Node       `json:"numa,omitempty"`
	CPUVersion     string       `json:"cpu_version,omitempty"` // family, model, stepping and microcode
	Caches         []Cache      `json:"caches,omitempty"`      // of the first processor
	MaxMHz         int          `json:"max_mhz,omitempty"`
	MemoryModules  []Module     `json:"memory_modules,omitempty"` // readable only by root
	Swap           uint64       `json:"swap_bytes,omitempty"`
	HugePages      string       `json:"transparent_huge_pages,omitempty"` // always, madvise, never
	Disks          []Disk       `json:"disks,omitempty"`
	RAID           []Array      `json:"raid,omitempty"` // of the kernel; that of a controller shows as its disk's model
	FileSystems    []FileSystem `json:"file_systems,omitempty"`
	Network        []Interface  `json:"network,omitempty"`
	Container      string       `json:"container,omitempty"` // that the process runs in: docker, podman, kubernetes, lxc
	PressureStalls bool         `json:"pressure_stalls,omitempty"`
}

// A Module is one bank's memory module. Its serial number is left out: it says
// nothing about speed, and identifies the machine.
type Module struct {
	Bytes   uint64 `json:"bytes"`
	Type    string `json:"type,omitempty"`           // DDR4, ...
	Speed   int    `json:"mt_per_s,omitempty"`       // as configured
	Rated   int    `json:"rated_mt_per_s,omitempty"` // of the module, if it is configured to another speed
	Maker   string `json:"maker,omitempty"`
	Part    string `json:"part_number,omitempty"`
	Locator string `json:"locator,omitempty"` // the slot: DIMM_A1
	Bank    string `json:"bank,omitempty"`    // NODE 1
	Form    string `json:"form,omitempty"`    // DIMM, SODIMM, ...
	Rank    int    `json:"rank,omitempty"`
	ECC     bool   `json:"ecc,omitempty"`
}

// A Node is a NUMA node.
type Node struct {
	ID     int    `json:"id"`
	CPUs   string `json:"cpus"` // as a list: 0-11,24-35
	Memory uint64 `json:"memory_bytes,omitempty"`
}

// A Cache is a cache of a processor.
type Cache struct {
	Level    int    `json:"level"`
	Type     string `json:"type"` // data, instruction, unified
	Bytes    uint64 `json:"bytes"`
	SharedBy int    `json:"shared_by,omitempty"` // logical processors
}

// A Disk is a block device with its own storage.
type Disk struct {
	Name      string `json:"name"` // sda, nvme0n1
	Model     string `json:"model,omitempty"`
	Firmware  string `json:"firmware,omitempty"` // its version
	Bytes     uint64 `json:"bytes,omitempty"`
	Kind      string `json:"kind,omitempty"` // nvme, ssd, hdd, virtual
	Scheduler string `json:"scheduler,omitempty"`
	Sector    int    `json:"sector_bytes,omitempty"`          // logical
	Physical  int    `json:"physical_sector_bytes,omitempty"` // if another
	Cache     string `json:"write_cache,omitempty"`           // write back, write through
}

// An Array is a RAID of the kernel.
type Array struct {
	Name  string   `json:"name"`
	Level string   `json:"level"` // raid1, ...
	Disks []string `json:"disks,omitempty"`
}

// A FileSystem is one with files on a device or in memory.
type FileSystem struct {
	Mount  string `json:"mount"`
	Type   string `json:"type"`
	Device string `json:"device,omitempty"`
	Bytes  uint64 `json:"bytes,omitempty"`
	Free   uint64 `json:"free_bytes,omitempty"`
}

// An Interface is a network interface with real or virtual hardware.
type Interface struct {
	Name   string `json:"name"`
	Mbit   int    `json:"mbit_per_s,omitempty"`
	MTU    int    `json:"mtu,omitempty"`
	Driver string `json:"driver,omitempty"`
}

// maxListed limits each list of a Hardware: a report is not an inventory.
const maxListed = 16

// describeHardware fills in h from files under root. space returns the size of
// a file system by its mount; nil: sizes are left out.
func describeHardware(h *Hardware, root fs.FS, space func(mount string) (bytes, free uint64)) {
	h.Machine = machine(line(root, "sys/class/dmi/id/sys_vendor"), line(root, "sys/class/dmi/id/product_name"))
	h.Sockets, h.PhysicalCores = topology(text(root, "proc/cpuinfo"))
	h.CPUVersion = cpuVersion(text(root, "proc/cpuinfo"))
	h.Caches = caches(root)
	h.NUMANodes = countList(line(root, "sys/devices/system/node/online"))
	h.NUMA = numa(root)
	if khz, err := strconv.Atoi(line(root, "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq")); err == nil && khz > 0 {
		h.MaxMHz = khz / 1000
	}
	h.MemoryModules = memoryModules([]byte(text(root, "sys/firmware/dmi/tables/DMI")))
	if kib, ok := field(text(root, "proc/meminfo"), "SwapTotal:"); ok {
		h.Swap = kib << 10
	}
	h.HugePages = bracketed(line(root, "sys/kernel/mm/transparent_hugepage/enabled"))
	h.Disks = disks(root)
	h.RAID = arrays(text(root, "proc/mdstat"))
	h.FileSystems = fileSystems(text(root, "proc/self/mountinfo"), space)
	h.Network = network(root)
	h.Container = containerOf(root)
	_, h.PressureStalls = numberAfter([]byte(strings.ReplaceAll(text(root, "proc/pressure/cpu"), " total=", "\ntotal ")), "total")
}

func machine(maker, product string) string {
	switch {
	case product == "" || strings.HasPrefix(product, maker):
		return strings.TrimSpace(product)
	case maker == "":
		return product
	}
	return maker + " " + product
}

// topology counts sockets and their cores in /proc/cpuinfo; zeros if it does
// not have them (ARM).
func topology(cpuinfo string) (sockets, cores int) {
	type core struct{ socket, id string }
	seen, packages := make(map[core]bool), make(map[string]bool)
	var c core
	for l := range strings.Lines(cpuinfo + "\n") {
		k, v, ok := strings.Cut(l, ":")
		switch k, v = strings.TrimSpace(k), strings.TrimSpace(v); {
		case ok && k == "physical id":
			c.socket = v
		case ok && k == "core id":
			c.id = v
		case strings.TrimSpace(l) == "":
			if c.socket != "" {
				packages[c.socket] = true
				if c.id != "" {
					seen[c] = true
				}
			}
			c = core{}
		}
	}
	return len(packages), len(seen)
}

// countList counts the numbers in a list such as "0-3,8".
func countList(s string) (n int) {
	if s == "" {
		return 0
	}
	for part := range strings.SplitSeq(s, ",") {
		low, high, ok := strings.Cut(part, "-")
		a, err := strconv.Atoi(low)
		if err != nil {
			return 0
		}
		b := a
		if ok {
			if b, err = strconv.Atoi(high); err != nil || b < a || b-a > 1<<20 {
				return 0
			}
		}
		n += b - a + 1
	}
	return n
}

// bracketed returns the word in brackets, as in "always [madvise] never".
func bracketed(s string) string {
	_, after, ok := strings.Cut(s, "[")
	word, _, ok2 := strings.Cut(after, "]")
	if !ok || !ok2 {
		return ""
	}
	return word
}

// arrays reads /proc/mdstat: "md0 : active raid1 sdb1[1] sda1[0]".
func arrays(mdstat string) []Array {
	var out []Array
	for l := range strings.Lines(mdstat) {
		f := strings.Fields(l)
		if len(f) < 4 || f[1] != ":" || !strings.HasPrefix(f[0], "md") || len(out) == maxListed {
			continue
		}
		a := Array{Name: f[0]}
		for _, w := range f[2:] {
			disk, _, isDisk := strings.Cut(w, "[")
			switch {
			case isDisk:
				a.Disks = append(a.Disks, disk)
			case strings.HasPrefix(w, "raid") || w == "linear" || w == "multipath":
				a.Level = w
			}
		}
		slices.Sort(a.Disks)
		if a.Level != "" {
			out = append(out, a)
		}
	}
	return out
}

// local are the file systems whose size is read: on a network's, the call may
// block forever.
var local = []string{"ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "bcachefs", "overlay", "tmpfs", "vfat", "ntfs3", "reiserfs", "jfs"}

var remote = []string{"nfs", "nfs4", "cifs", "smb3", "ceph", "glusterfs", "fuse.sshfs", "9p", "virtiofs", "lustre"}

// fileSystems reads /proc/self/mountinfo (proc_pid_mountinfo(5)). A device that
// is mounted in several places is listed once; of tmpfs only /tmp and /dev/shm
// are places for data.
func fileSystems(mountinfo string, space func(string) (uint64, uint64)) []FileSystem {
	var out []FileSystem
	seen := make(map[string]bool)
	for l := range strings.Lines(mountinfo) {
		before, after, ok := strings.Cut(l, " - ")
		b, a := strings.Fields(before), strings.Fields(after)
		if !ok || len(b) < 5 || len(a) < 2 {
			continue
		}
		f := FileSystem{Mount: unescaped(b[4]), Type: a[0], Device: unescaped(a[1])}
		isLocal := slices.Contains(local, f.Type)
		if !isLocal && !slices.Contains(remote, f.Type) || seen[b[2]] {
			continue
		}
		if f.Type == "tmpfs" {
			if f.Mount != "/tmp" && f.Mount != "/dev/shm" {
				continue
			}
			f.Device = ""
		}
		// Single files that a container engine mounts are not file systems.
		if f.Mount == "/etc/hosts" || f.Mount == "/etc/hostname" || f.Mount == "/etc/resolv.conf" {
			continue
		}
		seen[b[2]] = true
		// An earlier mount at the same place is hidden.
		out = slices.DeleteFunc(out, func(o FileSystem) bool { return o.Mount == f.Mount })
		if isLocal && space != nil {
			f.Bytes, f.Free = space(f.Mount)
		}
		if at := strings.LastIndexByte(f.Device, '@'); at >= 0 {
			f.Device = f.Device[at+1:] // without a login before a server's name
		}
		if out = append(out, f); len(out) == maxListed {
			break
		}
	}
	return out
}

// unescaped decodes the kernel's escapes, such as \040 for a blank.
func unescaped(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func network(root fs.FS) []Interface {
	const base = "sys/class/net"
	var out []Interface
	for _, name := range names(root, base) {
		at := path.Join(base, name)
		// An interface has a device if it is not a bridge, a tunnel or one end
		// of a pair; a container has only one end of a pair.
		_, err := fs.Stat(root, path.Join(at, "device"))
		if name == "lo" || err != nil && !strings.HasPrefix(name, "eth") && !strings.HasPrefix(name, "en") || len(out) == maxListed {
			continue
		}
		i := Interface{Name: name}
		if n, err := strconv.Atoi(line(root, path.Join(at, "speed"))); err == nil && n > 0 {
			i.Mbit = n
		}
		i.MTU, _ = strconv.Atoi(line(root, path.Join(at, "mtu")))
		for l := range strings.Lines(text(root, path.Join(at, "device/uevent"))) {
			if d, ok := strings.CutPrefix(strings.TrimSpace(l), "DRIVER="); ok {
				i.Driver = d
			}
		}
		out = append(out, i)
	}
	return out
}

func containerOf(root fs.FS) string {
	groups := text(root, "proc/self/cgroup")
	has := func(name string) bool {
		_, err := fs.Stat(root, name)
		return err == nil
	}
	switch {
	case has("var/run/secrets/kubernetes.io") || strings.Contains(groups, "kubepods"):
		return "kubernetes"
	case has(".dockerenv"):
		return "docker"
	case has("run/.containerenv"):
		return "podman"
	case strings.Contains(groups, "/lxc/"):
		return "lxc"
	}
	return ""
}
