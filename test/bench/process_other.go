//go:build !linux

package bench

import (
	"io"
	"net"
)

// sinkMethod says how the sink reads, for the table.
const sinkMethod = "read(2) into 256 KiB, as the discarding stand-in reads here"

// readToEnd reads a connection to its end.
func readToEnd(c *net.TCPConn) error {
	_, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{c}, make([]byte, 256<<10))
	return err
}
