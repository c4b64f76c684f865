//go:build impair

package impair

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// A delay is an entry of CARRONADE_IMPAIR: send=50ms@2s (once), receive=20ms/1s
// (periodically), wall=1h@2s.
type delay struct {
	place  int
	length time.Duration
	at     time.Duration // when the next one is due
	every  time.Duration // 0: once
}

const wall = -1

var (
	once   sync.Once
	mu     sync.Mutex
	delays []*delay
)

func read() {
	for _, part := range strings.Split(os.Getenv("CARRONADE_IMPAIR"), ",") {
		if part == "" {
			continue
		}
		name, rest, _ := strings.Cut(part, "=")
		places := map[string]int{"send": Send, "receive": Receive, "wall": wall}
		place, ok := places[name]
		d := &delay{place: place}
		length, at, once := strings.Cut(rest, "@")
		var err1, err2 error
		if once {
			d.length, err1 = time.ParseDuration(length)
			d.at, err2 = time.ParseDuration(at)
		} else {
			length, every, _ := strings.Cut(rest, "/")
			d.length, err1 = time.ParseDuration(length)
			d.every, err2 = time.ParseDuration(every)
			d.at = d.every
		}
		if !ok || err1 != nil || err2 != nil {
			fmt.Fprintf(os.Stderr, "CARRONADE_IMPAIR: %q: want send=50ms@2s, receive=20ms/1s or wall=1h@2s\n", part)
			os.Exit(2)
		}
		delays = append(delays, d)
	}
}

// Point sleeps if a delay is due at a place; now is an offset from the start of the
// run.
func Point(place int, now time.Duration) {
	once.Do(read)
	for _, d := range delays {
		if d.place != place {
			continue
		}
		mu.Lock()
		due := now >= d.at
		if due {
			d.at = 1 << 62
			if d.every > 0 {
				d.at = now + d.every
			}
		}
		mu.Unlock()
		if due {
			time.Sleep(d.length)
		}
	}
}

// Wall returns how far the wall clock was set until now, an offset from the start of
// the run.
func Wall(now time.Duration) (by time.Duration) {
	once.Do(read)
	for _, d := range delays {
		if d.place == wall && now >= d.at {
			by += d.length
		}
	}
	return by
}
