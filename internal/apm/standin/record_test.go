package standin

import (
	"net/http"
	"path/filepath"
	"testing"

	"carronade/internal/apm/wire"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// The record contains each request with events, with the times of its answer.
func TestRecord(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		discard bool
		events  string
	}{{"judging", false, "2"}, {"discard", true, ""}} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "record.csv")
			s := start(t, Options{Discard: tt.discard, Record: path})
			body := bodyOf(t, wire.Makeup{Events: wire.Range{Min: 2, Max: 2}, Mix: [wire.Kinds]int{1}}, 0)
			for range 3 {
				status, text := post(t, "http://"+s.Addr()+"/intake/v2/events", body.Bytes, "Content-Type", "application/x-ndjson")
				assert.Must(t, status == http.StatusAccepted, "got %d %s", status, text)
			}
			assert.OK(t, s.Close())
			rows := testkit.CSV(t, path)
			assert.Must(t, len(rows) == 4, "%q, want 3 requests", rows)
			for _, r := range rows[1:] {
				assert.True(t, r[2] == "request" && r[6] == tt.events && r[7] != "" && r[8] != "" && r[9] != "",
					"got %q, want a request of %q events, and its answer", r, tt.events)
			}
		})
	}
}
