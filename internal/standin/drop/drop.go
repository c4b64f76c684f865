// Package drop removes bytes from a connection without looking at them, inside
// the kernel where possible. A sink that uses it costs almost nothing beside the
// generator that it measures.
//
// It knows nothing about the bytes. Its invariant: exactly the reported number of
// bytes is dropped, in order with the bytes that are read.
package drop

import "net"

// New returns a Dropper for c, or nil where dropping would need a copy:
// connections other than plain TCP, systems other than Linux, and kernels that
// only emulate Linux (a sandbox).
func New(c net.Conn) *Dropper {
	if tc, ok := c.(*net.TCPConn); ok && Supported() {
		return newDropper(tc)
	}
	return nil
}
