//go:build !linux

package bench

import "errors"

// pacerLoop exists only on Linux.
func pacerLoop([]string) error { return errors.New("waking at a rate is measured only on Linux") }
