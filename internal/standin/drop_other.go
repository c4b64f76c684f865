//go:build !linux

package standin

import "net"

// A Dropper drops bytes of one connection. It does not exist on this system.
type Dropper struct{}

func newDropper(*net.TCPConn) *Dropper { return nil }

// Drop is never called here.
func (*Dropper) Drop(int64) error { return nil }

// CanDrop reports whether the kernel drops bytes.
func CanDrop() bool { return false }
