//go:build unix

package shell

import (
	"os"
	"os/signal"
	"syscall"
)

// onResize calls f when the size of the terminal changes, until the result is called.
func onResize(f func()) (stop func()) {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-changed:
				f()
			case <-done:
				return
			}
		}
	}()
	return func() {
		signal.Stop(changed)
		close(done)
	}
}
