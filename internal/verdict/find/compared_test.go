package find_test

import (
	"testing"
	"time"

	"carronade/internal/judge"
	"carronade/internal/verdict/find"
	"carronade/internal/verdict/stats"
	"carronade/test/testkit/assert"
)

// Of two sets of three searches of one system, at most 5 % are called different; a system that
// does a quarter more is called better.
func TestRepeatedSearchesCompared(t *testing.T) {
	n := find.Seeds(t, 3)
	side := func(seed int, events float64) (out []judge.Ceiling) {
		for i := range 3 {
			a := find.Simulate(uint64(3*seed+i), events, &find.Options{Times: find.P99(50 * time.Millisecond), Precision: 0.02, Budget: 10 * time.Minute})
			out = append(out, judge.Ceiling{Holds: a.Holds, Fails: a.Fails})
		}
		return out
	}
	different, better := 0, 0
	for seed := range n {
		base := side(2*seed, 1000)
		switch judge.CompareCeilings(base, side(2*seed+1, 1000), judge.DefaultEffect, 0, stats.Defaults).Verdict {
		case stats.Better, stats.Worse:
			different++
		}
		if judge.CompareCeilings(base, side(2*seed+1, 1250), judge.DefaultEffect, 0, stats.Defaults).Verdict == stats.Better {
			better++
		}
	}
	t.Logf("of %d pairs, %d are called different; of as many with a quarter more, %d better", n, different, better)
	assert.True(t, different*20 <= n && better*10 >= n*8,
		"of %d pairs, %d are called different; of as many with a quarter more, %d better", n, different, better)
}
