package system

import (
	"errors"
	"time"

	"carronade/measure"
)

// ErrUnwatched says that this operating system does not tell what another
// process consumes.
var ErrUnwatched = errors.New("resource use of another process can be read only on Linux")

// ErrGone says that a process ended, or that its number now belongs to another.
var ErrGone = errors.New("the process is gone")

// TagEnv is the name of the environment variable by which a Tree knows processes
// that left their parent: whoever starts a system sets it to the tree's tag.
const TagEnv = "CARRONADE_SYSTEM"

// pssEvery is how often proportional set sizes are read: the kernel walks every
// page table of the process for each, which the process itself can feel.
const pssEvery = time.Minute

// A Look is what a tree of processes had at one moment, and what it consumed
// since the tree was opened. Zero is nothing, or not known.
type Look struct {
	At        time.Time
	Processes int // alive, the root among them
	Threads   int
	Files     int // open file descriptors, sockets included

	RSS uint64 // resident bytes, summed: what processes share counts once for each
	PSS uint64 // proportional bytes: what is shared is shared out; read once a minute
	// Peak is the largest RSS seen at any look, and for processes that were
	// started after the tree was opened at least the kernel's own high-water
	// mark of the largest of them.
	Peak uint64

	CPU time.Duration // user and system, of processes that ended too

	// DiskRead and DiskWritten are bytes that storage was asked for. Read and
	// Written are bytes through read(2), write(2) and their kin, whatever lay
	// behind: files, pipes and (of servers that use them so) sockets.
	DiskRead, DiskWritten, Read, Written uint64

	// Received and Sent are bytes through the interfaces of the tree's own
	// network namespace, without its loopback. A tree that shares the
	// namespace of this process, as plain commands do, has none of its own: the
	// kernel counts no process's network traffic.
	OwnNetwork     bool
	Received, Sent uint64
}

// Figures are what the look tells, by the names of reports: sizes as they are
// now, and rates over the time since before. before is a look of the same tree;
// the zero Look leaves the rates out.
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
	if l.OwnNetwork {
		rate("received", l.Received, before.Received)
		rate("sent", l.Sent, before.Sent)
	}
	return out
}
