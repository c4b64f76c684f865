package judge

import (
	"slices"
	"time"

	"carronade/internal/store"
	"carronade/internal/verdict/stats"
)

// Runs that follow each other on a shared machine are more alike than runs an hour apart: other programs,
// caches, clocks and temperatures change. So two groups of runs, each made in a row, may differ without a
// cause by more than the runs of each group do, and two groups do not show by how much. This file says
// by how much they may.

// usualBetween is how far two groups of equal runs are taken to be apart at least, as a share of either.
const usualBetween = 0.05

// betweenGroups is how far the runs of two sides may be apart because they were made at different times. It is 0
// for runs that alternated: what changes with time affects both sides. groups are earlier groups of equal
// runs, in the order of time, and nil is none; if they scatter by more than is usual, that counts.
func betweenGroups(q *quantity, base, candidate []store.Row, groups ...[][]store.Row) float64 {
	if alternate(base, candidate) {
		return 0
	}
	most := usualBetween
	if q.amount > 0 {
		return most
	}
	for _, g := range groups {
		samples := make([][]float64, len(g))
		for i := range g {
			samples[i] = sample(g[i], q.field)
		}
		if share, ok := stats.Between(samples); ok {
			most = max(most, min(share, MostEffect))
		}
	}
	return most
}

// alternate is whether the runs of two sides were made in turns: the side changes at least two times for
// three runs of the smaller side. (A B B A A B does so three times; a run that is replaced at the end takes
// away up to two.)
func alternate(base, candidate []store.Row) bool {
	type turn struct {
		at   time.Time
		base bool
	}
	all := make([]turn, 0, len(base)+len(candidate))
	for i := range base {
		all = append(all, turn{base[i].At, true})
	}
	for i := range candidate {
		all = append(all, turn{candidate[i].At, false})
	}
	slices.SortStableFunc(all, func(a, b turn) int { return a.at.Compare(b.at) })
	changes := 0
	for i := 1; i < len(all); i++ {
		if all[i].base != all[i-1].base {
			changes++
		}
	}
	return changes >= 2 && 3*changes >= 2*min(len(base), len(candidate))
}

// groupsOf are the groups of runs that were made in a row, of one revision each, in the order of time.
func groupsOf(rows []store.Row) (out [][]store.Row) {
	for _, v := range revisionsOf(rows) {
		for i := range v.rows {
			n := len(out)
			if i > 0 && repeats(&v.rows[i-1], &v.rows[i]) {
				out[n-1] = append(out[n-1], v.rows[i])
			} else {
				out = append(out, []store.Row{v.rows[i]})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b []store.Row) int { return byTime(a[0], b[0]) })
	return out
}

// Levels that are less than inARow apart were measured in a row. A level that comes mostLater times later
// than they follow each other is another group.
const (
	inARow    = 15 * time.Minute
	mostLater = 10
)

// measuredInARow is whether levels were measured in a row, so that they are one group of runs: what other
// programs do for some minutes may be all of several levels. apart is how far they are apart.
func measuredInARow(levels [][]store.Row) (apart time.Duration, is bool) {
	var all []time.Duration
	for i := 1; i < len(levels); i++ {
		all = append(all, levels[i][0].At.Sub(levels[i-1][0].At).Abs())
	}
	if len(all) == 0 {
		return 0, false
	}
	slices.Sort(all)
	apart = all[len(all)/2]
	return apart, apart < inARow
}

// muchLater is whether the levels of a history are one group, and the newest one was measured much later:
// then how they scatter does not show how much it may differ.
func muchLater(levels [][]store.Row, newest []store.Row) bool {
	apart, is := measuredInARow(levels)
	if !is || len(newest) == 0 {
		return false
	}
	last := levels[len(levels)-1]
	return newest[0].At.Sub(last[len(last)-1].At) > mostLater*apart
}
