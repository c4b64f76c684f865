package conn

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"carronade/internal/conn/socket"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// A frame is an answer of these tests: a length in four bytes, and its bytes.
func frame(body []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

func frames(b []byte, each func(body []byte)) (used int) {
	for all := len(b); ; {
		if len(b) < 4 || len(b)-4 < int(binary.BigEndian.Uint32(b)) {
			return all - len(b)
		}
		n := 4 + int(binary.BigEndian.Uint32(b))
		each(b[4:n])
		b = b[n:]
	}
}

// A run is what a reader found.
type run struct {
	bodies [][]byte
	bytes  int
	ended  []error
}

// start reads a connection in a goroutine, until stopAt frames were read if that is
// above 0. The result is complete when the channel is closed.
func start(nc net.Conn, stopAt int) (*run, chan struct{}) {
	got, done := &run{}, make(chan struct{})
	begin := time.Now()
	r := Reader{
		Conn: nc, Now: func() time.Duration { return time.Since(begin) },
		Read: func(n int) { got.bytes += n },
		Received: func(b []byte, _ socket.Arrival) (int, error) {
			var err error
			used := frames(b, func(body []byte) {
				got.bodies = append(got.bodies, bytes.Clone(body))
				if len(got.bodies) == stopAt {
					err = errStop
				}
			})
			return used, err
		},
		Ended: func(err error) {
			got.ended = append(got.ended, err)
			nc.Close()
		},
	}
	go func() {
		defer close(done)
		r.Run()
	}()
	return got, done
}

var errStop = errors.New("enough")

// Whatever sizes answers have, and however a peer splits them and when it sends the pieces, each is read
// once, in order, and the reader ends once with the reason. The peer ends the connection between answers,
// within one, or not at all; then an answer that the user does not accept ends it.
func TestReader(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		sizes := rapid.SliceOfN(rapid.OneOf(rapid.IntRange(0, 20), rapid.IntRange(0, 10_000), rapid.IntRange(60_000, 150_000)), 1, 6).Draw(r, "sizes")
		var stream []byte
		var want [][]byte
		for i, n := range sizes {
			body := bytes.Repeat([]byte{byte(i + 1)}, n)
			want = append(want, body)
			stream = append(stream, frame(body)...)
		}
		cause, stopAt := io.EOF, 0
		if rapid.Bool().Draw(r, "stop") {
			cause, stopAt = errStop, rapid.IntRange(1, len(want)).Draw(r, "stop at")
			want = want[:stopAt]
		} else if rapid.Bool().Draw(r, "cut") {
			stream = append(stream, 0, 0, 1)
		}
		most := rapid.OneOf(rapid.IntRange(1, 7), rapid.IntRange(1000, 100_000)).Draw(r, "most of a piece")
		most = max(most, len(stream)/300)
		pieces := rapid.SliceOfN(rapid.IntRange(1, most), 1, 30).Draw(r, "pieces")
		pauses := rapid.SliceOfN(rapid.IntRange(0, 100), 1, 30).Draw(r, "pauses in ms")
		synctest.Test(t, func(t *testing.T) {
			here, there := net.Pipe()
			defer here.Close()
			got, done := start(here, stopAt)
			left := stream
			for k := 0; len(left) > 0; k++ {
				n := min(len(left), pieces[k%len(pieces)])
				if _, err := there.Write(left[:n]); err != nil {
					break
				}
				left = left[n:]
				select {
				case <-done:
					left = nil
				case <-time.After(time.Duration(pauses[k%len(pauses)]) * time.Millisecond):
				}
			}
			there.Close()
			<-done
			check(t, got, want, cause, stopAt)
		})
	})
}

func check(t *testing.T, got *run, want [][]byte, cause error, stopAt int) {
	t.Helper()
	assert.True(t, len(got.ended) == 1 && errors.Is(got.ended[0], cause), "ended with %v, want once %v", got.ended, cause)
	if stopAt > 0 && len(got.bodies) > len(want) {
		got.bodies = got.bodies[:len(want)] // they came in the same read
	}
	assert.Must(t, len(got.bodies) == len(want), "%d answers, want %d", len(got.bodies), len(want))
	for i := range want {
		assert.Must(t, bytes.Equal(got.bodies[i], want[i]),
			"answer %d: %d bytes, want %d", i, len(got.bodies[i]), len(want[i]))
	}
}

// TestReaderReset: a connection that is reset within an answer ends the reader.
func TestReaderReset(t *testing.T) {
	here, there := testkit.Pair(t)
	got, done := start(here, 0)
	assert.Value(there.Write(frame([]byte("whole"))))(t)
	assert.Value(there.Write([]byte{0, 0}))(t)
	assert.OK(t, there.SetLinger(0))
	there.Close()
	<-done
	assert.True(t, len(got.ended) == 1 && got.ended[0] != nil, "ended with %v, want one error", got.ended)
}

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

// A borrowed buffer is large enough, and its memory is used again.
func TestBorrow(t *testing.T) {
	for _, n := range []int{0, 1, 1 << buffers.Least, 1<<buffers.Least + 1, 5000, 1 << mostClass, 1<<mostClass + 1} {
		b := Borrow(n)
		assert.True(t, len(b) == 0 && cap(b) >= n, "borrowed %d bytes: length %d, capacity %d", n, len(b), cap(b))
		assert.True(t, n > 1<<mostClass || cap(b) <= max(2*n, 1<<buffers.Least),
			"borrowed %d bytes: a capacity of %d is more than twice that", n, cap(b))
		Return(b)
	}
	Return(nil)
	Return(make([]byte, 0, 3000)) // not of a class: Borrow must not return it
	assert.Equal(t, cap(Borrow(2100)), 4096, "the capacity")
}

// Grow keeps the contents.
func TestGrow(t *testing.T) {
	b := append(Borrow(1000), "contents"...)
	same := Grow(b, cap(b)-len(b))
	assert.True(t, cap(same) == cap(b), "the capacity changed from %d to %d", cap(b), cap(same))
	if larger := Grow(b, 10_000); cap(larger)-len(larger) < 10_000 || !bytes.Equal(larger, []byte("contents")) {
		t.Errorf("got %q with a capacity of %d", larger, cap(larger))
	}
}

// Borrowing and returning allocates nothing.
func TestBorrowAllocatesNothing(t *testing.T) {
	Return(Borrow(3000))
	assert.Equal(t, testing.AllocsPerRun(100, func() { Return(Borrow(3000)) }), 0, "allocations")
}
