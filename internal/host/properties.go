package host

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"carronade/units"
)

// A Property is one line of a machine's description.
type Property struct{ Name, Text string }

// Properties describe the machine, a line each. What is unknown is left out.
func (h *Host) Properties() []Property {
	var out []Property
	add := func(name string, parts ...string) {
		parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
		if len(parts) > 0 {
			out = append(out, Property{name, strings.Join(parts, ", ")})
		}
	}
	add("name", h.Name)
	add("system", h.Distribution, h.OS, h.Kernel, h.Arch)
	add("machine", h.Machine, when(h.Virtual, "virtual"))
	add("container", h.Container)
	add("processor", h.CPU, h.CPUVersion, numberOf(h.MaxMHz, "MHz at most"))
	add("cores", fmt.Sprintf("%d usable%s", h.Cores, h.topology()))
	if h.CPULimit > 0 {
		add("cpu limit", strconv.FormatFloat(h.CPULimit, 'g', 3, 64)+" processors")
	}
	var caches []string
	for _, c := range h.Caches {
		caches = append(caches, c.text())
	}
	add("caches", caches...)
	for _, n := range h.NUMA {
		add(fmt.Sprintf("NUMA node %d", n.ID), prefixed("processors ", n.CPUs), sizeOf(n.Memory))
	}
	add("memory", sizeOf(h.Memory))
	add("memory limit", sizeOf(h.MemoryLimit))
	add("swap", sizeOf(h.Swap))
	add("huge pages", h.HugePages)
	for _, m := range h.MemoryModules {
		add("module", m.Locator, m.Bank, sizeOf(m.Bytes), m.Type, m.Form, when(m.ECC, "ECC"), m.speed(), numberOf(m.Rank, "ranks"), m.Maker, m.Part)
	}
	for _, d := range h.Disks {
		add("disk "+d.Name, sizeOf(d.Bytes), d.Kind, d.Model, prefixed("firmware ", d.Firmware), d.sectors(), d.Cache, d.Scheduler)
	}
	for _, a := range h.RAID {
		add("raid "+a.Name, a.Level, prefixed("of ", strings.Join(a.Disks, " and ")))
	}
	for _, f := range h.FileSystems {
		size := sizeOf(f.Bytes)
		if f.Free > 0 {
			size = sizeOf(f.Free) + " free of " + size
		}
		add("files "+f.Mount, f.Type, f.Device, size)
	}
	for _, i := range h.Network {
		add("network "+i.Name, numberOf(i.Mbit, "Mbit/s"), prefixed("mtu ", numberOf(i.MTU, "")), i.Driver)
	}
	add("clock", h.Clock)
	add("governor", h.Governor)
	add("open files", numberOf(int(min(h.Limits.OpenFiles, 1<<53)), "")) // a larger number means no limit
	return out
}

// topology describes the cores, if the kernel reports them.
func (h *Host) topology() string {
	if h.Sockets == 0 {
		return ""
	}
	text := fmt.Sprintf("; cores %d, sockets %d", h.PhysicalCores, h.Sockets)
	if h.NUMANodes > 0 {
		text += fmt.Sprintf(", NUMA nodes %d", h.NUMANodes)
	}
	return text
}

func (c *Cache) text() string {
	name := "L" + strconv.Itoa(c.Level)
	switch c.Type {
	case "data":
		name += "d"
	case "instruction":
		name += "i"
	}
	text := name + " " + sizeOf(c.Bytes)
	if c.SharedBy > 1 {
		text += fmt.Sprintf(" shared by %d", c.SharedBy)
	}
	return text
}

func (m *Module) speed() string {
	text := numberOf(m.Speed, "MT/s")
	if m.Rated > 0 {
		text += fmt.Sprintf(" of %d", m.Rated)
	}
	return text
}

func (d *Disk) sectors() string {
	if d.Sector == 0 {
		return ""
	}
	text := fmt.Sprintf("sectors of %d", d.Sector)
	if d.Physical > 0 {
		text += fmt.Sprintf(" (%d physical)", d.Physical)
	}
	return text + " bytes"
}

func when(is bool, text string) string {
	if is {
		return text
	}
	return ""
}

// prefixed is text behind a prefix, "" without a text.
func prefixed(prefix, text string) string { return when(text != "", prefix+text) }

// numberOf is a number with its unit, "" for zero.
func numberOf(n int, unit string) string {
	return when(n != 0, strings.TrimSpace(strconv.Itoa(n)+" "+unit))
}

func sizeOf(n uint64) string { return when(n > 0, units.FormatSize(int64(n))) }

// Describes reports whether h describes a machine at all: reports of older
// programs may have none.
func (h *Host) Describes() bool { return h.OS != "" || h.Cores > 0 }

// Alike returns the host without what differs between machines of the same kind:
// its name, free space, and numbers that belong to the moment or to the program.
func (h *Host) Alike() Host {
	out := *h
	out.Name, out.Go, out.MaxProcs = "", "", 0
	out.FileSystems = slices.Clone(h.FileSystems)
	for i := range out.FileSystems {
		out.FileSystems[i].Free = 0
	}
	return out
}
