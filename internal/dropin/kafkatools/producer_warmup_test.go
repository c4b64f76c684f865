package kafkatools

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"carronade/internal/dropin"
	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// The first window after a warm-up that ended within an interval lasts for the rest of the interval. The windows of
// the drain last as long as they took.
func TestProducerWindowAfterWarmup(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	o := &producerOptions{interval: 1000, warmup: 904, throughput: 1000, client: &properties{}}
	l := newProducerLines(o, &dropin.Program{Out: &out})
	h := func(n uint64) measure.Set {
		h := measure.NewHistogram()
		h.RecordN(time.Millisecond, n)
		return measure.Set{Service: h, Response: h}
	}
	row := func(phase string, at, within time.Duration, n uint64) measure.Interval {
		return measure.Interval{Phase: phase, Start: at, End: at + time.Second, Within: within, Arrived: n, Counts: measure.Counts{Sent: n, Acked: n}, Set: h(n)}
	}
	show := func(rows ...measure.Interval) { l.interval(load.Snapshot{Interval: rows[0], Rows: rows}) }
	show(row(measure.WarmUp, 0, 904*time.Millisecond, 904), row(measure.Measurement, 0, 96*time.Millisecond, 96))
	show(row(measure.Measurement, time.Second, time.Second, 1000))
	show(row(measure.Measurement, 2*time.Second, 0, 10))
	var got []string
	for line := range strings.Lines(out.String()) {
		if n, rest, ok := strings.Cut(line, " records sent, "); ok {
			rate, _, _ := strings.Cut(rest, " ")
			got = append(got, n+" at "+rate)
		}
	}
	assert.Same(t, strings.Join(got, ", "), "96 at 1000.0, 1000 at 1000.0, 10 at 10.0")
}
