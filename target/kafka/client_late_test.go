package kafka

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestClientLateness: what a client has read waits for the poll, and what it asks for
// next waited as well.
func TestClientLateness(t *testing.T) {
	const ms = time.Millisecond
	now := time.Duration(0)
	l := newClientLateness(func() time.Duration { return now }, func(_ string, p int32) int32 { return p })
	read := func(at time.Duration, broker int32, logs ...int32) {
		now = at
		meta := kgo.BrokerMetadata{NodeID: broker}
		l.OnBrokerRead(meta, int16(kmsg.Fetch), 10, 0, 0, nil)
		now++ // to take it in takes a moment
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
		l.over(at)
	}
	read(10*ms, 1, 0, 2)
	poll(10*ms+1, log{0, false, 10 * ms}, log{2, false, 10 * ms})
	read(20*ms, 1, 0)
	read(21*ms, 2, 1)
	poll(120*ms, log{0, false, 20*ms - 1}, log{1, false, 21 * ms}) // 100 ms late
	read(125*ms, 2, 1)
	poll(125*ms+1, log{1, true, 26 * ms}) // asked for 99 ms late
	read(130*ms, 2, 1)
	poll(130*ms+1, log{1, false, 31*ms - 1}) // and what was left over likewise
	read(135*ms, 1, 2)
	poll(135*ms+1, log{2, false, 35 * ms}) // log 2 waited for the poll of log 0
	read(140*ms, 2, 1)
	poll(140*ms+1, log{1, false, 140*ms - 1})
	poll(150*ms, log{1, false, 140 * ms}) // nobody said when it was read: since the last poll
	read(160*ms, 2, 1)
	read(161*ms, 2, 1) // while the first was taken
	poll(160*ms+5, log{1, false, 160*ms - 1})
	poll(162*ms, log{1, false, 161*ms - 5})
}
