package conn

import (
	"crypto/tls"
	"io"
	"net"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"carronade/internal/conn/socket"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// A flushQueue has one message, which is written again and again.
type flushQueue struct {
	Link
	mu      sync.Mutex
	message [][]byte
	left    int // bytes of it that are not written
	flushed chan struct{}
}

func (q *flushQueue) Pending() bool { return q.left > 0 }

func (q *flushQueue) Load(w *socket.Writer) int {
	return w.Add(q.message, len(q.message[0])-q.left)
}

func (q *flushQueue) Written(n int, _ error) {
	if q.left -= n; q.left == 0 {
		q.flushed <- struct{}{}
	}
}

func (q *flushQueue) Flushed() {}

func (q *flushQueue) Oldest() (time.Duration, bool) { return 0, false }

// BenchmarkFlush writes a small message over TLS, and waits until it is written: through
// the link, whose flusher writes it, and by this goroutine itself.
func BenchmarkFlush(b *testing.B) {
	srv := httptest.NewTLSServer(nil)
	defer srv.Close()
	for _, name := range []string{"link", "directly"} {
		b.Run(name, func(b *testing.B) {
			plain, peer := testkit.Pair(b)
			var read sync.WaitGroup
			read.Go(func() {
				_, _ = io.Copy(io.Discard, tls.Server(peer, &tls.Config{Certificates: srv.TLS.Certificates}))
			})
			nc := tls.Client(plain, &tls.Config{InsecureSkipVerify: true})
			assert.OK(b, nc.Handshake())
			defer func() {
				nc.Close()
				read.Wait()
			}()
			q := &flushQueue{message: [][]byte{make([]byte, 120)}, flushed: make(chan struct{}, 1)}
			began := time.Now()
			q.Init(nc, q, &q.mu, func() time.Duration { return time.Since(began) })
			q.Attach(nil)
			b.ReportAllocs()
			for b.Loop() {
				if name == "directly" {
					assert.Value(nc.Write(q.message[0]))(b)
					continue
				}
				q.mu.Lock()
				q.left = len(q.message[0])
				q.Pump()
				q.mu.Unlock()
				<-q.flushed
			}
			q.mu.Lock()
			q.Bury(net.ErrClosed)
			q.mu.Unlock()
		})
	}
}
