package conn

import (
	"io"
	"net"
	"testing"
	"time"

	"pgregory.net/rapid"

	"carronade/internal/conn/socket"
	"carronade/test/testkit/assert"
)

// TestWindow: however writes cut requests, and whichever are answered meanwhile, a window
// gives each byte to the writer once, in order, and knows which requests were begun, are
// being written, and are written.
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
				if w.BeingWritten(n) {
					t.Fatalf("request %d is being written after its write", n)
				}
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
				if total != len(all)-written {
					t.Fatalf("%d bytes loaded, want all %d", total, len(all)-written)
				}
				for n := w.Next; n < w.Tail; n++ {
					if !w.BeingWritten(n) {
						t.Fatalf("request %d is not being written", n)
					}
				}
				if total > 0 {
					got := make([]byte, total)
					done := make(chan error, 1)
					go func() {
						_, err := out.Write(true)
						done <- err
					}()
					if _, err := io.ReadFull(there, got); err != nil || string(got) != string(all[written:]) {
						t.Fatalf("written %v, want %v (%v)", got, all[written:], err)
					}
					if err := <-done; err != nil {
						t.Fatal(err)
					}
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
			if n < w.Next && began[byte(n)] == 0 {
				t.Errorf("request %d was written, and was not reported as begun", n)
			}
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
		total := w.Load(out, func(r *[]byte) ([][]byte, int) {
			segs[0] = *r
			return segs, len(*r)
		})
		w.Written(total, func(*[]byte) { began++ })
		for w.Head < w.Next {
			w.Pop()
		}
	})
	assert.True(t, n == 0 && began != 0, "%v allocations for three of %d requests", n, began)
}
