package sqlite

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"carronade/internal/store"
	"carronade/protocol/protocoltest"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/reporttest"
)

// page is the page size of a new store, in bytes.
const page = 8192

// Everything intact in a damaged file is read, wherever the damage is, and
// never an incomplete report.
func TestOpenDamaged(t *testing.T) {
	const n = 40
	path := filled(t, n)
	whole := read(t, path)
	pages := len(whole) / page
	for _, tt := range []struct {
		name  string
		wreck func(b []byte) []byte
		least int // reports that must be readable
	}{
		{"no damage", func(b []byte) []byte { return b }, n},
		{"the last page is lost", func(b []byte) []byte { return b[:len(b)-page] }, n - 2},
		{"cut within a page", func(b []byte) []byte { return b[:len(b)-page-100] }, n - 4},
		{"the last quarter is lost", func(b []byte) []byte { return b[:pages*3/4*page] }, n / 2},
		{"a page of zeros in the middle", func(b []byte) []byte { clear(b[pages/2*page : (pages/2+1)*page]); return b }, n / 2},
		{"a page of noise near the end", func(b []byte) []byte {
			copy(b[(pages-3)*page:], bytes.Repeat([]byte("noise"), page/5))
			return b
		}, n / 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wrecked := tt.wreck(bytes.Clone(whole))
			path := filepath.Join(t.TempDir(), "reports.db")
			write(t, path, wrecked)
			s := assert.Value(OpenDamaged(t.Context(), path))(t)
			defer s.Close()
			ids, err := s.Find(t.Context(), "", 1<<20)
			got := 0
			for _, id := range ids {
				d, err := s.Get(t.Context(), id)
				switch {
				case err == nil && d.Check() != nil:
					t.Errorf("report %s is incomplete: %v", id, d.Check())
				case err == nil:
					got++
				case !errors.Is(err, store.ErrDamaged) && !errors.Is(err, store.ErrMissing):
					t.Errorf("report %s: %v", id, err)
				}
			}
			t.Logf("%d of %d reports (%d ids, %v)", got, n, len(ids), err)
			assert.True(t, got >= tt.least, "got %d reports of %d, want %d", got, n, tt.least)
			assert.True(t, bytes.Equal(read(t, path), wrecked), "the damaged file was changed")
			left, _ := filepath.Glob(path + "-*")
			assert.True(t, len(left) == 0, "reading left files: %v", left)
		})
	}
}

// A reader makes no store.
func TestOpenExisting(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{filepath.Join(dir, "none.db"), filepath.Join(dir, "no folder", "none.db")} {
		s, err := OpenExisting(t.Context(), path)
		if s != nil {
			s.Close()
		}
		if !errors.Is(err, store.ErrAbsent) || protocoltest.HintOf(err) == "" {
			t.Errorf("got %v with the hint %q, want %v and a hint", err, protocoltest.HintOf(err), store.ErrAbsent)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("got %v and %v, want no files", left, err)
	}
	s := assert.Value(OpenExisting(t.Context(), filled(t, 2)))(t)
	defer s.Close()
	ids, err := s.Find(t.Context(), reporttest.Head(1).ID, 9)
	assert.True(t, err == nil && len(ids) == 1, "got %v and %v, want a report", ids, err)
	assert.OK(t, s.Delete(t.Context(), reporttest.Head(1).ID))
}
