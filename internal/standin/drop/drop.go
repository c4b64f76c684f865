// Package drop takes bytes off a connection without looking at them: inside
// the kernel where that can be had, which is what makes a sink that costs next
// to nothing beside the generator it is to measure.
//
// It refuses to know what the bytes are. Its invariant: exactly as many bytes
// are gone as it says, in order with those that are read.
package drop

import "net"

// New returns what drops bytes of c, or nil where that needs a copy: other
// connections than plain TCP, other systems than Linux, and kernels that are not
// Linux's own (a sandbox).
func New(c net.Conn) *Dropper {
	if tc, ok := c.(*net.TCPConn); ok && Can() {
		return newDropper(tc)
	}
	return nil
}
