package kafka

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestClientLateness checks that the time for which fetched records wait for a poll
// counts as the reader's delay, for them and for what the client fetches next.
func TestClientLateness(t *testing.T) {
	const ms = time.Millisecond
	now := time.Duration(0)
	l := newClientLateness(func() time.Duration { return now }, func(_ string, p int32) int32 { return p })
	read := func(at time.Duration, broker int32, logs ...int32) {
		now = at
		meta := kgo.BrokerMetadata{NodeID: broker}
		l.OnBrokerRead(meta, int16(kmsg.Fetch), 10, 0, 0, nil)
		now++ // reading the batch takes a moment
		for _, log := range logs {
			l.OnFetchBatchRead(meta, "t", log, kgo.FetchBatchMetrics{})
		}
		l.OnBrokerRead(meta, int16(kmsg.Heartbeat), 10, 0, 0, nil)
	}
	type log struct {
		log  int32
		more bool
		want time.Duration
	}
	poll := func(at time.Duration, logs ...log) {
		t.Helper()
		for _, g := range logs {
			if got := l.earliest(g.log, at, g.more); got != g.want {
				t.Errorf("poll at %v, log %d: got %v, want %v", at, g.log, got, g.want)
			}
		}
		l.endPoll(at)
	}
	read(10*ms, 1, 0, 2)
	poll(10*ms+1, log{0, false, 10 * ms}, log{2, false, 10 * ms})
	read(20*ms, 1, 0)
	read(21*ms, 2, 1)
	poll(120*ms, log{0, false, 20*ms - 1}, log{1, false, 21 * ms}) // 100 ms late
	read(125*ms, 2, 1)
	poll(125*ms+1, log{1, true, 26 * ms}) // requested 99 ms late
	read(130*ms, 2, 1)
	poll(130*ms+1, log{1, false, 31*ms - 1}) // the rest of the log inherits that delay
	read(135*ms, 1, 2)
	poll(135*ms+1, log{2, false, 35 * ms}) // log 2 waited for the poll of log 0
	read(140*ms, 2, 1)
	poll(140*ms+1, log{1, false, 140*ms - 1})
	poll(150*ms, log{1, false, 140 * ms}) // unknown when it was read: after the last poll
	read(160*ms, 2, 1)
	read(161*ms, 2, 1) // arrives while the first is handled
	poll(160*ms+5, log{1, false, 160*ms - 1})
	poll(162*ms, log{1, false, 161*ms - 5})
}
