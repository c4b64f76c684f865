//go:build !linux

package apm

import (
	"net"
	"time"
)

// A poller exists only on Linux. On other systems the runtime's poller has all
// connections.
type poller struct{}

type socketOf struct {
	p             *poller
	armed, inRing bool
	at            time.Duration
	released      chan struct{}
}

// newPollers says whether this system supports pollers.
const newPollers = false

func newPoller(*session) *poller                    { return nil }
func (*poller) adopt(_ *link, nc net.Conn) net.Conn { return nc }
func (*poller) add(*link)                           {}
func (*poller) Prepare()                            {}
func (*poller) Wait(time.Duration, bool, bool)      {}
func (*poller) Wake()                               {}
func (*poller) Leave()                              {}
func (*poller) run()                                {}
func (*poller) end()                                {}
func (*poller) notifyRing()                         {}
func (*link) queue()                                {}
func (*link) write(bool)                            {}
