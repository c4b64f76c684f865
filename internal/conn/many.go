package conn

import (
	"fmt"
	"sync"

	"carronade/target"
	"carronade/units"
)

const (
	// atOnce bounds the connections that DialMany makes at the same time: more would fill
	// the server's queue of connections that it has not accepted yet.
	atOnce = 64
	// ownFiles is about how many files the generator opens besides connections: the
	// store, files of /proc, events of threads.
	ownFiles = 64
)

// DialMany calls connect for the numbers 0 to n-1, each of which makes a connection, some of
// them at the same time. It returns when all calls have returned. An error says that the
// limit of open files is too low for n connections; connect was then not called.
func DialMany(n int, connect func(i int)) error {
	if most := mostFiles(); uint64(n+ownFiles) > most {
		return &target.Error{
			Doing: fmt.Sprintf("make %s", units.Plural(n, "connection")),
			Err:   fmt.Errorf("the limit of open files is %d, and the run needs about %d", most, n+ownFiles),
			Hint:  fmt.Sprintf("raise it (ulimit -n %d, or LimitNOFILE= of a systemd unit), or give fewer --clients", 2*(n+ownFiles)),
		}
	}
	var (
		wg   sync.WaitGroup
		next = make(chan int)
	)
	for range min(n, atOnce) {
		wg.Go(func() {
			for i := range next {
				connect(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
	return nil
}
