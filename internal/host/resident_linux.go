package host

import (
	"os"
	"strconv"
	"time"
)

// CPUOf is the processor time of another process, without children, in steps of 10 ms; 0 if it is
// not known.
func CPUOf(pid int) time.Duration {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	s, _ := parseStat(text)
	return time.Duration(s.user+s.sys) * tick
}

// Resident is how much memory of its own another process has in RAM, in bytes: without files,
// such as programs, that several processes share. 0 if it is not known.
func Resident(pid int) uint64 {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm") // proc_pid_statm(5), in pages
	if err != nil {
		return 0
	}
	_, text, ok := number(text)
	resident, text, ok2 := number(text)
	shared, _, ok3 := number(text)
	if !ok || !ok2 || !ok3 || shared > resident {
		return 0
	}
	return (resident - shared) * uint64(os.Getpagesize())
}
