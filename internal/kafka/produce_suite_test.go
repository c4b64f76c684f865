package kafka

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/internal/kafka/wire"
	"carronade/load"
	"carronade/protocol/protocoltest"
	"carronade/test/testkit"
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
