package judge

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"carronade/internal/layout"
	"carronade/internal/store"
	"carronade/internal/verdict/stats"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// golden compares a text with a file.
func golden(t *testing.T, name string, text func(io.Writer, layout.Style) error) {
	t.Helper()
	var b bytes.Buffer
	assert.OK(t, text(&b, layout.Style{}))
	testkit.Golden(t, filepath.Join("testdata", name), b.String())
}

// Facts that a target reports about the run and its client differ from run to
// run, and do not make two servers differ.
func TestFactsOfARunAreNotOfServers(t *testing.T) {
	start := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	rows := func(with fields) []store.Row {
		f := fields{"op": "produce", "target": "kafka://a/t", "target.version": "4.3"}
		maps.Copy(f, with)
		return []store.Row{row("a", start, f)}
	}
	for _, tt := range []struct {
		name            string
		base, candidate fields
		found           bool
	}{
		{"counts of attempts", nil, fields{"target.batch_attempts": 5120.0, "target.batch_attempts_refused": 3.0}, false},
		{"renewed logins", fields{"target.logins_renewed": 2.0}, fields{"target.logins_renewed": 3.0}, false},
		{"transactions", fields{"target.transactions.end_mean_us": 900.0}, fields{"target.transactions.end_mean_us": 1100.0}, false},
		{"a ratio", fields{"target.compressed_to": 0.601}, fields{"target.compressed_to": 0.602}, false},
		{"partitions", fields{"target.topic.partitions": 3.0}, fields{"target.topic.partitions": 6.0}, true},
	} {
		got := findings(rows(tt.base), rows(tt.candidate))
		severe := false
		for _, f := range got {
			severe = severe || f.Severe
		}
		assert.Equal(t, severe, tt.found, "%s: %+v", tt.name, got)
	}
}

// An outage is worse than anything, and a level that was always 0 has not changed.
func TestWorseBy(t *testing.T) {
	for _, tt := range []struct {
		name        string
		before, now float64
		better      stats.Direction
		want        float64
	}{
		{"half of a rate", 100, 50, stats.More, 1},
		{"twice a time", 5, 10, stats.Less, 1},
		{"a better time", 10, 5, stats.Less, -0.5},
		{"an outage", 50_000, 0, stats.More, math.Inf(1)},
		{"after an outage", 0, 50_000, stats.More, -1},
		{"nothing, as before", 0, 0, stats.More, 0},
	} {
		t.Run(tt.name, func(t *testing.T) { assert.Equal(t, worseBy(tt.before, tt.now, tt.better), tt.want) })
	}
}

// A repetition in place of one that was not trusted belongs to the same
// repetitions, although its number is not the next.
func TestReplacedRepetitionsAreOneRevision(t *testing.T) {
	var rows []store.Row
	for i, n := range []float64{1, 2, 3, 2, 1, 2, 3} { // of two series
		f := fields{"repetition": n, "repetitions": 3.0}
		if i == 3 {
			f["replaces"] = "r1"
		}
		rows = append(rows, row(fmt.Sprint("r", i), start.Add(time.Duration(i)*time.Minute), f))
	}
	var got []int
	for _, r := range revisionsOf(rows) {
		got = append(got, len(r.rows))
	}
	want := []int{4, 3}
	assert.True(t, slices.Equal(got, want), "got series of %v runs, want %v", got, want)
}
