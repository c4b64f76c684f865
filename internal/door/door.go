// Package door shares the places of a server among its connections. Those that have not shown a
// token or a key are strangers, and have a tenth as many places as the others: a new stranger takes the
// place of the oldest one, so strangers cannot keep out a user who has a token. It knows no protocol: the server
// says when a connection has shown a token or a key, and when it does nothing.
package door

import (
	"cmp"
	"crypto/tls"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Limits of servers whose clients are programs.
const (
	Places        = 256             // of connections that have shown a token or a key
	FirstExchange = 2 * time.Second // until a connection has shown one; over HTTP, until the headers of a request came
)

// FromOne is how many strangers one address may have.
const FromOne = 16

// A Door has the connections of a server. It is safe for concurrent use.
type Door struct {
	places  int
	foreign int // places of strangers

	mu        sync.Mutex
	strangers []*Guest // the oldest first
	known     []*Guest // the same
	closed    bool
}

// New returns a door with the given number of places for connections that have shown a token or a
// key, and a tenth of that number for strangers, one at least.
func New(places int) *Door { return &Door{places: places, foreign: max(1, places/10)} }

// A Guest is a connection.
type Guest struct {
	net.Conn
	door    *Door
	host    string // its address without the port
	resting atomic.Bool
}

// Enter adds a connection as a stranger. If no place is free, it closes another stranger's connection.
func (d *Door) Enter(c net.Conn) *Guest {
	g := &Guest{Conn: c, door: d, host: c.RemoteAddr().String()}
	if host, _, err := net.SplitHostPort(g.host); err == nil {
		g.host = host
	}
	d.mu.Lock()
	leaves := d.crowding(g.host)
	if d.closed {
		leaves = g
	} else {
		d.strangers = append(d.strangers, g)
	}
	d.mu.Unlock()
	if leaves != nil {
		leaves.Close()
	}
	return g
}

// crowding returns the stranger that makes room for a new one from an address: the oldest of that
// address if it has too many, else that of the address that has most. Nil: there is room. d.mu is locked.
func (d *Door) crowding(host string) *Guest {
	from := map[string]int{}
	for _, g := range d.strangers {
		from[g.host]++
	}
	if from[host] < FromOne {
		if len(d.strangers) < d.foreign {
			return nil
		}
		host = slices.MaxFunc(d.strangers, func(a, b *Guest) int { return cmp.Compare(from[a.host], from[b.host]) }).host
	}
	return d.strangers[slices.IndexFunc(d.strangers, func(g *Guest) bool { return g.host == host })]
}

// Known gives a connection that has shown a token or a key one of the places of those. If all are
// taken, the oldest that rests leaves. It reports whether there is a place.
func (g *Guest) Known() bool {
	d := g.door
	d.mu.Lock()
	i := slices.Index(d.strangers, g)
	if i < 0 { // it is known, or has ended
		d.mu.Unlock()
		return !d.ended()
	}
	var leaves *Guest
	if len(d.known) >= d.places {
		k := slices.IndexFunc(d.known, func(o *Guest) bool { return o.resting.Load() })
		if k < 0 {
			d.mu.Unlock()
			return false
		}
		leaves = d.known[k]
		d.known = slices.Delete(d.known, k, k+1)
	}
	d.strangers = slices.Delete(d.strangers, i, i+1)
	d.known = append(d.known, g)
	d.mu.Unlock()
	if leaves != nil {
		leaves.Close()
	}
	return true
}

// Host is the address that the connection comes from, without its port.
func (g *Guest) Host() string { return g.host }

// Rest notes whether the connection does nothing, so that it may make room for another.
func (g *Guest) Rest(resting bool) { g.resting.Store(resting) }

// Close implements net.Conn.
func (g *Guest) Close() error {
	is := func(o *Guest) bool { return o == g }
	g.door.mu.Lock()
	g.door.strangers = slices.DeleteFunc(g.door.strangers, is)
	g.door.known = slices.DeleteFunc(g.door.known, is)
	g.door.mu.Unlock()
	return g.Conn.Close()
}

// Close ends the strangers, and those that come later.
func (d *Door) Close() {
	d.mu.Lock()
	d.closed = true
	leave := d.strangers
	d.strangers = nil
	d.mu.Unlock()
	for _, g := range leave {
		g.Close()
	}
}

func (d *Door) ended() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closed
}

// Of returns the guest that a connection is, perhaps below TLS; nil if it is none.
func Of(c net.Conn) *Guest {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	g, _ := c.(*Guest)
	return g
}

// A listener has its connections enter.
type listener struct {
	net.Listener
	door *Door
}

// Listen returns a listener whose connections have entered.
func (d *Door) Listen(l net.Listener) net.Listener { return &listener{l, d} }

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.door.Enter(c), nil
}
