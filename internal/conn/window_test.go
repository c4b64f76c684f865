package conn

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"carronade/internal/conn/socket"
	"carronade/test/testkit/assert"
)

// However writes cut requests, and whichever are answered in between, a window gives each byte to the writer
// once, in order, and knows which requests were begun, are being written, and are written.
func TestWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var (
			w       Window[[]byte]
			all     []byte // of all requests
			written int    // of these
			ends    []int  // of each request
			began   = map[byte]int{}
			popped  uint64
		)
		here, there := net.Pipe()
		defer here.Close()
		defer there.Close()
		out := socket.NewWriter(here, func() time.Duration { return 0 })
		check := func() {
			for n := w.Head; n < w.Tail; n++ {
				begin := 0
				if n > 0 {
					begin = ends[n-1]
				}
				if got, want := w.Begun(n), written > begin; got != want {
					t.Fatalf("%d bytes written: request %d, from %d to %d: begun is %v, want %v", written, n, begin, ends[n], got, want)
				}
				assert.Must(t, !w.BeingWritten(n), "request %d is being written after its write", n)
				if (n < w.Next) != (written >= ends[n]) {
					t.Fatalf("%d bytes written: request %d ends at %d, and Next is %d", written, n, ends[n], w.Next)
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				r := make([]byte, rapid.IntRange(1, 100).Draw(t, "size"))
				for i := range r {
					r[i] = byte(w.Tail)
				}
				if w.Tail < 255 { // so that each has a number of its own
					all, ends = append(all, r...), append(ends, len(all)+len(r))
					w.Push(r)
				}
			},
			"write": func(t *rapid.T) {
				out.Reset()
				total := w.Load(out, func(r *[]byte) ([][]byte, int) {
					half := len(*r) / 2
					return [][]byte{(*r)[:half], (*r)[half:]}, len(*r)
				})
				assert.Must(t, total == len(all)-written, "%d bytes loaded, want all %d", total, len(all)-written)
				for n := w.Next; n < w.Tail; n++ {
					assert.Must(t, w.BeingWritten(n), "request %d is not being written", n)
				}
				if total > 0 {
					got := make([]byte, total)
					done := make(chan error, 1)
					go func() { _, err := out.Write(true); done <- err }()
					if _, err := io.ReadFull(there, got); err != nil || string(got) != string(all[written:]) {
						t.Fatalf("written %v, want %v (%v)", got, all[written:], err)
					}
					assert.OK(t, <-done)
				}
				n := rapid.IntRange(0, total).Draw(t, "written")
				w.Written(n, func(r *[]byte) { began[(*r)[0]]++ })
				written += n
				check()
			},
			"pop": func(*rapid.T) { // a written one is answered
				if w.Head < w.Next {
					if r := w.Pop(); r[0] != byte(popped) {
						t.Fatalf("popped request %d, want %d", r[0], popped)
					}
					popped++
				}
			},
			"rewind": func(*rapid.T) { // what was begun is given up with its connection
				for w.Head < w.Tail && w.Begun(w.Head) {
					w.Pop()
					popped++
				}
				w.Rewind()
				if written = 0; popped > 0 {
					written = ends[popped-1]
				}
				check()
			},
			"": func(t *rapid.T) {
				if w.Head != popped || w.Tail != uint64(len(ends)) {
					t.Fatalf("the window is %d to %d, want %d to %d", w.Head, w.Tail, popped, len(ends))
				}
			},
		})
		for n := range w.Tail {
			assert.True(t, n >= w.Next || began[byte(n)] != 0, "request %d was written, and was not reported as begun", n)
		}
	})
}

