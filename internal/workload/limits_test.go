package workload

import (
	"testing"
	"time"

	"carronade/test/testkit/assert"
)

// TestLimitsOfFiles: limits in a file are a list or one text, and what ends a run may be given
// without a delay.
func TestLimitsOfFiles(t *testing.T) {
	for _, c := range []struct {
		file   string
		limits []string
		delay  time.Duration
		verify bool
	}{
		{"slo: [p99<20ms, 'throughput >= 5k/s']\nabort-on-fail: true\n", []string{"p99 < 20 ms", "throughput >= 5 k/s"}, 0, false},
		{"slo: p99.5<1s\nabort-on-fail: 30s\n", []string{"p99.5 < 1 s"}, 30 * time.Second, false},
		{"slo: [lost=0]\n", []string{"lost = 0"}, 0, true},
	} {
		file := assert.Value(ParseDocument("load.yaml", []byte("target: cannon://a:1/t\nrate: 10k/s\n"+c.file)))(t)
		w, err := Resolve(kinds, nil, file)
		if err != nil {
			t.Errorf("%q: %v", c.file, err)
			continue
		}
		var got []string
		for _, l := range w.Limits() {
			got = append(got, l.String())
		}
		if len(got) != len(c.limits) || w.Duration("abort-on-fail") != c.delay || w.Verify() != c.verify {
			t.Errorf("%q: limits %q, delay %v, verify %v; want %q, %v, %v", c.file, got, w.Duration("abort-on-fail"), w.Verify(), c.limits, c.delay, c.verify)
		}
		for i := range min(len(got), len(c.limits)) {
			assert.Equal(t, got[i], c.limits[i], "%q: limit", c.file)
		}
		for _, l := range w.Limits() { // a percentile with a limit is in the report
			if l.Stat == PercentileStat && l.Percentile == 99.5 && len(w.Percentiles()) != 1 {
				t.Errorf("%q: percentiles %v", c.file, w.Percentiles())
			}
		}
	}
}
