package conn

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"carronade/test/testkit/assert"

	"pgregory.net/rapid"
)

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
