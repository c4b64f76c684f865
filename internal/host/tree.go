package host

import (
	"errors"
	"time"

	"carronade/measure"
)

// ErrUnwatched means that this operating system does not show the resources
// that another process uses.
var ErrUnwatched = errors.New("resource use of another process can be read only on Linux")

// ErrGone means that a process ended, or that its number now belongs to
// another.
var ErrGone = errors.New("the process is gone")

// TagEnv is the name of the environment variable by which a Tree recognizes
// processes that left their parent: it must be set to the tree's tag when the
// system is started.
const TagEnv = "CARRONADE_SYSTEM"

// pssInterval is how often proportional set sizes are read: for each, the
// kernel walks all page tables of the process, which slows the process.
const pssInterval = time.Minute

// A Look is the state of a tree of processes at one moment, and the resources
// that it used since the tree was opened. Zero is nothing, or unknown.
type Look struct {
	At        time.Time
	Processes int // alive, including the root
	Threads   int
	Files     int // open file descriptors, sockets included

	RSS uint64 // resident bytes, summed: shared memory counts once for each process
	PSS uint64 // proportional bytes: shared memory is divided among its processes; read once a minute
	// Peak is the largest RSS seen at any look, and for processes that were
	// started after the tree was opened at least the kernel's own high-water
	// mark of the largest of them.
	Peak uint64

	CPU time.Duration // user and system, including processes that ended

	// DiskRead and DiskWritten are bytes requested from storage. Read and
	// Written are bytes through read(2), write(2) and similar calls, of any
	// kind of file: files, pipes, and sockets of servers that use these calls.
	DiskRead, DiskWritten, Read, Written uint64

	Faults uint64 // page faults that waited for a disk

	// Received and Sent are bytes through the interfaces of the tree's own
	// network namespace, without its loopback. A tree that shares the
	// namespace of this process, as plain commands do, has no such numbers: the
	// kernel does not count network traffic by process.
	OwnNetwork     bool
	Received, Sent uint64
}

// Figures returns the look's numbers by their names in reports: current sizes,
// and rates over the time since before. before is a look of the same tree; with
// the zero Look, rates are left out.
func (l *Look) Figures(before *Look) []measure.Figure {
	out := []measure.Figure{
		{Name: "RSS", Unit: "bytes", Value: float64(l.RSS)},
		{Name: "processes", Value: float64(l.Processes)},
		{Name: "threads", Value: float64(l.Threads)},
		{Name: "open files", Value: float64(l.Files)},
	}
	if l.PSS > 0 {
		out = append(out, measure.Figure{Name: "PSS", Unit: "bytes", Value: float64(l.PSS)})
	}
	span := l.At.Sub(before.At).Seconds()
	if before.At.IsZero() || span <= 0 {
		return out
	}
	rate := func(name string, now, then uint64) {
		out = append(out, measure.Figure{Name: name, Unit: "bytes/s", Value: float64(now-min(now, then)) / span})
	}
	out = append(out, measure.Figure{Name: "CPU", Unit: "cores", Value: (l.CPU - before.CPU).Seconds() / span})
	rate("disk read", l.DiskRead, before.DiskRead)
	rate("disk written", l.DiskWritten, before.DiskWritten)
	rate("read", l.Read, before.Read)
	rate("written", l.Written, before.Written)
	out = append(out, measure.Figure{Name: "page faults", Unit: "1/s", Value: float64(l.Faults-min(l.Faults, before.Faults)) / span})
	if l.OwnNetwork {
		rate("received", l.Received, before.Received)
		rate("sent", l.Sent, before.Sent)
	}
	return out
}
