package sqlite

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"carronade/internal/advice"
	"carronade/internal/report"
	"carronade/internal/store"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/reporttest"
)

// On a full disk no stored report is lost, and a report that cannot be stored
// is an error; once there is space again, the store works.
func TestFullDisk(t *testing.T) {
	testkit.Need(t, "a second, and a small disk")
	dir := testkit.Mount(t, "2048k")
	path := filepath.Join(dir, "reports.db")
	s := open(t, path)
	ballast := filepath.Join(dir, "ballast")
	write(t, ballast, make([]byte, 1<<20))
	var ds []*report.Document
	var err error
	for i := range 2000 {
		d := reporttest.Document(i, 20)
		if err = s.Put(t.Context(), d); err != nil {
			break
		}
		ds = append(ds, d)
	}
	assert.Must(t, errors.Is(err, store.ErrFull) && strings.Contains(advice.Hint(err), "free some space"),
		"got %v after %d reports, want %v", err, len(ds), store.ErrFull)
	whole := func(s *Store) {
		t.Helper()
		for _, d := range ds {
			got, err := s.Get(t.Context(), d.ID)
			assert.Must(t, err == nil && got.Hash == d.Hash, "a stored report is lost: %v", err)
		}
		rows, err := s.Rows(t.Context(), store.Query{})
		assert.True(t, err == nil && len(rows) == len(ds), "got %d rows and %v, want %d", len(rows), err, len(ds))
		err = s.Check(t.Context())
		assert.True(t, err == nil, "%v", err)
	}
	whole(s)
	// A run in progress while the disk is full is stored at its end.
	assert.OK(t, os.Truncate(ballast, 1<<20-200<<10))
	w := assert.Value(s.Begin(t.Context(), reporttest.Head(5000)))(t)
	testkit.Fill(t, dir)
	d := reporttest.Document(5000, 60)
	for i := range d.Intervals {
		e := assert.Value(d.Intervals[i].Encode())(t)
		w.Interval(e)
	}
	<-broken(w.(*writer))
	assert.OK(t, os.Remove(ballast))
	assert.OK(t, w.Finish(t.Context(), d))
	ds = append(ds, d)
	whole(s)
	assert.OK(t, s.Close())
	whole(open(t, path))
}

// broken is closed once a writer failed to store intervals.
func broken(w *writer) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for w.queue.Failed() == 0 {
			runtime.Gosched()
		}
	}()
	return done
}

// A store cannot be made on a full disk.
func TestFullDiskFromTheStart(t *testing.T) {
	dir := testkit.Mount(t, "64k")
	write(t, filepath.Join(dir, "ballast"), nil)
	testkit.Fill(t, dir)
	if s, err := Open(t.Context(), filepath.Join(dir, "reports.db")); !errors.Is(err, store.ErrFull) {
		if s != nil {
			s.Close()
		}
		t.Errorf("got %v, want %v", err, store.ErrFull)
	}
}

// A store on a read-only disk can be read, and reports an error for each write.
func TestReadOnly(t *testing.T) {
	dir := testkit.Mount(t, "4096k")
	path := filepath.Join(dir, "reports.db")
	s := open(t, path)
	for i := range 3 {
		assert.OK(t, s.Put(t.Context(), reporttest.Document(i, 2)))
	}
	orphan(t, s, 3, 2, gone, time.Now())
	assert.OK(t, s.Close())
	testkit.Seal(t, dir)
	before := read(t, path)
	s = open(t, path)
	rows, err := s.Rows(t.Context(), store.Query{})
	assert.True(t, err == nil && len(rows) == 4 && !rows[0].Running, "got %d rows and %v, want 4, none of them running", len(rows), err)
	for i := range 4 {
		assert.Value(s.Get(t.Context(), reporttest.Head(i).ID))(t, "report %d", i)
	}
	_, beginning := s.Begin(t.Context(), reporttest.Head(9))
	for name, err := range map[string]error{
		"Put":    s.Put(t.Context(), reporttest.Document(9, 1)),
		"Delete": s.Delete(t.Context(), reporttest.Head(0).ID),
		"Begin":  beginning,
	} {
		assert.True(t, errors.Is(err, store.ErrReadOnly) && strings.Contains(advice.Hint(err), "--store"),
			"%s: got %v, want %v", name, err, store.ErrReadOnly)
	}
	assert.True(t, bytes.Equal(read(t, path), before), "the file was changed")
	if s, err := Open(t.Context(), filepath.Join(dir, "another.db")); !errors.Is(err, store.ErrReadOnly) {
		if s != nil {
			s.Close()
		}
		t.Errorf("got %v for a new store on a read-only disk, want %v", err, store.ErrReadOnly)
	}
}

// A store that was left during a write, on a disk that then became read-only:
// the log cannot be read without a place for its index.
func TestReadOnlyWithALog(t *testing.T) {
	dir := testkit.Mount(t, "4096k")
	path := filepath.Join(dir, "reports.db")
	s := open(t, path)
	assert.OK(t, s.Put(t.Context(), reporttest.Document(0, 2)))
	for _, suffix := range []string{"", "-wal"} { // as a killed process leaves it
		write(t, filepath.Join(dir, "left.db"+suffix), read(t, path+suffix))
	}
	s.Close()
	testkit.Seal(t, dir)
	left, err := Open(t.Context(), filepath.Join(dir, "left.db"))
	if err == nil {
		defer left.Close()
		assert.Value(left.Get(t.Context(), reporttest.Head(0).ID))(t, "the log was not read")
		return
	}
	assert.True(t, errors.Is(err, store.ErrReadOnly) && strings.Contains(advice.Hint(err), "copy"),
		"got %v, want %v with the advice to copy it", err, store.ErrReadOnly)
}
