package apm

import (
	"fmt"
	"io"
	"net/http"
	"testing"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// With --intake auto, servers before 6.5 get v1, and others v2, also if they do not say their version.
func TestIntakeByVersion(t *testing.T) {
	for _, c := range []struct {
		info string // the answer to GET /
		v2   bool   // the server knows it
		path string // where events go
	}{
		{`{"ok":{"version":"6.3.0"}}`, false, "/v1/transactions"},
		{`{"ok":{"version":"6.4.3"}}`, true, "/v1/transactions"},
		{`{"ok":{"version":"6.5.0"}}`, true, "/intake/v2/events"},
		{`{"version":"7.17.28","build_sha":"a"}`, true, "/intake/v2/events"},
		{`{"version":"9.6.0","publish_ready":true}`, true, "/intake/v2/events"},
		{`{}`, true, "/intake/v2/events"},
		{`404 page not found`, false, "/v1/transactions"},
	} {
		s := testkit.HTTP(t, func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body) // the body is not needed
			switch {
			case r.URL.Path == "/":
				fmt.Fprint(w, c.info)
			case r.URL.Path == "/intake/v2/events" && c.v2, r.URL.Path == "/v1/transactions":
				w.WriteHeader(http.StatusAccepted)
			default:
				http.NotFound(w, r)
			}
		})
		session, err := Kind{}.Open(t.Context(), spec(t, "apm+"+s.URL, map[string]string{"intake": "auto", "clients": "1"}))
		assert.Must(t, err == nil, "%s: %v", c.info, err)
		request := session.Facts()["request"].(map[string]any)
		assert.Equal(t, request["path"], any(c.path), "%s", c.info)
		assert.OK(t, session.Close())
	}
}

func TestBeforeV2(t *testing.T) {
	for version, want := range map[string][2]bool{
		"5.6.16": {true, true}, "6.4.9": {true, true}, "6.5.0": {false, true}, "6.10": {false, true}, "9.6.0-SNAPSHOT": {false, true}, "": {}, "x.y": {},
	} {
		before, known := beforeV2(version)
		assert.Equal(t, [2]bool{before, known}, want, "%s", version)
	}
}
