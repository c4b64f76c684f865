//go:build !linux

package host

import (
	"errors"
	"io/fs"
	"net"
	"time"
)

// clockSync is unknown on this system.
func clockSync() ClockSync { return ClockSync{} }

func hostRoot() fs.FS { return nil }

// MonotonicOf is unknown on this system.
func MonotonicOf(time.Time) (ns int64, ok bool) { return 0, false }

// asleep is unknown on this system.
func asleep() time.Duration { return 0 }

// hostSources are empty on this system.
type hostSources struct{}

func (*hostSources) open()              {}
func (*hostSources) close()             {}
func (*hostSources) read() hostCounters { return hostCounters{} }

// CPUOf is 0: this system does not report the processor time of another process.
func CPUOf(int) time.Duration { return 0 }

// Resident is 0: this system does not report the memory of another process.
func Resident(int) uint64 { return 0 }

// FreeDisk is 0: the space on disks is not read on this system.
func FreeDisk(string) uint64 { return 0 }

// ListenerOf returns the process that accepts TCP connections at a port of this machine, on Linux.
func ListenerOf([]net.IP, int) (int, error) {
	return 0, errors.New("which process listens at a port can be found only on Linux")
}

// A Tree watches a process and all its descendants, only on Linux.
type Tree struct{}

// OpenTree fails with ErrUnwatched.
func OpenTree(int, string) (*Tree, error) { return nil, ErrUnwatched }

// Look returns nothing on this system.
func (*Tree) Look() Look { return Look{} }

// Final returns nothing on this system.
func (*Tree) Final() Look { return Look{} }

// Alive is false here.
func (*Tree) Alive() bool { return false }

// RootEnded is true here.
func (*Tree) RootEnded() bool { return true }

// Ended is true here.
func (*Tree) Ended() bool { return true }

// Members are none here.
func (*Tree) Members() []int { return nil }

// Signal does nothing here.
func (*Tree) Signal(int, bool) {}

// Name is empty here.
func (*Tree) Name() string { return "" }

// Close does nothing here.
func (*Tree) Close() {}
