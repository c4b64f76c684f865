package conn

import (
	"bytes"
	"io"
	"runtime"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"carronade/internal/conn/socket"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// TestPolledReaders: connections that share the buffer of a poller read their own answers,
// however these are split, and none of another connection.
func TestPolledReaders(t *testing.T) {
	begin := time.Now()
	now := func() time.Duration { return time.Since(begin) }
	rapid.Check(t, func(r *rapid.T) {
		p := socket.NewPoller(now, rapid.Bool().Draw(r, "combine"))
		if p == nil {
			t.Skip("pollers are not supported")
		}
		stop, left := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(left)
			runtime.LockOSThread()
			p.Prepare()
			for open := true; open; {
				p.Wait(now()+50*time.Microsecond, false, false)
				runtime.Gosched() // the wait keeps its processor
				select {
				case <-stop:
					open = false
				default:
				}
			}
			p.Leave()
		}()
		const connections = 3
		var peers sync.WaitGroup
		for i := range connections {
			nc, there := testkit.Pair(t)
			here, ok := p.Take(nc)
			assert.Must(t, ok, "the connection was not taken")
			got, done := start(here, 0)
			sizes := rapid.SliceOfN(rapid.OneOf(rapid.IntRange(0, 20), rapid.IntRange(0, 5000), rapid.IntRange(20_000, 200_000)), 1, 8).Draw(r, "sizes")
			var stream []byte
			var want [][]byte
			for j, n := range sizes {
				want = append(want, bytes.Repeat([]byte{byte(16*i + j)}, n))
				stream = append(stream, frame(want[j])...)
			}
			pieces := rapid.SliceOfN(rapid.IntRange(1, max(1, len(stream)/4)), 1, 20).Draw(r, "pieces")
			peers.Go(func() {
				for k := 0; len(stream) > 0; k++ {
					n := min(len(stream), pieces[k%len(pieces)])
					if k > 50 {
						n = len(stream)
					}
					if _, err := there.Write(stream[:n]); err != nil {
						t.Error(err)
						return
					}
					stream = stream[n:]
				}
				there.Close()
				<-done
				here.Release()
				check(t, got, want, io.EOF, 0)
			})
		}
		peers.Wait()
		close(stop)
		<-left
	})
}
