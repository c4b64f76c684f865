package conn

import (
	"bytes"
	"context"
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
		Ended: func(err error) { got.ended = append(got.ended, err); nc.Close() },
	}
	go func() { defer close(done); r.Run() }()
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
		assert.Must(t, bytes.Equal(got.bodies[i], want[i]), "answer %d: %d bytes, want %d", i, len(got.bodies[i]), len(want[i]))
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
	larger := Grow(b, 10_000)
	assert.True(t, cap(larger)-len(larger) >= 10_000 && bytes.Equal(larger, []byte("contents")), "got %q with a capacity of %d", larger, cap(larger))
}

// Borrowing and returning allocates nothing.
func TestBorrowAllocatesNothing(t *testing.T) {
	Return(Borrow(3000))
	assert.Equal(t, testing.AllocsPerRun(100, func() { Return(Borrow(3000)) }), 0, "allocations")
}

// An attempt is what happens to one attempt to connect, and to its connection.
type attempt struct {
	dialing time.Duration
	err     error
	serving time.Duration
	next    Next
}

func attempts(r *rapid.T, label string) []attempt {
	return rapid.SliceOfN(rapid.Custom(func(r *rapid.T) attempt {
		// At least 1 ms, so that virtual time passes.
		a := attempt{dialing: time.Duration(rapid.IntRange(1, 100).Draw(r, "dialing")) * time.Millisecond}
		if rapid.Bool().Draw(r, "fails") {
			a.err = errRefused
			return a
		}
		a.serving = time.Duration(rapid.IntRange(0, 3000).Draw(r, "serving")) * time.Millisecond
		a.next = rapid.SampledFrom([]Next{AtOnce, AfterFirst, AfterPause}).Draw(r, "next")
		return a
	}), 1, 20).Draw(r, label)
}

var errRefused = errors.New("refused")

// Against a random peer, a keeper has one connection at a time, pauses between attempts for as long as it
// should, and stops for good at its end, whatever it is doing then.
func TestKeeper(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		first := rapid.SampledFrom([]time.Duration{time.Millisecond, ReconnectFirst, 5 * time.Second}).Draw(r, "first")
		all := attempts(r, "attempts")
		has := all[0].err == nil && rapid.Bool().Draw(r, "has a connection")
		end := time.Duration(rapid.IntRange(0, 30_000).Draw(r, "end")) * time.Millisecond
		ending := rapid.SampledFrom([]string{"context", "never", "closed"}).Draw(r, "ending")
		later := rapid.Bool().Draw(r, "later") // no goroutine waits for a connection
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), end)
			defer cancel()
			over := func() bool { return ctx.Err() != nil }
			keeping := ctx
			if ending != "context" { // the lane is closed, and its context ends later
				keeping = context.Background()
			}
			var (
				n, open, failed, wantFailed int
				ended                       time.Time // of the last attempt or connection
				last                        = AtOnce
				pause                       time.Duration
			)
			expect := func(next Next) { // notes an end, and how long the pause is now
				ended, last = time.Now(), next
				switch next {
				case AtOnce:
					pause = 0
				case AfterFirst:
					pause = first
				default:
					pause = min(max(2*pause, first), max(ReconnectMost, first))
				}
			}
			k := Keeper[attempt]{
				First: first,
				Dial: func(ctx context.Context) (*attempt, error) {
					if ending == "closed" && over() {
						return nil, ErrClosed
					}
					assert.True(t, !over(), "attempt %d after the end", n)
					if waited := time.Since(ended); n > 0 && last != AtOnce && (waited < pause*8/10 || waited > pause*12/10+1) {
						t.Errorf("attempt %d after %v, want %v plus or minus a fifth", n, waited, pause)
					} else if n > 0 && last == AtOnce && waited > 0 {
						t.Errorf("attempt %d after %v, want at once", n, waited)
					}
					a := &all[n%len(all)]
					n++
					select {
					case <-time.After(a.dialing):
					case <-ctx.Done():
						return nil, ctx.Err()
					}
					if a.err != nil {
						wantFailed++
						expect(AfterPause)
						return nil, a.err
					}
					return a, nil
				},
				Failed: func(err error) {
					if failed++; !errors.Is(err, errRefused) {
						t.Errorf("an attempt failed with %v", err)
					}
				},
				Serve: func(a *attempt) Next {
					if open++; open != 1 {
						t.Errorf("%d connections at a time", open)
					}
					defer func() { open-- }()
					select {
					case <-time.After(a.serving):
					case <-keeping.Done():
					}
					if ending == "never" && over() {
						return Never
					}
					expect(a.next)
					return a.next
				},
			}
			var have *attempt
			if has {
				have, n = &all[0], 1
			}
			if ending == "never" { // a lane that is over is not noticed while it has no connection
				dial := k.Dial
				k.Dial = func(ctx context.Context) (*attempt, error) {
					if over() {
						return &attempt{next: Never}, nil
					}
					return dial(ctx)
				}
			}
			if later {
				done, paused := make(chan struct{}), time.Duration(0)
				serve, resume := k.Serve, k
				k.Serve = func(a *attempt) Next {
					go func() {
						if next := serve(a); resume.Resume(keeping, next, &paused) {
							close(done)
						}
					}()
					return Later
				}
				resume.Dial, resume.Serve = k.Dial, k.Serve
				if k.Keep(keeping, have, &paused) {
					close(done)
				}
				<-done
			} else {
				k.Run(keeping, have)
			}
			assert.True(t, over(), "it ended too early")
			assert.True(t, failed <= wantFailed && failed >= wantFailed-1,
				"%d failed attempts reported, want %d", failed, wantFailed) // the last one may be cut off by the end
			calls := n
			time.Sleep(time.Hour)
			assert.True(t, n == calls && open == 0, "after the end, %d attempts were made, and %d connections are open", n-calls, open)
		})
	})
}

// TestOutage: an outage begins with the first error, and has the last one.
func TestOutage(t *testing.T) {
	var o Outage
	assert.True(t, !o.Longer(time.Hour, 0), "there is an outage before any error")
	o.Note(time.Second, errRefused)
	last := errors.New("no route")
	o.Note(2*time.Second, last)
	//nolint:errorlint // the same value
	assert.True(t, o.Since == time.Second && o.Err == last, "got %+v, want since 1s, with the last error", o)
	assert.True(t, !o.Longer(3*time.Second, 2*time.Second) && o.Longer(3*time.Second+1, 2*time.Second),
		"the outage is not counted from the first error")
}
