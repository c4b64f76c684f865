package drop

import (
	"net"
	"testing"
	"time"
)

// TestDropsBesideStrangers: who connects to the listener of the trial and says nothing
// does not keep it from its end.
func TestDropsBesideStrangers(t *testing.T) {
	if !Can() {
		t.Skip("this kernel drops nothing")
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a test
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	for range 3 {
		stranger, err := net.Dial("tcp", ln.Addr().String()) //nolint:noctx // a test
		if err != nil {
			t.Fatal(err)
		}
		defer stranger.Close()
	}
	found := make(chan bool, 1)
	go func() { found <- drops(ln) }()
	select {
	case can := <-found:
		if !can {
			t.Error("it is said not to drop bytes")
		}
	case <-time.After(30 * time.Second):
		t.Error("it waits for a stranger")
	}
}
