package command

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"carronade/internal/report"
	"carronade/internal/store"
	"carronade/internal/store/sqlite"
	"carronade/test/testkit/assert"
)

// A watched store calls a function before each report is read.
type watched struct {
	store.Store
	read func(n int)
	n    int
}

func (w *watched) Get(ctx context.Context, id string) (*report.Document, error) {
	w.read(w.n)
	w.n++
	return w.Store.Get(ctx, id)
}

// TestExportOneByOne: in a format with one report per file, each report is
// written before the next is read, since all may not fit into memory.
func TestExportOneByOne(t *testing.T) {
	const n = 5
	s := assert.Value(sqlite.Open(t.Context(), filled(t, n, 3)))(t)
	defer s.Close()
	dir := filepath.Join(t.TempDir(), "out")
	w := &watched{Store: s, read: func(before int) {
		files, err := os.ReadDir(dir)
		assert.True(t, err == nil, "%v", err)
		assert.Equal(t, len(files), before, "files after reports were read")
	}}
	c := &commands{}
	assert.OK(t, c.doExport(t.Context(), w, &exporting{as: "hdr", out: dir}, []string{"op=produce"}))
	assert.Equal(t, w.n, n, "reports read")
	files, err := os.ReadDir(dir)
	assert.True(t, err == nil && len(files) == n, "%d files, %v, want %d", len(files), err, n)
}
