//go:build !linux

package host

import "time"

// CPUOf is 0: this system does not report the processor time of another process.
func CPUOf(int) time.Duration { return 0 }

// Resident is 0: this system does not report the memory of another process.
func Resident(int) uint64 { return 0 }

// FreeDisk is 0: the space on disks is not read on this system.
func FreeDisk(string) uint64 { return 0 }
