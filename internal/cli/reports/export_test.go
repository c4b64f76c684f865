package reports

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
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

// An endless reader repeats a byte.
type endless struct {
	b    byte
	read int64
}

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = e.b
	}
	e.read += int64(len(p))
	return len(p), nil
}

// TestEachReportIsBounded: a document that is too large is refused when that many bytes were read, and a stream
// of several has no limit.
func TestEachReportIsBounded(t *testing.T) {
	ignore := func([]byte) error { return nil }
	large := &endless{b: 'x'}
	err := eachReport(t.Context(), io.MultiReader(strings.NewReader(`{"a":"`), large), ignore)
	assert.True(t, errors.Is(err, errTooLarge), "got %v", err)
	assert.True(t, large.read <= mostReport, "%d bytes were read", large.read)
	const each = mostReport/2 + 1
	var all []io.Reader
	for range 3 {
		all = append(all, strings.NewReader(`"`), io.LimitReader(&endless{b: 'x'}, each), strings.NewReader(`"`))
	}
	n := 0
	err = eachReport(t.Context(), io.MultiReader(all...), func([]byte) error { n++; return nil })
	assert.True(t, err == nil && n == 3, "%d documents, %v", n, err)
}

// TestEachReportEnds: an interrupt ends the reading of a stdin to which nothing is written.
func TestEachReportEnds(t *testing.T) {
	in, end := io.Pipe()
	defer end.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := eachReport(ctx, in, func([]byte) error { return nil })
	assert.True(t, errors.Is(err, context.Canceled), "got %v", err)
}
