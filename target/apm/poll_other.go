//go:build !linux

package apm

import "time"

// A poller is for Linux: elsewhere connections are the runtime's.
type poller struct{}

type socketOf struct {
	p             *poller
	armed, riding bool
	at            time.Duration
	gone          chan struct{}
}

// newPollers is whether there may be any.
const newPollers = false

func newPoller(*session) *poller               { return nil }
func (*poller) adopt(*link) bool               { return false }
func (*poller) add(*link)                      {}
func (*poller) Prepare()                       {}
func (*poller) Wait(time.Duration, bool, bool) {}
func (*poller) Wake()                          {}
func (*poller) Leave()                         {}
func (*poller) run()                           {}
func (*poller) end()                           {}
func (*poller) call()                          {}
func (*link) queue()                           {}
func (*link) write(bool)                       {}
func (*link) shut()                            {}
