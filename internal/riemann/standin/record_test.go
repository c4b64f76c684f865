package standin

import (
	"context"
	"io"
	"path/filepath"
	"testing"

	"github.com/coder/websocket"

	"carronade/internal/riemann/wire"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// TestRecord: the record contains messages over TCP and WebSocket, with the times
// of their answers.
func TestRecord(t *testing.T) {
	t.Parallel()
	forBoth(t, func(t *testing.T, opts Options) {
		path := filepath.Join(t.TempDir(), "record.csv")
		opts.Record, opts.Web = path, "127.0.0.1:0"
		s := start(t, opts)
		p := dial(t, s.Addr())
		var frames []byte
		for range 3 {
			frames = wire.AppendFramed(frames, &wire.Msg{Events: []wire.Event{{Service: "a"}, {Service: "b"}}})
		}
		if _, err := p.Write(frames); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(p, make([]byte, 3*wire.AckSize)); err != nil {
			t.Fatal(err)
		}
		c, _, err := websocket.Dial(context.Background(), "ws://"+s.AddrOf("ws")+"/events", nil) //nolint:bodyclose // there is none
		assert.OK(t, err)
		defer c.CloseNow()
		assert.OK(t, c.Write(t.Context(), websocket.MessageText, []byte(`{"service":"c"}`)))
		_, _, err = c.Read(t.Context())
		assert.OK(t, err)
		assert.OK(t, s.Close())
		rows := testkit.CSV(t, path)
		each := "2"
		if opts.Discard {
			each = "" // it does not decode them
		}
		got := map[string]int{}
		for _, r := range rows[1:] {
			got[r[2]+" of "+r[6]]++
			assert.True(t, r[7] != "" && r[8] != "" && r[9] != "", "%q is not answered", r)
		}
		assert.True(t, len(rows) == 5 && got["message of "+each] == 3 && got["message of 1"] == 1,
			"got %q, want 3 messages of %q events and one of 1", rows, each)
	})
}
