package judge

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"carronade/internal/store"
	"carronade/test/testkit/assert"
)

// searches are the rows of n searches of a revision, whose ceilings lie around a level.
func searches(seed uint64, revision string, n int, level, noise float64, given ...fields) []store.Row {
	rnd := rand.New(rand.NewPCG(seed, 7))
	var out []store.Row
	for i := range n {
		low := level * math.Exp(noise*rnd.NormFloat64())
		f := fields{
			"mode": "find", "rate": nil, "for": nil, "throughput": nil, "response_p50": nil, "response_p99": nil, "response_p999": nil,
			"slo": store.Value{Text: "p99 < 50 ms", Independent: true}, "ceiling": low, "ceiling_upper": low * 1.02,
			"branch": "main", "revision": fmt.Sprintf("%040s", revision), "revision_date": start.Add(time.Duration(seed) * 24 * time.Hour),
		}
		out = append(out, row(fmt.Sprintf("%s%d", revision, i), start.Add(time.Duration(seed)*24*time.Hour+time.Duration(i)*time.Minute), append([]fields{f}, given...)...))
	}
	return out
}

// Searches are compared by their ceilings.
func TestCompareSearches(t *testing.T) {
	for _, tt := range []struct {
		name            string
		base, candidate []store.Row
		want            string
	}{
		{"the same", searches(1, "a", 8, 948, 0.005), searches(2, "b", 8, 948, 0.005), "same"},
		{"lower", searches(1, "a", 8, 948, 0.01), searches(2, "b", 8, 800, 0.01), "worse"},
		{"higher", searches(1, "a", 8, 948, 0.01), searches(2, "b", 8, 1100, 0.01), "better"},
		{"one each", searches(1, "a", 1, 948, 0.01), searches(2, "b", 1, 800, 0.01), "cannot tell"},
		{"a higher lower end below a lower upper end", searches(1, "a", 8, 948, 0.01, fields{"ceiling_upper": 1500.0}), searches(2, "b", 8, 1100, 0.01), "cannot tell"},
		{"three each, whose intervals lie apart", searches(1, "a", 3, 948, 0.001), searches(2, "b", 3, 1000, 0.001), "better"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := assert.Value(Compare(tt.base, tt.candidate, CompareOptions{}))(t)
			if got := c.verdict(); got != tt.want || c.Pairs[0].Rows[0].Field != "ceiling" {
				t.Errorf("got %s by %s, want %s", got, c.Pairs[0].Rows[0].Field, tt.want)
			}
		})
	}
}

// A revision whose ceiling fell is worse.
func TestVerifySearches(t *testing.T) {
	for _, tt := range []struct {
		level float64
		want  string
	}{{948, NotWorse}, {800, Worse}} {
		rows := append(searches(1, "abc1", 10, 948, 0.005), searches(2, "abc2", 10, tt.level, 0.005)...)
		v := assert.Value(Verify(rows, VerifyOptions{}))(t)
		if v.Verdict != tt.want || v.Groups[0].Rows[0].Field != "ceiling" {
			t.Errorf("at %v: got %s by %s, want %s", tt.level, v.Verdict, v.Groups[0].Rows[0].Field, tt.want)
		}
	}
}

// A collation has ceilings as a column.
func TestCollateSearches(t *testing.T) {
	rows := append(searches(1, "abc1", 2, 948, 0.005), searches(2, "abc2", 2, 700, 0.005)...)
	c := assert.Value(Collate(rows, CollateOptions{Var: "revision"}))(t)
	l := &c.Groups[0].Rows[0]
	cell, ok := l.Cells["ceiling"]
	assert.True(t, ok && cell.N == 2, "got %+v", l.Cells)
}
