package franz

import (
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/internal/conn"
	"carronade/internal/kafka/cluster"
	"carronade/load"
)

// A traffic counts what franz-go clients write and read, through their hooks. Safe for
// concurrent use.
type traffic struct {
	written, read atomic.Uint64
	lost          atomic.Uint64 // connections
	closing       atomic.Bool   // the run is over: its clients close their connections

	happened func(name string, began time.Time, length time.Duration)

	mu           sync.Mutex
	sink         load.Sink            // nil before the run, and where nothing is produced
	absent       conn.ConnectFailures // of brokers, during the run
	brokers      map[int32]*cluster.BrokerMetrics
	disconnected map[int32]bool // brokers whose connection was lost
	open         map[net.Conn]bool
	early        map[net.Conn]bool // ended before their beginning was reported
}

var (
	_ kgo.HookBrokerWrite         = (*traffic)(nil)
	_ kgo.HookBrokerRead          = (*traffic)(nil)
	_ kgo.HookBrokerConnect       = (*traffic)(nil)
	_ kgo.HookBrokerDisconnect    = (*traffic)(nil)
	_ kgo.HookBrokerThrottle      = (*traffic)(nil)
	_ kgo.HookProduceBatchWritten = (*traffic)(nil)
)

func (t *traffic) init(c *cluster.Config) {
	t.happened = c.Happened
	t.brokers = map[int32]*cluster.BrokerMetrics{}
	t.disconnected = map[int32]bool{}
	t.open = map[net.Conn]bool{}
	t.early = map[net.Conn]bool{}
}

// row returns a broker's row. The mutex is held.
func (t *traffic) row(meta kgo.BrokerMetadata) *cluster.BrokerMetrics {
	m := t.brokers[meta.NodeID]
	if m == nil {
		m = &cluster.BrokerMetrics{Broker: meta.NodeID, Addr: cluster.JoinAddr(meta.Host, meta.Port)}
		t.brokers[meta.NodeID] = m
	}
	return m
}

// OnBrokerWrite implements kgo.HookBrokerWrite.
func (t *traffic) OnBrokerWrite(meta kgo.BrokerMetadata, key int16, n int, _, _ time.Duration, _ error) {
	t.written.Add(uint64(n))
	if key != int16(kmsg.Produce) && key != int16(kmsg.Fetch) {
		return
	}
	t.mu.Lock()
	m := t.row(meta)
	m.Requests++
	m.Bytes += uint64(n)
	t.mu.Unlock()
}

// OnBrokerRead implements kgo.HookBrokerRead.
func (t *traffic) OnBrokerRead(_ kgo.BrokerMetadata, _ int16, n int, _, _ time.Duration, _ error) {
	t.read.Add(uint64(n))
}

// OnBrokerConnect implements kgo.HookBrokerConnect.
func (t *traffic) OnBrokerConnect(meta kgo.BrokerMetadata, _ time.Duration, nc net.Conn, err error) {
	t.mu.Lock()
	sink := t.sink
	ended := t.early[nc]
	if ended {
		delete(t.early, nc)
	} else if err == nil {
		t.open[nc] = true
	}
	t.mu.Unlock()
	if err != nil && sink != nil {
		t.absent.Note(cluster.JoinAddr(meta.Host, meta.Port), sink.Now(), err.Error())
	}
	if err != nil || ended || meta.NodeID < 0 || t.closing.Load() {
		return
	}
	t.mu.Lock()
	if t.disconnected[meta.NodeID] {
		t.row(meta).Reconnects++
		t.disconnected[meta.NodeID] = false
	}
	t.mu.Unlock()
}

// OnBrokerDisconnect implements kgo.HookBrokerDisconnect.
func (t *traffic) OnBrokerDisconnect(meta kgo.BrokerMetadata, nc net.Conn) {
	t.mu.Lock()
	used := t.open[nc]
	if used {
		t.disconnected[meta.NodeID] = true
		delete(t.open, nc)
	} else { // the client reports its beginning later, or that it failed
		t.early[nc] = true
	}
	t.mu.Unlock()
	if used && meta.NodeID >= 0 && !t.closing.Load() {
		t.lost.Add(1)
		t.happened("connection lost", time.Now(), 0)
	}
}

// connections returns how many connections are open.
func (t *traffic) connections() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.open)
}

// OnBrokerThrottle implements kgo.HookBrokerThrottle.
func (t *traffic) OnBrokerThrottle(meta kgo.BrokerMetadata, d time.Duration, _ bool) {
	t.mu.Lock()
	m := t.row(meta)
	m.Throttle += d
	m.Throttled++
	t.mu.Unlock()
}

// OnProduceBatchWritten implements kgo.HookProduceBatchWritten.
func (t *traffic) OnProduceBatchWritten(meta kgo.BrokerMetadata, _ string, _ int32, b kgo.ProduceBatchMetrics) {
	t.mu.Lock()
	m := t.row(meta)
	m.Batches++
	m.Records += uint64(b.NumRecords)
	m.RawBytes += uint64(b.UncompressedBytes)
	m.SentBytes += uint64(b.CompressedBytes)
	t.mu.Unlock()
}

// metrics returns a row for each broker, by id.
func (t *traffic) metrics() []cluster.BrokerMetrics {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []cluster.BrokerMetrics
	for _, m := range t.brokers {
		if m.Broker >= 0 { // a seed has no id yet
			all = append(all, *m)
		}
	}
	slices.SortFunc(all, func(a, b cluster.BrokerMetrics) int { return int(a.Broker) - int(b.Broker) })
	return all
}
