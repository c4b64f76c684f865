package trust

import (
	"fmt"

	"carronade/protocol"
	"carronade/units"
)

// The bounds of the rules on memory.
const (
	leastMemory = 256 << 20 // bytes that are left for the generator
	leastLimit  = 512 << 20 // of a container
	leastMoved  = 1 << 20   // bytes to and from swap space: less is a page that was needed again
)

func size(n uint64) string { return units.FormatSize(int64(min(n, 1<<62))) }

// memory is about what the generator can still get.
func memory(f *MachineFacts) protocol.Finding {
	const check = "memory"
	h, s := &f.Host, &f.State
	left, of := s.Available, ""
	c := protocol.Finding{Check: check}
	if s.GroupLimit > 0 {
		of = " of the container's " + size(s.GroupLimit)
		if rest := s.GroupLimit - min(s.GroupLimit, s.GroupMemory); rest < left || left == 0 {
			left = rest
		}
	}
	c.Found = fmt.Sprintf("%s%s of memory are available", size(left), of)
	if h.MemoryLimit > 0 && left > h.MemoryLimit {
		// Of control groups above those that can be seen, only the limit is known, not what is used of it.
		c.Found = fmt.Sprintf("at most %s of memory are available: the limit of the container", size(h.MemoryLimit))
	}
	switch {
	case !s.Read || left == 0 && s.GroupLimit == 0:
		return unknown(check, "the available memory cannot be read on "+osName(h.OS))
	case left < leastMemory, h.MemoryLimit > 0 && h.MemoryLimit < leastLimit:
		c.Level = protocol.LevelWarning
		c.Effect = "the kernel reclaims memory during the run, or kills the generator: its histograms, pools of events and many connections need some 100 MiB"
		c.Fix = "stop other programs, or raise the limit of the container, or of the control group above it"
	}
	return c
}

// swap is about memory on a disk. Swap space that is used and at rest does no harm.
func swap(f *MachineFacts) protocol.Finding {
	const check = "swap"
	s := &f.State
	if !s.Read {
		return unknown(check, "the use of swap space cannot be read on "+osName(f.Host.OS))
	}
	c := protocol.Finding{Check: check, Found: "no swap space is in use"}
	if s.SwapUsed > 0 {
		c.Found = size(s.SwapUsed) + " of swap space are in use"
	}
	const fix = "free memory, then: sudo swapoff -a && sudo swapon -a"
	if w := f.Window; w != nil && w.Swapped >= leastMoved {
		c.Level, c.Fix = protocol.LevelWarning, fix
		c.Found = fmt.Sprintf("memory is being swapped: %s went to the disk or came from it within %s, and %s of swap space are in use", size(w.Swapped), units.FormatDuration(w.Length.Round(1e6)), size(s.SwapUsed))
		c.Effect = "programs stand still while their memory is read from the disk: times are too long"
		return c
	}
	if s.SwapUsed > 0 {
		c.Level, c.Fix = protocol.LevelNote, fix
		c.Effect = "what is there stands still on a disk until it is needed: the first times may be too long"
	}
	return c
}

func hugePages(f *MachineFacts) protocol.Finding {
	const check = "huge pages"
	mode := f.Host.HugePages
	c := protocol.Finding{Check: check, Found: "transparent huge pages: " + mode}
	switch {
	case mode == "" && f.Host.OS != "linux":
		return protocol.Finding{} // only Linux has them
	case mode == "":
		return unknown(check, "the kernel does not say how it uses huge pages")
	case mode == "always" && f.local():
		c.Level = protocol.LevelNote
		c.Effect = "programs may stand still for milliseconds while the kernel joins pages; the target on this machine, too"
		c.Fix = "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"
	}
	return c
}
