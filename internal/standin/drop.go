package standin

import "net"

// NewDropper returns a Dropper for c, or nil where dropping would need a copy:
// connections other than plain TCP, systems other than Linux, and kernels that
// only emulate Linux (a sandbox).
func NewDropper(c net.Conn) *Dropper {
	if tc, ok := c.(*net.TCPConn); ok && CanDrop() {
		return newDropper(tc)
	}
	return nil
}
