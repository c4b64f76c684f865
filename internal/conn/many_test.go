package conn

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"carronade/test/testkit/assert"
)

// TestMany: every connection is made once, and not too many at the same time.
func TestMany(t *testing.T) {
	for _, n := range []int{0, 1, atOnce, 5 * atOnce} {
		made := make([]int, n)
		var now, most atomic.Int64
		var full sync.WaitGroup // until as many as may be are being made
		full.Add(min(n, atOnce))
		err := DialMany(t.Context(), n, func(_ context.Context, i int) error {
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
		})
		assert.OK(t, err)
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
