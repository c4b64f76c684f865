package command

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"carronade/internal/report"
	"carronade/internal/store"
	"carronade/internal/store/sqlite"
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
	s, err := sqlite.Open(t.Context(), filled(t, n, 3))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	dir := filepath.Join(t.TempDir(), "out")
	w := &watched{Store: s, read: func(before int) {
		files, err := os.ReadDir(dir)
		if err != nil {
			t.Error(err)
		}
		if len(files) != before {
			t.Errorf("got %d files after %d reports were read", len(files), before)
		}
	}}
	c := &commands{}
	if err := c.doExport(t.Context(), w, &exporting{as: "hdr", out: dir}, []string{"op=produce"}); err != nil {
		t.Fatal(err)
	}
	if w.n != n {
		t.Errorf("%d reports were read, want %d", w.n, n)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != n {
		t.Errorf("%d files, %v, want %d", len(files), err, n)
	}
}
