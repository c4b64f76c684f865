//go:build !linux

package socket

type stamper struct{}

func (*Stamped) setup() {}

// Read reads like the Read of the connection.
func (s *Stamped) Read(b []byte) (int, error) { return s.conn.Read(b) }

// Slept returns false: not known here.
func (*Stamped) Slept() bool { return false }

// Empty returns false: not known here.
func (*Stamped) Empty() bool { return false }
