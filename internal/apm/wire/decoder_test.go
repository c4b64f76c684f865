//go:build conformance

package wire

import (
	"bytes"
	"context"
	"testing"
	"time"

	"carronade/test/testkit/assert"

	"github.com/elastic/apm-data/input/elasticapm"
	"github.com/elastic/apm-data/model/modelpb"
)

// openSemaphore is a semaphore that never blocks.
type openSemaphore struct{}

func (openSemaphore) Acquire(context.Context, int64) error { return nil }
func (openSemaphore) TryAcquire(int64) bool                { return true }
func (openSemaphore) Release(int64)                        {}

func init() { elasticCounts = func(t *testing.T, b *Body) Counts { return decode(t, b.Bytes) } }

func decode(t *testing.T, body []byte) Counts {
	t.Helper()
	p := elasticapm.NewProcessor(elasticapm.Config{MaxEventSize: 1 << 20, Semaphore: openSemaphore{}})
	var got Counts
	var result elasticapm.Result
	take := modelpb.ProcessBatchFunc(func(_ context.Context, b *modelpb.Batch) error {
		for _, e := range *b {
			switch e.Type() {
			case modelpb.TransactionEventType:
				got[Transaction]++
			case modelpb.SpanEventType:
				got[Span]++
			case modelpb.ErrorEventType:
				got[Error]++
			case modelpb.MetricEventType:
				got[Metricset]++
			case modelpb.LogEventType:
				got[Log]++
				assert.True(t, e.Message != "" && e.GetLog().GetLevel() != "" && e.GetTrace().GetId() != "" &&
					e.GetLog().GetOrigin().GetFile().GetLine() != 0, "a log without some of its fields: %v", e)
				assert.True(t, e.Timestamp != 0, "a log without a time")
			}
			assert.True(t, e.Timestamp != 0 || e.GetError() == nil, "an error without a time")
		}
		return nil
	})
	assert.OK(t, p.HandleStream(context.Background(), &modelpb.APMEvent{}, bytes.NewReader(body), 100, take, &result), "the decoder")
	for _, err := range result.Errors {
		t.Errorf("refused: %v", err)
	}
	return got
}

// Elastic's decoder accepts all bodies, with the intended kinds of events.
func TestElasticAcceptsBodies(t *testing.T) {
	cases := testMakeups()
	tried := 0
	for name, m := range cases {
		if m.Protocol == V1 {
			continue // this decoder does not support it
		}
		tried++
		t.Run(name, func(t *testing.T) {
			mk := maker(t, m)
			for n := range uint64(3) {
				b := mk.Make(n)
				b.Stamp(NewRun(3), n, time.Now().UnixMicro())
				assert.Equal(t, decode(t, b.Bytes), b.Counts, "body %d: counts of the decoder", n)
			}
		})
	}
	assert.Must(t, tried >= 100, "%d make-ups tried, want more", tried)
}
