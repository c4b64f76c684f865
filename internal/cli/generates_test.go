package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"carronade/internal/report"
	"carronade/internal/workload"
	"carronade/test/testkit/assert"
)

// The number of stored results is limited: the oldest are dropped. An
// unreadable file has none.
func TestGeneratesAreKept(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	if got := keptGenerates(); len(got) != 0 {
		t.Fatalf("got %v without a file", got)
	}
	all := map[string]report.Generates{}
	at := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	for i := range maxGenerates + 5 {
		all[fmt.Sprintf("key-%03d", i)] = report.Generates{EventsPerS: float64(i), At: at.Add(time.Duration(i) * time.Hour)}
	}
	assert.OK(t, keepGenerates(all))
	got := keptGenerates()
	_, oldest := got["key-004"]
	newest := got[fmt.Sprintf("key-%03d", maxGenerates+4)]
	assert.True(t, len(got) == maxGenerates && !oldest && newest.EventsPerS == maxGenerates+4,
		"got %d of them, the oldest %v, the newest %+v", len(got), oldest, newest)
	path := assert.Value(generatesPath())(t)
	for _, text := range []string{"", "null", "[1]", "{\"a\":"} {
		assert.OK(t, os.WriteFile(filepath.Clean(path), []byte(text), 0o600))
		got := keptGenerates()
		assert.True(t, got != nil && len(got) == 0, "from %q: got %v", text, got)
	}
}

// The hash depends on the settings of events and batches, and on nothing else.
func TestGeneratingDistinguishesWorkloads(t *testing.T) {
	s := &session{Program: &Program{Kinds: Kinds()}}
	of := func(settings ...string) string {
		var d workload.Document
		d.Add("target", "target", "kafka://127.0.0.1/t")
		for i := 0; i < len(settings); i += 2 {
			d.Add(settings[i], "--"+settings[i], settings[i+1])
		}
		w := assert.Value(workload.Resolve(s.Kinds, &d, nil))(t)
		return hashOf(s.generating(w))
	}
	base := of()
	for _, same := range [][]string{{"for", "5s"}, {"acks", "all"}, {"label", "a=b"}, {"size", "100"}} {
		assert.Same(t, of(same...), base, "%q is another workload", same)
	}
	seen := map[string][]string{base: nil}
	for _, other := range [][]string{
		{"size", "200"}, {"key", "seq"}, {"header", "a=b"}, {"batch-size", "16KiB"}, {"fresh", "true"}, {"clients", "2"}, {"batch-events", "1"}, {"payload", "zero"}, {"threads", "1"},
	} {
		hash := of(other...)
		as, ok := seen[hash]
		assert.True(t, !ok, "%q is the same workload as %q", other, as)
		seen[hash] = other
	}
}
