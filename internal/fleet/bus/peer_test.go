package bus

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"carronade/test/testkit/assert"
)

// pair returns the two ends of a connection after its TLS handshake, in the bubble of the test. What one
// writes waits until the other reads it.
func pair(t *testing.T) (a, b *peer) {
	t.Helper()
	certificate, err := newCertificate()
	must(t, err)
	own, err := tls.X509KeyPair(certificate, certificate)
	must(t, err)
	one, two := net.Pipe()
	server, client := tls.Server(one, serverTLS(own)), tls.Client(two, clientTLS(pinOf(own.Certificate[0])))
	done := make(chan error, 1)
	go func() { done <- server.Handshake() }()
	must(t, client.Handshake())
	must(t, <-done)
	return newPeer(server), newPeer(client)
}

// runs runs a peer and returns where its end is sent to, and its messages.
func runs(p *peer) (end chan error, got chan string) {
	end, got = make(chan error, 1), make(chan string, 100)
	go func() {
		end <- p.run(func(agent string, message []byte) error {
			got <- agent + ":" + string(message)
			return nil
		})
	}()
	return end, got
}

// A connection without messages stays, and ends with a goodbye after all that was sent before it.
func TestIdleAndGoodbye(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t)
		endA, _ := runs(a)
		endB, gotB := runs(b)
		time.Sleep(time.Hour)
		for _, text := range []string{"first", "", "last"} {
			assert.Must(t, a.put(messageFrame("x", []byte(text))), "the connection has ended")
		}
		a.finish()
		assert.True(t, !a.put(messageFrame("x", nil)), "a message after the goodbye")
		why := <-endB
		assert.True(t, errors.Is(why, io.EOF), "the end is %v", why)
		for _, want := range []string{"x:first", "x:", "x:last"} {
			assert.Equal(t, <-gotB, want)
		}
		if why := <-endA; !errors.Is(why, io.EOF) { // the answer to the goodbye
			t.Errorf("the end is %v", why)
		}
	})
}

// A peer that is silent, or does not read, is noticed in time.
func TestDeadPeer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		other func(p *peer) // what the other side does
		want  error
		after time.Duration
	}{
		{"silent", func(p *peer) { p.read(func(string, []byte) error { return nil }) }, errSilent, silentFor},
		{"does not read", func(p *peer) { p.write() }, errStuck, pingEvery + stalledFor},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a, b := pair(t)
				began := time.Now()
				go tt.other(b)
				end, _ := runs(a)
				why := <-end
				assert.True(t, errors.Is(why, tt.want), "the end is %v, want %v", why, tt.want)
				after := time.Since(began)
				assert.True(t, after == tt.after, "after %v, want %v", after, tt.after)
				b.end(nil)
			})
		})
	}
}

// What waits for a peer is bounded, also if it is many small messages.
func TestQueueIsBounded(t *testing.T) {
	t.Parallel()
	for _, size := range []int{MaxMessage, 1000} {
		a, b := pair(t)
		defer b.end(nil)
		frame := messageFrame("", make([]byte, size))
		for range 2 * mostQueued / len(frame) { // what is taken does not wait any more
			_, last := a.next()
			assert.Must(t, !last && a.put(frame), "the connection has ended")
		}
		a.next()
		n := 0
		for a.put(frame) {
			n++
		}
		want := mostQueued / (len(frame) + ofFrame)
		assert.True(t, n == want, "%d messages of %d bytes wait, want %d", n, size, want)
		why := a.run(nil)
		assert.True(t, errors.Is(why, errSlow), "the end is %v", why)
	}
}