// TestWindowAllocatesNothing: once it has grown, a window allocates nothing for a request.
func TestWindowAllocatesNothing(t *testing.T) {
	here, there := net.Pipe()
	defer here.Close()
	defer there.Close()
	var (
		w     Window[[]byte]
		began int
		out   = socket.NewWriter(here, func() time.Duration { return 0 })
		bytes = []byte("request")
		segs  = make([][]byte, 1)
	)
	n := testing.AllocsPerRun(100, func() {
		for range 3 {
			w.Push(bytes)
		}
		out.Reset()
		total := w.Load(out, func(r *[]byte) ([][]byte, int) { segs[0] = *r; return segs, len(*r) })
		w.Written(total, func(*[]byte) { began++ })
		for w.Head < w.Next {
			w.Pop()
		}
	})
	assert.True(t, n == 0 && began != 0, "%v allocations for three of %d requests", n, began)
}

// TestMany: every connection is made once, and not too many at the same time.
func TestMany(t *testing.T) {
	for _, n := range []int{0, 1, atOnce, 5 * atOnce} {
		made := make([]int, n)
		var now, most atomic.Int64
		var full sync.WaitGroup // until as many as may be are being made
		full.Add(min(n, atOnce))
		assert.OK(t, DialMany(t.Context(), n, func(_ context.Context, i int) error {
			k := now.Add(1)
			for m := most.Load(); k > m && !most.CompareAndSwap(m, k); m = most.Load() {
			}
			if i < atOnce {
				full.Done()
				full.Wait()
			}
			made[i]++
			now.Add(-1)
			return nil
		}))
		for i, times := range made {
			assert.True(t, times == 1, "%d connections: number %d was made %d times", n, i, times)
		}
		got, want := most.Load(), int64(min(n, atOnce))
		assert.True(t, got == want, "%d connections: %d at the same time, want %d", n, got, want)
	}
}

// TestManyFails: the first error ends the other attempts, which wait for their context here, begins
// no further ones, and is the one that is returned.
func TestManyFails(t *testing.T) {
	refused := errors.New("refused")
	var begun atomic.Int64
	err := DialMany(t.Context(), 10*atOnce, func(ctx context.Context, i int) error {
		begun.Add(1)
		if i == 1 {
			return refused
		}
		<-ctx.Done()
		return ctx.Err()
	})
	assert.True(t, errors.Is(err, refused), "got %v, want %v", err, refused)
	n := begun.Load()
	assert.True(t, n <= 2*atOnce, "%d of %d attempts were begun", n, 10*atOnce)
}

// TestManyCanceled: DialMany calls connect also with a context that has ended, because a call may not need it.
func TestManyCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var begun atomic.Int64
	err := DialMany(ctx, 3*atOnce, func(context.Context, int) error { begun.Add(1); return nil })
	assert.True(t, err == nil && begun.Load() == 3*atOnce, "%d of %d calls were begun: %v", begun.Load(), 3*atOnce, err)
}

// TestOptions checks which connection options reports are grouped by. For connect-timeout that depends on the kind.
func TestOptions(t *testing.T) {
	for _, tt := range []struct {
		name    string
		connect ConnectTimeout
		want    []string
	}{
		{"none", ConnectTimeout{}, []string{"request-timeout", "send-buffer", "recv-buffer"}},
		{"dependent", ConnectTimeout{Default: "10s"}, []string{"request-timeout", "connect-timeout", "send-buffer", "recv-buffer"}},
		{"independent", ConnectTimeout{Default: "5s", Independent: true}, []string{"request-timeout", "connect-timeout", "send-buffer", "recv-buffer"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rows := Options("connections", tt.connect)
			assert.Must(t, len(rows) == len(tt.want), "got %d rows, want %v", len(rows), tt.want)
			for i, row := range rows {
				independent := true
				if row.Name == "connect-timeout" {
					independent = tt.connect.Independent
					assert.Equal(t, row.Default, tt.connect.Default, "default")
				}
				assert.True(t, row.Name == tt.want[i] && row.Independent == independent && row.Group == "connections" &&
					row.Help != "", "got %+v, want %s, independent %v and explained", row, tt.want[i], independent)
			}
		})
	}
}
