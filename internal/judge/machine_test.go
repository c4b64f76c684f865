package judge

import (
	"strings"
	"testing"

	"carronade/internal/layout"
	"carronade/internal/store"
	"carronade/test/testkit/assert"
)

// TestMachineFirst: that other programs took the machine is in the first lines of a comparison, and in the error of
// one that has no run left.
func TestMachineFirst(t *testing.T) {
	const cause = "other programs used 91% of the processors"
	busy := func(trusted bool) ([]store.Row, []store.Row) {
		level := "noisy"
		if !trusted {
			level = "not trusted"
		}
		f := fields{"machine": cause, "trusted": trusted, "trust_level": level}
		return runs(1, "a", 4, 50e3, 0.012, 0.01, f), runs(2, "b", 4, 50e3, 0.012, 0.01, f)
	}
	base, candidate := busy(true)
	c := assert.Value(Compare(base, candidate, CompareOptions{BaseName: "a", CandidateName: "b"}))(t)
	var text strings.Builder
	assert.OK(t, c.Text(&text, layout.Style{}))
	first := func(n int) string {
		return strings.Join(strings.Fields(strings.Join(strings.SplitN(text.String(), "\n", n+1)[:n], " ")), " ")
	}
	assert.Has(t, first(3), cause)
	assert.Has(t, first(4), cause+": 8 of 8 runs may be wrong; stop them")
	base, candidate = busy(false)
	_, err := Compare(base, candidate, CompareOptions{})
	assert.ErrorHas(t, err, cause+": 8 of 8 runs")
	quiet := runs(3, "c", 4, 50e3, 0.012, 0.01, fields{})
	assert.Equal(t, machineText(quiet), "")
	quiet = runs(3, "c", 4, 50e3, 0.012, 0.01, fields{"machine": cause, "trust_level": "trusted"})
	assert.Equal(t, machineText(quiet), cause)
	v := Variation{Op: "produce", Target: "null://", Machine: cause}
	text.Reset()
	assert.OK(t, v.Text(&text, layout.Style{}))
	assert.Has(t, first(3), cause)
}
