package serve

import (
	"os"
	"os/signal"
	"syscall"
)

// waitForInterrupt returns when the process is to end.
func waitForInterrupt() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, os.Interrupt, syscall.SIGTERM)
	<-c
}
