package standin

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"carronade/test/testkit/assert"
)

// TestDiscard: a server that discards accepts anything, and has the real server's counters.
func TestDiscard(t *testing.T) {
	s := start(t, Options{Discard: true})
	code, text := post(t, "http://"+s.Addr()+"/intake/v2/events?verbose", bytes.Repeat([]byte("x"), 300000))
	assert.Must(t, code == 202 && text == "", "got %d %q, want 202 and nothing", code, text)
	c := s.Counts()
	assert.True(t, c.Requests == 1 && c.Bytes == 300000 && c.Connections == 1, "counts %+v", c)
	resp, err := http.Get("http://" + s.Addr() + "/debug/vars") //nolint:noctx // a test
	assert.OK(t, err)
	vars, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	assert.True(t, strings.Contains(string(vars), `"apm-server.server.request.count":1`), "got %s, want a request", vars)
}
