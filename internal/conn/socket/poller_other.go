//go:build !linux

package socket

import (
	"net"
	"time"
)

// A Poller exists only on Linux: elsewhere the Go runtime reads connections.
type Poller struct{}

// Polls says that this system supports pollers.
const Polls = false

// NewPoller returns nil: pollers are not supported.
func NewPoller(func() time.Duration, bool) *Poller { return nil }

// NewServerPoller returns nil: pollers are not supported.
func NewServerPoller(func() time.Duration) *Poller { return nil }

// Method is never called.
func (p *Poller) Method() string { return "" }

// Take always returns false.
func (p *Poller) Take(net.Conn) (*Conn, bool) { return nil, false }

// Prepare, Wait, Wake and Leave are never called.
func (p *Poller) Prepare() {}

// Wait is never called.
func (p *Poller) Wait(time.Duration, bool, bool) {}

// ReadAtOnce is never called.
func (p *Poller) ReadAtOnce() {}

// Wake is never called.
func (p *Poller) Wake() {}

// Leave is never called.
func (p *Poller) Leave() {}

// A Stream is not supported.
type Stream struct{}

func (s *Stream) one() bool                   { return false }
func (s *Stream) since(Arrival) time.Duration { return 0 }

// Never is later than any other offset.
const Never = 1<<63 - 1

// ScratchSize is the size of a buffer for reading.
const ScratchSize = 64 << 10

// A Conn is not supported.
type Conn struct{ net.Conn }

// Serve is never called.
func (c *Conn) Serve(_ func(all bool) (over bool), _ func()) {}

// Arrival is never called.
func (c *Conn) Arrival(now time.Duration) Arrival { return Arrival{Last: now} }

// Together is never called.
func (c *Conn) Together() {}

// Scratch is never called.
func (c *Conn) Scratch() []byte { return nil }

// Drop is never called.
func (c *Conn) Drop(int) (int, error) { return 0, nil }

// Small is never called.
func (c *Conn) Small() {}

// Again is never called.
func (c *Conn) Again() {}

// WhenWritable is never called.
func (c *Conn) WhenWritable() {}

// At is never called.
func (c *Conn) At() time.Duration { return 0 }

// Release is never called.
func (c *Conn) Release() {}
