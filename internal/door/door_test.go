package door

import (
	"net"
	"testing"

	"carronade/test/testkit/assert"
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

// TestDoor: the oldest stranger makes room, of the address that has most; those that are known stay.
func TestDoor(t *testing.T) {
	const places = 250
	strangers := places / 10
	l := &fakeListener{}
	d := New(places)
	in := d.Listen(l)
	come := func(from string) (*Guest, *fakeConn) {
		l.next = &fakeConn{from: from}
		c := assert.Value(in.Accept())(t)
		return Of(c), l.next
	}
	user, userConn := come("10.0.0.1")
	assert.True(t, user.Known(), "there is no place for a user")
	_, first := come("10.0.0.9")
	var crowd []*fakeConn
	for range FromOne + 3 { // three more than an address may have
		_, c := come("10.0.0.1")
		crowd = append(crowd, c)
	}
	for k, c := range crowd {
		assert.True(t, c.closed == (k < 3), "connection %d of one address: closed %t", k, c.closed)
	}
	for k := range strangers - FromOne - 1 + 2 { // two more than there are places
		come("10.1.0." + string(rune('0'+k%10)))
	}
	for k, c := range crowd {
		assert.True(t, c.closed == (k < 5), "connection %d of the address with most: closed %t", k, c.closed)
	}
	assert.True(t, !first.closed && !userConn.closed && len(d.strangers) == strangers, "others: %t, %t, %d strangers", first.closed, userConn.closed, len(d.strangers))
	for range places - 1 {
		g, _ := come("10.0.0.2")
		assert.True(t, g.Known(), "there is no place for a user")
	}
	late, lateConn := come("10.0.0.3")
	assert.True(t, !late.Known(), "there is a place while all are busy")
	user.Rest(true)
	assert.True(t, late.Known() && userConn.closed, "a connection that does nothing makes no room")
	assert.Equal(t, len(d.known), places)
	late.Close()
	assert.Equal(t, len(d.known), places-1)
	d.Close()
	assert.True(t, first.closed, "a stranger stays when the server ends")
	after, afterConn := come("10.0.0.4")
	assert.True(t, afterConn.closed && !after.Known() && lateConn.closed, "a connection enters when the server has ended")
}

// TestFewPlaces: a door with few places has one for a stranger, which the next one takes.
func TestFewPlaces(t *testing.T) {
	for places := range 10 {
		d := New(places)
		first := &fakeConn{from: "10.0.0.1"}
		d.Enter(first)
		assert.True(t, !first.closed, "%d places: no stranger may enter", places)
		d.Enter(&fakeConn{from: "10.0.0.2"})
		assert.True(t, first.closed, "%d places: there are two strangers", places)
	}
}
