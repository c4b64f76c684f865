//go:build !linux

package socket

type stamper struct{}

func (*Stamped) setup() {}

// Read reads what there is.
func (s *Stamped) Read(b []byte) (int, error) { return s.conn.Read(b) }

// Empty reports whether nothing waits to be read: that is not known.
func (*Stamped) Empty() bool { return false }
