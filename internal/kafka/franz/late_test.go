package franz

import (
	"encoding/binary"
	"testing"
	"time"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestClientLateness checks that the time for which fetched records wait for a poll
// counts as the reader's delay, for them and for what the client fetches next.
func TestClientLateness(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	l := newOwnLateness(func() time.Duration { return 0 }, func(_ string, p int32) int32 { return p })
	ask := func(at time.Duration, broker int32) { l.asked(broker, at, at) }
	read := func(at time.Duration, broker int32, logs ...int32) {
		l.answered(broker, at)
		for _, log := range logs {
			l.OnFetchBatchRead(kgo.BrokerMetadata{NodeID: broker}, "t", log, kgo.FetchBatchMetrics{})
		}
	}
	type log struct {
		log  int32
		more bool
		want time.Duration
	}
	poll := func(at time.Duration, logs ...log) {
		t.Helper()
		for _, g := range logs {
			assert.Equal(t, l.earliest(g.log, at, g.more), g.want, "earliest at %v of log %d", at, g.log)
		}
		l.endPoll(at)
	}
	ask(5*ms, 1)
	ask(5*ms, 2)
	read(10*ms, 1, 0, 2)
	poll(10*ms+1, log{0, false, 10 * ms}, log{2, false, 10 * ms})
	ask(10*ms, 1)
	read(20*ms, 1, 0)
	read(21*ms, 2, 1)
	poll(120*ms, log{0, false, 20 * ms}, log{1, false, 21 * ms}) // 100 ms late
	ask(120*ms, 2)
	read(125*ms, 2, 1)
	poll(125*ms+1, log{1, true, 26 * ms}) // requested 99 ms late
	ask(125*ms, 2)
	read(130*ms, 2, 1)
	poll(130*ms+1, log{1, false, 31 * ms}) // the rest of the log inherits that delay
	ask(133*ms, 1)
	read(135*ms, 1, 2)
	poll(135*ms+1, log{2, false, 22 * ms}) // log 2 waited for the poll of log 0: asked 113 ms late
	ask(130*ms, 2)
	read(140*ms, 2, 1)
	poll(140*ms+1, log{1, false, 140 * ms})
	poll(150*ms, log{1, false, 140*ms + 1}) // unknown when it was read: after the last poll
	ask(142*ms, 2)                          // 2 ms late
	l.OnBrokerThrottle(kgo.BrokerMetadata{NodeID: 2}, 7*ms, true)
	read(160*ms, 2, 1)
	l.OnBrokerThrottle(kgo.BrokerMetadata{NodeID: 2}, 7*ms, true)
	ask(168*ms, 2) // 1 ms after the broker's pause
	read(169*ms, 2, 1)
	poll(165*ms, log{1, false, 158 * ms})
	poll(170*ms, log{1, false, 168 * ms})
	ask(170*ms, 2)
	l.lost(2)
	ask(300*ms, 2) // on another connection
	read(301*ms, 2, 1)
	poll(302*ms, log{1, false, 301 * ms})
}

// TestFetchConn: requests for records and their answers are recognized among others, in
// pieces of any size; the time of an answer is when it arrived, not when it was read.
func TestFetchConn(t *testing.T) {
	t.Parallel()
	for _, piece := range []int{1, 3, 1000} {
		ours, broker := testkit.Pair(t)
		now := time.Duration(0)
		l := newOwnLateness(func() time.Duration { return now }, func(string, int32) int32 { return 0 })
		c := newFetchConn(ours, l)
		l.OnBrokerConnect(kgo.BrokerMetadata{NodeID: 4}, 0, c, nil)
		got := func() fetchAnswer { return l.fetches(4).newest }
		request := func(key kmsg.Key, at time.Duration) {
			t.Helper()
			now = at
			b := binary.BigEndian.AppendUint16([]byte{0, 0, 0, 6}, uint16(key))
			assert.Value(c.Write(append(b, 0, 0, 0, 0)))(t)
		}
		answer := func(size int, at time.Duration) {
			t.Helper()
			now = at
			assert.Value(broker.Write(append(binary.BigEndian.AppendUint32(nil, uint32(size)), make([]byte, size)...)))(t)
			for left := 4 + size; left > 0; {
				n := assert.Value(c.Read(make([]byte, min(piece, left))))(t)
				left -= n
			}
		}
		const ms = time.Millisecond
		request(kmsg.ApiVersions, 1*ms)
		answer(50, 2*ms)
		assert.Equal(t, got(), (fetchAnswer{}), "times after the answer to another request")
		request(kmsg.Fetch, 3*ms)
		answer(100, 10*ms)
		a := got()
		assert.True(t, a.arrived > 0 && a.arrived <= 10*ms && a.askDelay == 0, "the first answer: %v", a)
		first := got().arrived
		request(kmsg.Fetch, 13*ms)
		answer(0, 20*ms)
		answer(9, 20*ms)
		if a := got(); a.arrived < 13*ms || a.arrived > 20*ms || a.askDelay != 13*ms-first {
			t.Errorf("the second answer: %v, the first arrived at %v", a, first)
		}
		request(kmsg.Fetch, 21*ms)
		assert.OK(t, c.Close())
		assert.Equal(t, l.fetches(4).late.CouldAsk, 0, "when a request on another connection could have been written")
	}
}
