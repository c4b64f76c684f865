package standin

import (
	"net"
	"testing"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// TestTryDropWithOtherConnections: other clients that connect to the listener and
// send nothing do not block the trial.
func TestTryDropWithOtherConnections(t *testing.T) {
	t.Parallel()
	if !CanDrop() {
		t.Skip("this kernel drops nothing")
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a test
	assert.OK(t, err)
	defer ln.Close()
	for range 3 {
		other, err := net.Dial("tcp", ln.Addr().String()) //nolint:noctx // a test
		assert.OK(t, err)
		defer other.Close()
	}
	result := make(chan bool, 1)
	go func() { result <- tryDrop(ln) }()
	assert.True(t, testkit.Wait(t, "the trial", result), "the trial reports that bytes are not dropped")
}
