//go:build !linux

package bench

import "errors"

// pacerLoop is measured on Linux alone.
func pacerLoop([]string) error { return errors.New("waking at a rate is measured on Linux alone") }
