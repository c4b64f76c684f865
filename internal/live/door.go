package live

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// The places of a server: how many connections it has at one time.
const (
	Places        = 256
	Strangers     = Places / 10 // of connections that have not shown a token
	StrangersFrom = 16          // of these, from one address
)

// StrangersHeaders is how long the headers of a request may take.
const StrangersHeaders = 2 * time.Second

// A Door is the listener of an HTTP server behind a guard. Connections that have not shown a token have
// a tenth of the places: one that comes makes the oldest leave, so that they cannot keep out users with a
// token. It is safe for concurrent use.
type Door struct {
	net.Listener
	mu     sync.Mutex
	guests []*guest // that have not shown a token, the oldest first
	known  []*guest // that have, the same
}

// NewDoor returns the door of a server, and prepares the server for it.
func NewDoor(l net.Listener, s *http.Server) *Door {
	s.ReadHeaderTimeout, s.IdleTimeout, s.MaxHeaderBytes = StrangersHeaders, time.Minute, 64<<10
	s.ConnContext = withConn
	s.ConnState = func(c net.Conn, state http.ConnState) {
		if g := guestOf(c); g != nil {
			g.idle.Store(state == http.StateIdle)
		}
	}
	return &Door{Listener: l}
}

// A guest is a connection.
type guest struct {
	net.Conn
	door    *Door
	address string // without the port
	idle    atomic.Bool
}

// Accept implements net.Listener.
func (d *Door) Accept() (net.Conn, error) {
	c, err := d.Listener.Accept()
	if err != nil {
		return nil, err
	}
	g := &guest{Conn: c, door: d, address: c.RemoteAddr().String()}
	if host, _, err := net.SplitHostPort(g.address); err == nil {
		g.address = host
	}
	d.mu.Lock()
	leaves := d.crowding(g.address)
	d.guests = append(d.guests, g)
	d.mu.Unlock()
	if leaves != nil {
		leaves.Close()
	}
	return g, nil
}

// crowding returns the connection that makes room for a new one from an address: the oldest of that
// address if it has too many, else that of the address that has most. Nil: there is room. d.mu is locked.
func (d *Door) crowding(address string) *guest {
	from := map[string]int{}
	for _, g := range d.guests {
		from[g.address]++
	}
	if from[address] < StrangersFrom {
		if len(d.guests) < Strangers {
			return nil
		}
		address = slices.MaxFunc(d.guests, func(a, b *guest) int { return cmp.Compare(from[a.address], from[b.address]) }).address
	}
	return d.guests[slices.IndexFunc(d.guests, func(g *guest) bool { return g.address == address })]
}

// know gives a connection that has shown a token one of the other places. If all are taken, the oldest
// that does nothing leaves; false: none does.
func (g *guest) know() bool {
	d := g.door
	d.mu.Lock()
	i := slices.Index(d.guests, g)
	if i < 0 { // it is known, or has ended
		d.mu.Unlock()
		return true
	}
	var leaves *guest
	if len(d.known) >= Places-Strangers {
		k := slices.IndexFunc(d.known, func(o *guest) bool { return o.idle.Load() })
		if k < 0 {
			d.mu.Unlock()
			return false
		}
		leaves = d.known[k]
	}
	d.guests = slices.Delete(d.guests, i, i+1)
	d.known = append(d.known, g)
	d.mu.Unlock()
	if leaves != nil {
		leaves.Close()
	}
	return true
}

// Close implements net.Conn.
func (g *guest) Close() error {
	is := func(o *guest) bool { return o == g }
	g.door.mu.Lock()
	g.door.guests = slices.DeleteFunc(g.door.guests, is)
	g.door.known = slices.DeleteFunc(g.door.known, is)
	g.door.mu.Unlock()
	return g.Conn.Close()
}

// guestOf returns the connection of a door, perhaps below TLS; nil for another.
func guestOf(c net.Conn) *guest {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	g, _ := c.(*guest)
	return g
}

// welcome notes that a request has shown a valid token. It reports whether there is a place for its
// connection.
func welcome(ctx context.Context) bool {
	c, _ := ctx.Value(connKey{}).(net.Conn)
	g := guestOf(c)
	return g == nil || g.know()
}
