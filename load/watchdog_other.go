//go:build !linux

package load

import "time"

// A beat sleeps for the watchdog.
type beat struct{}

func newBeat() beat { return beat{} }

func (beat) sleep(d time.Duration) { time.Sleep(d) }

func (beat) close() {}
