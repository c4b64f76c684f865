package conn

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
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

// frames removes complete frames from b.
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

// TestReader: whatever sizes answers have, and however a peer splits them and when it
// sends the pieces, each is read once, in order, and the reader ends once with the reason.
// The peer ends the connection between answers, within one, or not at all; then an answer
// that the user does not accept ends it.
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

// check compares what was read.
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
