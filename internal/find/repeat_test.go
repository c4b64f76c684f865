package find

import (
	"strings"
	"testing"
	"time"

	"carronade/internal/judge"
	"carronade/internal/stats"
)

// Of two sets of three searches of one system, at most 5 % are called different; a system that
// does a quarter more is called better.
func TestRepeatedSearchesCompared(t *testing.T) {
	n := seeds(t, 3)
	capacity := func(events float64) func(s *server, _ float64) float64 {
		return func(s *server, _ float64) float64 { return s.rnd.ExpFloat64() / events }
	}
	side := func(seed int, events float64) (out []judge.Ceiling) {
		for i := range 3 {
			s := newServer(uint64(3*seed+i), capacity(events))
			a, _ := s.find(&Options{Times: p99(50 * time.Millisecond), Precision: 0.02, Budget: 10 * time.Minute})
			out = append(out, judge.Ceiling{Holds: a.Holds, Fails: a.Fails})
		}
		return out
	}
	different, better := 0, 0
	for seed := range n {
		base := side(2*seed, 1000)
		switch judge.CompareCeilings(base, side(2*seed+1, 1000), judge.CompareOptions{}).Verdict {
		case stats.Better, stats.Worse:
			different++
		}
		if judge.CompareCeilings(base, side(2*seed+1, 1250), judge.CompareOptions{}).Verdict == stats.Better {
			better++
		}
	}
	t.Logf("of %d pairs, %d are called different; of as many with a quarter more, %d better", n, different, better)
	if different*20 > n || better*10 < n*8 {
		t.Errorf("of %d pairs, %d are called different; of as many with a quarter more, %d better", n, different, better)
	}
}

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
		{"none", []*Answer{{Ending: None}}, 0, "no confirmed ceiling (p99 < 50 ms); 1 search, ", 1},
	} {
		r := Repeat(tt.searches)
		if text := r.Headline("p99 < 50 ms"); !strings.HasPrefix(text, tt.text) || r.ExitCode(tt.atLeast) != tt.code {
			t.Errorf("%s: got %q and exit code %d", tt.name, text, r.ExitCode(tt.atLeast))
		}
	}
}
