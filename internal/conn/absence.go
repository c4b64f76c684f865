package conn

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// ConnectFailures counts attempts to connect that failed during a run. If a server is
// gone, nothing is sent and no event fails, so without these counts a report would not
// explain why. The zero value has no failures. Safe for concurrent use.
type ConnectFailures struct {
	mu sync.Mutex
	of map[string]*failed
}

// failed counts the failed attempts to connect to one address.
type failed struct {
	attempts    int
	first, last time.Duration
	err         string // of the last one
}

// Note counts a failed attempt to connect to an address, at an offset from the start of
// the run. The report contains the error text.
func (a *ConnectFailures) Note(addr string, at time.Duration, err string) {
	at = max(0, at) // the target starts a moment before the run
	a.mu.Lock()
	defer a.mu.Unlock()
	f := a.of[addr]
	if f == nil {
		if a.of == nil {
			a.of = map[string]*failed{}
		}
		f = &failed{first: at}
		a.of[addr] = f
	}
	f.attempts++
	f.last, f.err = max(f.last, at), err
}

// mostAbsent limits the addresses that are named.
const mostAbsent = 8

// Warnings returns one sentence per address, sorted by address.
func (a *ConnectFailures) Warnings() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []string
	for i, addr := range slices.Sorted(maps.Keys(a.of)) {
		if i == mostAbsent {
			out = append(out, fmt.Sprintf("connecting to %d other addresses failed, too", len(a.of)-mostAbsent))
			break
		}
		f := a.of[addr]
		if f.attempts == 1 {
			out = append(out, fmt.Sprintf("connecting to %s failed %s after the start: %s", addr, seconds(f.first), f.err))
			continue
		}
		out = append(out, fmt.Sprintf("connecting to %s failed %d times, from %s to %s after the start; the last error: %s",
			addr, f.attempts, seconds(f.first), seconds(f.last), f.err))
	}
	return out
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3g s", d.Seconds()) }
