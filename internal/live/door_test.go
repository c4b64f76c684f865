package live

import (
	"net"
	"net/http"
	"testing"
)

// A fakeConn is a connection from an address.
type fakeConn struct {
	net.Conn
	from   string
	closed bool
}

func (c *fakeConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(c.from), Port: 1} }
func (c *fakeConn) Close() error         { c.closed = true; return nil }

// A fakeListener accepts one connection after the other.
type fakeListener struct {
	net.Listener
	next *fakeConn
}

func (l *fakeListener) Accept() (net.Conn, error) { return l.next, nil }

// TestDoor: the oldest without a token makes room, of the address that has most; those with one stay.
func TestDoor(t *testing.T) {
	l := &fakeListener{}
	d := NewDoor(l, &http.Server{ReadHeaderTimeout: StrangersHeaders})
	come := func(from string) (*guest, *fakeConn) {
		l.next = &fakeConn{from: from}
		c, err := d.Accept()
		if err != nil {
			t.Fatal(err)
		}
		return c.(*guest), l.next
	}
	user, userConn := come("10.0.0.1")
	if !user.know() || !user.know() {
		t.Error("there is no place for a user")
	}
	_, first := come("10.0.0.9")
	var crowd []*fakeConn
	for range StrangersFrom + 3 { // three more than an address may have
		_, c := come("10.0.0.1")
		crowd = append(crowd, c)
	}
	for k, c := range crowd {
		if c.closed != (k < 3) {
			t.Errorf("connection %d of one address: closed %t", k, c.closed)
		}
	}
	for k := range Strangers - StrangersFrom - 1 + 2 { // two more than there are places
		come("10.1.0." + string(rune('0'+k%10)))
	}
	for k, c := range crowd {
		if c.closed != (k < 5) {
			t.Errorf("connection %d of the address with most: closed %t", k, c.closed)
		}
	}
	if first.closed || userConn.closed || len(d.guests) != Strangers {
		t.Errorf("others: %t, %t, %d without a token", first.closed, userConn.closed, len(d.guests))
	}
	for range Places - Strangers - 1 {
		if g, _ := come("10.0.0.2"); !g.know() {
			t.Fatal("there is no place for a user")
		}
	}
	late, _ := come("10.0.0.3")
	if late.know() {
		t.Error("there is a place while all are busy")
	}
	user.idle.Store(true)
	if !late.know() || !userConn.closed {
		t.Error("a connection that does nothing makes no room")
	}
}
