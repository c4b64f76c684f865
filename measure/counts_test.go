package measure

import (
	"testing"

	"carronade/test/testkit/assert"
)

// TestCounters: each field of Counts is a counter with all that people and programs need, and its value is found.
func TestCounters(t *testing.T) {
	var c Counts
	names := map[string]bool{}
	for i, n := range c.Fields() {
		*n = uint64(i + 1)
		k := &Counters[i]
		assert.True(t, k.Of(&c) == uint64(i+1) && (k.Unit == "events" || k.Unit == "batches" || k.Unit == "bytes") && k.Means != "" && k.Help != "", "%+v is %d", k, k.Of(&c))
		for _, name := range []string{k.Name, "metric " + k.Metric, "field " + k.Field} {
			assert.True(t, !names[name], "two counters are called %s", name)
			names[name] = true
		}
	}
	d := Signed(c)
	d.Add(Signed(c))
	d.Subtract(Signed(c))
	assert.Equal(t, d, Signed(c), "counts plus and minus themselves")
	assert.True(t, d.WireBytes == int64(len(Counters)) && c.Offered == 1 && !c.IsZero() && (Counts{}).IsZero(), "got %+v", d)
}
