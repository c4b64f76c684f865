package kafkatools

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"carronade/internal/dropin"
	"carronade/internal/report"
	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// Above the cluster's rate, the tool's clock starts when its buffer has room: 32 MiB of batches of 16 KiB. The
// times since records were due are on stderr.
func TestProducerLatencyOfSendCall(t *testing.T) {
	var out, errs bytes.Buffer
	o := &producerOptions{topic: "t", records: 1_000_000, throughput: 1_000_000, interval: 5000, generation: of41, clientGeneration: of41, client: &properties{}}
	l := newProducerLines(o, &dropin.Program{Out: &out, Err: &errs})
	for i := range 2 { // 149 records of 100 bytes fit a batch, so 305,152 fit the buffer: at 250,000 a second 1.22 s
		r := measure.NewHistogram()
		r.RecordN(time.Duration(1+3*i)*time.Second, 1_250_000)
		iv := measure.Interval{Start: time.Duration(i) * 5 * time.Second, End: time.Duration(i+1) * 5 * time.Second, Phase: measure.Measurement}
		iv.Response, iv.Service = r, measure.NewHistogram()
		sent := uint64(1_500_000 - 250_000*i) // more than was answered
		iv.Counts = measure.Counts{Sent: sent, Acked: 1_250_000, Bytes: 100 * sent, AckedBytes: 125_000_000}
		l.interval(load.Snapshot{Interval: iv})
	}
	lines := strings.Split(out.String(), "\n")
	assert.True(t, strings.HasSuffix(lines[0], " 1000.0 ms avg latency, 1000.0 ms max latency."), "before the buffer is full: %s", lines[0])
	assert.True(t, strings.HasSuffix(lines[1], " 1220.6 ms avg latency, 1220.6 ms max latency."), "when it is full: %s", lines[1])
	d := &report.Document{}
	d.Totals.EventsPerS, d.Totals.ElapsedS = 250_000, 10
	l.complain(d)
	assert.Has(t, errs.String(), "from when records were due, as in the report, they were 2500.00 ms avg, 4000.00 ms max")
}

func TestBufferRecords(t *testing.T) {
	o := &producerOptions{client: &properties{}}
	assert.Equal(t, bufferRecords(o, 100), 2048*149., "many in a batch")
	assert.Equal(t, bufferRecords(o, 20_000), float64(32<<20)/20_070, "one in a batch")
}
