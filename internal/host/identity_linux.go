package host

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
)

var self = sync.OnceValue(func() Identity {
	id := Identity{PID: os.Getpid()}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return id
	}
	space, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return id
	}
	id.Host = strings.TrimSpace(string(boot)) + " " + space
	id.Start, _ = startOf(id.PID)
	return id
})

// startOf returns when a process began, in ticks since the machine started;
// false if there is none, or only a zombie.
func startOf(pid int) (string, bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", false
	}
	s, ok := parseStat(b)
	if !ok || s.ended() {
		return "", false
	}
	return strconv.FormatUint(s.start, 10), true
}
