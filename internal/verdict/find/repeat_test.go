package find

import (
	"strings"
	"testing"
	"time"
)

// Repeated searches answer with the median and the range of their lower ends. Those without one do
// not count, and the worst exit code decides.
func TestRepeat(t *testing.T) {
	found := func(holds float64) *Answer {
		return &Answer{Ending: Found, Holds: holds, HoldsConfirmed: true, Fails: 1.05 * holds, FailsConfirmed: true, Elapsed: time.Minute, Trials: make([]Tried, 10)}
	}
	for _, tt := range []struct {
		name     string
		searches []*Answer
		atLeast  float64
		text     string
		code     int
	}{
		{"three", []*Answer{found(900), found(950), found(920)}, 0, "ceiling from 920/s, 900 to 950/s (p99 < 50 ms); 3 searches, 30 trials in 3m", 0},
		{"one below", []*Answer{found(900), found(950), found(920)}, 910, "ceiling from 920/s", 1},
		{"one stopped", []*Answer{found(900), {Ending: Stopped, Holds: 100}, found(920)}, 0, "ceiling from 910/s, 900 to 920/s (p99 < 50 ms); 2 of 3 searches found both ends; 3 searches", 4},
		{"the highest rate", []*Answer{{Ending: Highest, Holds: 500, HoldsConfirmed: true}}, 0, "holds at 500/s (p99 < 50 ms): it was the highest rate allowed; 1 search, ", 0},
		{"none", []*Answer{{Ending: None}}, 0, "no confirmed ceiling (p99 < 50 ms); 1 search, ", 1},
	} {
		r := Repeat(tt.searches)
		if text := r.Headline("p99 < 50 ms"); !strings.HasPrefix(text, tt.text) || r.ExitCode(tt.atLeast) != tt.code {
			t.Errorf("%s: got %q and exit code %d", tt.name, text, r.ExitCode(tt.atLeast))
		}
	}
}
