//go:build unix

package host

import (
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// watchContinued notes when a signal continues the program. Listening to it
// does not change its effect.
func watchContinued(now func() time.Duration) (last func() time.Duration, end func()) {
	var at atomic.Int64
	at.Store(-1)
	signals, ended := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, syscall.SIGCONT)
	go func() {
		for {
			select {
			case <-signals:
				at.Store(int64(now()))
			case <-ended:
				return
			}
		}
	}()
	return func() time.Duration { return time.Duration(at.Load()) }, sync.OnceFunc(func() {
		signal.Stop(signals)
		close(ended)
	})
}
