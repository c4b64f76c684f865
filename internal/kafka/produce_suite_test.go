package kafka

import (
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/internal/kafka/cluster"
	"carronade/internal/kafka/wire"
	"carronade/internal/standin/standintest"
	"carronade/load"
	"carronade/protocol"
	"carronade/protocol/protocoltest"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// An answerDelay delays answers for a time, or until it is set again.
type answerDelay struct {
	mu  sync.Mutex
	by  time.Duration
	end chan struct{} // closed when it is set again
}

func (d *answerDelay) set(by time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.end != nil {
		close(d.end)
		d.end = nil
	}
	if d.by = by; by > 0 {
		d.end = make(chan struct{})
	}
}

func (d *answerDelay) wait() {
	d.mu.Lock()
	by, end := d.by, d.end
	d.mu.Unlock()
	if by > 0 {
		select {
		case <-time.After(by):
		case <-end:
		}
	}
}

// Both engines do what the core requires of every target.
func TestSuite(t *testing.T) {
	testkit.Need(t, "some seconds")
	t.Parallel()
	for name, opts := range map[string]map[string]string{
		"acks 1, fresh, compressed": {"fresh": "true", "compression": "lz4", "key": "uniform(10)"},
		"idempotent":                {"acks": "all", "idempotent": "true"},
		"engine client":             {"engine": "client"},
		"engine client, idempotent": {"engine": "client", "profile": "java"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := eventsCluster(t, 3, kfake.NumBrokers(2))
			var refused atomic.Bool
			var slow answerDelay
			c.ControlKey(wire.ProduceKey, func(req kmsg.Request) (kmsg.Response, error, bool) {
				c.KeepControl()
				// This delays the whole cluster: kfake's own sleep of a request
				// is not safe when one ends as the next begins.
				slow.wait()
				if refused.Load() {
					return answerAll(req.(*kmsg.ProduceRequest), kerr.MessageTooLarge.Code, 0), nil, true
				}
				return nil, nil, false
			})
			protocoltest.Run(t, protocoltest.System{
				Kind: Kind{}, URL: fakeURL(c.ListenAddrs()), Options: opts,
				Events: func() (sum uint64) {
					for _, end := range endOffsets(t, c.ListenAddrs()) {
						sum += uint64(end)
					}
					return sum
				},
				Slow:       slow.set,
				Refuse:     refused.Store,
				RefuseWant: load.TooLarge,
			})
		})
	}
}

// A connection takes little memory: buffers are borrowed while they are in use.
func TestConnectionMemory(t *testing.T) {
	testkit.Need(t, "some seconds")
	cert, key := testkit.NewAuthority("test").Files(t)
	t.Run("TCP", func(t *testing.T) {
		s := standintest.Spawn(t, "kafka", "--topic", "events:1")
		protocoltest.System{Kind: Kind{}, URL: "kafka://" + s.Addr() + "/events"}.Memory(t, 300, 1300, 16<<10)
	})
	t.Run("TLS", func(t *testing.T) {
		s := standintest.Spawn(t, "kafka", "--topic", "events:1", "--tls-cert", cert, "--tls-key", key)
		protocoltest.System{Kind: Kind{}, URL: "kafka://" + s.Addr() + "/events", Options: map[string]string{"tls": "true", "tls-ca": cert}}.Memory(t, 50, 250, 48<<10)
	})
}

// TestStreamNeeds: what depends on partitions and brokers is checked when the cluster has answered.
func TestStreamNeeds(t *testing.T) {
	room := protocol.Room{Memory: 1 << 30, From: "this machine has %s free", Files: 20_000}
	for _, tt := range []struct {
		clients, partitions, brokers int
		want                         string
	}{
		{100, 10_000, 3, ""},
		{6000, 12, 3, ""},
		{1000, 10_000, 3, "--clients 1,000 takes"},
		{1, 2_000_000, 1, "--partitions 2,000,000 takes"},
		{9000, 12, 3, "--clients 9,000 takes about 27032 open files"},
		{9000, 3, 3, ""}, // a broker that leads nothing gets no connection
	} {
		p := &producer{cfg: &cluster.Config{Clients: tt.clients}}
		v := &view{leaders: []int32{noLeader}}
		for i := range tt.partitions - 1 {
			v.leaders = append(v.leaders, int32(i%tt.brokers))
		}
		err := room.Check(p.streamNeeds(v))
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%d clients, %d partitions, %d brokers: got %v, want %q", tt.clients, tt.partitions, tt.brokers, err, tt.want)
		}
	}
}

// spec returns a spec as a workload makes it.
func spec(t testing.TB, rawURL string, given map[string][]string) protocol.Spec {
	t.Helper()
	return protocoltest.Spec(t, Kind{}.Options(), rawURL, given)
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	assert.OK(t, os.WriteFile(path, []byte(text), 0o600))
}
