package command

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carronade/internal/host"
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

// A deletion names what it deleted, as long as that is readable.
func TestDeletedNames(t *testing.T) {
	s := newTestStore(t)
	ids := s.repeat(7, "main", "aaaa", 3*day, 50e3)
	for _, tt := range []struct {
		args []string
		want string
	}{
		{ids[:1], "deleted 1 report: " + ids[0] + "\n"},
		{[]string{"branch=main", "--yes"}, "and 2 others\n"},
	} {
		if code, words := s.run(append([]string{"delete"}, tt.args...)...); code != host.ExitOK || !strings.Contains(s.notes.String(), tt.want) {
			t.Errorf("%s: got %d, %q, %q, want %q", tt.args, code, words, s.notes.String(), tt.want)
		}
	}
	for _, tt := range []struct {
		args string
		code int
		says string
	}{
		{"", host.ExitFailed, "needs reports"},
		{"--older-than x", host.ExitFailed, "is not an age"},
		{"--older-than -5m --yes", host.ExitFailed, "is not an age"}, // all reports are younger than in five minutes
		{"--older-than= branch=main --yes", host.ExitFailed, "is not an age"},
		{"last --older-than 1d", host.ExitFailed, "goes with filters"},
		{"--older-than 400d --yes", host.ExitOK, ""},
	} {
		code, words := s.run(append([]string{"delete"}, strings.Fields(tt.args)...)...)
		assert.True(t, code == tt.code && strings.Contains(words, tt.says), "%s: got %d, %q, want %d, %q", tt.args, code, words, tt.code, tt.says)
	}
	s.repeat(2, "main", "bbbb", 9*day, 50e3)
	s.repeat(1, "main", "cccc", 1*day, 50e3)
	code, words := s.run("delete", "--older-than", "4d", "--yes")
	assert.True(t, code == host.ExitOK && strings.Contains(s.notes.String(), "deleted 2 reports: "), "got %d, %q, %q", code, words, s.notes.String())
	for n, want := range map[int]string{5: strings.Join(ids[:5], " "), 7: strings.Join(ids[:4], " ") + " and 3 others"} {
		assert.Equal(t, few(ids[:n]), want, "%d", n)
	}
}
