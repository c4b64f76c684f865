package host

import (
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/windows"
)

var self = sync.OnceValue(func() Identity {
	host, _ := os.Hostname()
	id := Identity{Host: host, PID: os.Getpid()}
	id.Start, _ = startOf(id.PID)
	return id
})

// startOf returns when a process began, in units of 100 ns since 1601.
func startOf(pid int) (string, bool) {
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid)) //nolint:gosec // numbers of processes fit
	if err != nil {
		return "", false
	}
	defer func() { _ = windows.CloseHandle(h) }()
	var created, exited, kernel, user windows.Filetime
	if windows.GetProcessTimes(h, &created, &exited, &kernel, &user) != nil || ticks(exited) != 0 {
		return "", false
	}
	return strconv.FormatInt(ticks(created), 10), true
}
