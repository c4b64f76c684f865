package conn

import (
	"context"
	"fmt"
	"sync"

	"carronade/target"
	"carronade/units"
)

const (
	// atOnce bounds the connections that DialMany makes at the same time: more would fill
	// the server's queue of connections that it has not accepted yet.
	atOnce = 64
	// OtherFiles is how many files a run may open after its connections and besides them: those by
	// which its sending threads wait, the report, what it writes and reads meanwhile.
	OtherFiles = 32
)

// DialMany calls connect for the numbers 0 to n-1, each of which makes a connection, some of
// them at the same time. It returns when all calls have returned. The first error ends the
// context of the other calls, no further one begins, and DialMany returns that error. If the
// given context ends, each call finds that out itself. A *target.Error says that the limit of
// open files is too low for n connections; connect was then not called.
func DialMany(ctx context.Context, n int, connect func(ctx context.Context, i int) error) error {
	if err := enoughFiles(n, openFiles(), mostFiles()); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		wg     sync.WaitGroup
		once   sync.Once
		first  error
		failed = make(chan struct{})
		next   = make(chan int)
	)
	for range min(n, atOnce) {
		wg.Go(func() {
			for i := range next {
				if err := connect(ctx, i); err != nil {
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

// FilesFor returns how many files this process needs if it makes n connections more than it has: those that
// are open now (on Windows they do not matter, and count as none), the connections, and OtherFiles.
func FilesFor(n int) int { return filesFor(n, openFiles()) }

func filesFor(n, open int) int { return open + n + OtherFiles }

// enoughFiles returns an error if the limit of open files is too low for n connections more than
// are open.
func enoughFiles(n, open int, most uint64) error {
	need := filesFor(n, open)
	if uint64(need) <= most {
		return nil
	}
	return &target.Error{
		Doing: fmt.Sprintf("make %s", units.Plural(n, "connection")),
		Err:   fmt.Errorf("the limit of open files is %d, and the run needs about %d (%d are open now)", most, need, open),
		Hint:  fmt.Sprintf("raise it (ulimit -n %d, or LimitNOFILE= of a systemd unit), or give fewer --clients", 2*need),
	}
}
