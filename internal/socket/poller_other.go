//go:build !linux

package socket

import (
	"net"
	"time"
)

// A Poller is for Linux: elsewhere connections are the runtime's.
type Poller struct{}

// NewPoller returns nil: there is none.
func NewPoller(func() time.Duration) *Poller { return nil }

// Take takes nothing.
func (p *Poller) Take(net.Conn) (*Conn, bool) { return nil, false }

// Prepare, Wait, Wake and Leave are never called.
func (p *Poller) Prepare() {}

// Wait is never called.
func (p *Poller) Wait(time.Duration, bool, bool) {}

// Impatient is never called.
func (p *Poller) Impatient() {}

// Wake is never called.
func (p *Poller) Wake() {}

// Leave is never called.
func (p *Poller) Leave() {}

// A Stream reads for a waiter: there is none.
type Stream struct{}

func (s *Stream) one() bool                   { return false }
func (s *Stream) since(Arrival) time.Duration { return 0 }

// A Conn is a connection of a poller: there is none.
type Conn struct{ net.Conn }

// Serve is never called.
func (c *Conn) Serve(func(end bool) (over bool)) {}

// Arrival is never called.
func (c *Conn) Arrival(now time.Duration) Arrival { return Arrival{Last: now} }

// Together is never called.
func (c *Conn) Together() {}

// Release is never called.
func (c *Conn) Release() {}
