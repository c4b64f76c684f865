//go:build !linux

package socket

type stamper struct{}

func (*Stamped) setup() {}

// Read reads what there is.
func (s *Stamped) Read(b []byte) (int, error) { return s.conn.Read(b) }

// Slept reports whether the last read found nothing at first: that is not known.
func (*Stamped) Slept() bool { return false }

// Empty reports whether nothing waits to be read: that is not known.
func (*Stamped) Empty() bool { return false }
