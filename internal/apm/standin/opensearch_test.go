package standin

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"carronade/internal/apm/wire"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

func TestMain(m *testing.M) {
	testkit.MostlyWaiting()
	os.Exit(testkit.SearchMain(m))
}

// A real OpenSearch accepts what is written: as many documents as events were
// accepted, except those that were lost on purpose.
func TestIndexesIntoOpenSearch(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts OpenSearch")
	}
	node := testkit.SharedSearch(t)
	s := start(t, Options{Index: node.URL, Lose: 7})
	want := -7
	for _, p := range []wire.Protocol{wire.IntakeV2, wire.RUMV2, wire.RUMV3, wire.V1} {
		m := wire.Makeup{Protocol: p, Events: wire.Range{Min: 100, Max: 100}, Spans: wire.Range{Min: 0, Max: 4}, Frames: wire.Range{Min: 0, Max: 3}}
		if p == wire.IntakeV2 {
			m.Mix = [wire.Kinds]int{4, 1, 2, 2}
		}
		for n := range uint64(5) {
			b := bodyOf(t, m, n)
			z := assert.Value(b.Gzip(9))(t)
			code, text := post(t, "http://"+s.Addr()+p.Path(false), z.Bytes, "Content-Encoding", "gzip")
			assert.Must(t, code == 202, "%v: got %d %s", p, code, text)
			want += b.Events()
		}
	}
	s.Close()
	c := s.Counts()
	assert.True(t, int(c.Indexed) == want && c.Failed == 0 && c.Lost == 7, "got %v, want %d indexed", c, want)
	get := func(path string) string {
		resp, err := http.Get(node.URL + path) //nolint:noctx // a test
		assert.OK(t, err)
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		return string(text)
	}
	get("/_refresh")
	var count struct{ Count int }
	err := json.Unmarshal([]byte(get("/traces-apm*,logs-apm*,metrics-apm*,apm-*/_count")), &count)
	assert.True(t, err == nil && count.Count == want, "OpenSearch counts %d (%v), want %d", count.Count, err, want)
	if text := get("/_data_stream"); !strings.Contains(text, `"traces-apm-default"`) || !strings.Contains(text, templateName) {
		t.Errorf("no data streams: %.300s", text)
	}
	var found struct {
		Hits struct{ Total struct{ Value int } }
	}
	err = json.Unmarshal([]byte(get("/traces-apm*/_search?q=processor.event:transaction+AND+event.outcome:success&track_total_hits=true")), &found)
	assert.True(t, err == nil && found.Hits.Total.Value != 0, "no transaction is found by its outcome: %v", err)
}
