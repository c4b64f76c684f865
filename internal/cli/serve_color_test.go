//go:build linux

package cli_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"carronade/test/testkit/assert"
)

// TestServeColor: with --color, a session over TCP has colors, as in the shell of hey-apm.
func TestServeColor(t *testing.T) {
	t.Setenv("NO_COLOR", "")
	address := serveFor(t, nil, "--color").text
	nc := assert.Value(net.Dial("tcp", address))(t)
	defer nc.Close()
	assert.OK(t, nc.SetDeadline(time.Now().Add(2*time.Minute)))
	var read strings.Builder
	for buf := make([]byte, 512); !strings.Contains(read.String(), ">>> "); {
		n, err := nc.Read(buf)
		read.Write(buf[:n])
		assert.Must(t, err == nil, "%v after %q", err, read.String())
	}
	assert.True(t, strings.Contains(read.String(), "\x1b[36m>>> "), "%q", read.String())
}
