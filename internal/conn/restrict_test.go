package conn

import (
	"errors"
	"net"
	"testing"

	"carronade/test/testkit/assert"
)

// TestRestrict: no connection is made to an address that is not allowed.
func TestRestrict(t *testing.T) {
	ln := assert.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer ln.Close()
	addr := ln.Addr().String()
	why := errors.New("not there")
	Restrict(func(a string) *NotAllowedError {
		if a == addr {
			return &NotAllowedError{Err: why, Hint: "ask"}
		}
		return nil
	})
	defer Restrict(nil)
	var d Dialer
	if _, err := d.Dial(t.Context(), addr); !errors.Is(err, why) || Hint(err, false) != "ask" {
		t.Errorf("got %v (%s)", err, Hint(err, false))
	}
	assert.True(t, !SpeaksTLS(t.Context(), addr), "TLS was tried")
	end := Own(addr)
	conn, err := d.Dial(t.Context(), addr)
	if err != nil {
		t.Errorf("a server of this process cannot be reached: %v", err)
	} else {
		conn.Close()
	}
	end()
	end()
	_, err = d.Dial(t.Context(), addr)
	assert.True(t, errors.Is(err, why), "a server of this process that has ended: got %v", err)
	Restrict(func(string) *NotAllowedError { return nil })
	conn, err = d.Dial(t.Context(), addr)
	assert.OK(t, err)
	conn.Close()
}
