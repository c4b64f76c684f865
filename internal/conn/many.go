package conn

import (
	"context"
	"sync"
)

// atOnce bounds the connections that DialMany makes at the same time: more would fill the server's
// queue of connections that it has not accepted yet.
const atOnce = 64

// DialMany is Many for calls that each make a connection.
func DialMany(ctx context.Context, n int, connect func(ctx context.Context, i int) error) error {
	return Many(ctx, n, atOnce, connect)
}

// Many calls call for the numbers 0 to n-1, at most a number of them at the same time. It returns when
// all calls have returned. The first error ends the context of the other calls, no further one begins, and
// Many returns that error. If the given context ends, each call finds that out itself.
func Many(ctx context.Context, n, most int, call func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		wg     sync.WaitGroup
		once   sync.Once
		first  error
		failed = make(chan struct{})
		next   = make(chan int)
	)
	for range min(n, most) {
		wg.Go(func() {
			for i := range next {
				if err := call(ctx, i); err != nil {
					once.Do(func() {
						first = err
						close(failed)
						cancel()
					})
				}
			}
		})
	}
begin:
	for i := range n {
		select {
		case next <- i:
		case <-failed:
			break begin
		}
	}
	close(next)
	wg.Wait()
	return first
}
