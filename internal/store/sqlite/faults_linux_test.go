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

	"carronade/internal/report"
	"carronade/internal/store"
	"carronade/internal/testkit"
	"carronade/internal/testkit/assert"
	"carronade/internal/testkit/reporttest"
	"carronade/target/targettest"
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
	if !errors.Is(err, store.ErrFull) || !strings.Contains(targettest.HintOf(err), "free some space") {
		t.Fatalf("got %v after %d reports, want %v", err, len(ds), store.ErrFull)
	}
	whole := func(s *Store) {
		t.Helper()
		for _, d := range ds {
			if got, err := s.Get(t.Context(), d.ID); err != nil || got.Hash != d.Hash {
				t.Fatalf("a stored report is lost: %v", err)
			}
		}
		if rows, err := s.Rows(t.Context(), store.Query{}); err != nil || len(rows) != len(ds) {
			t.Errorf("got %d rows and %v, want %d", len(rows), err, len(ds))
		}
		if err := s.Check(t.Context()); err != nil {
			t.Error(err)
		}
	}
	whole(s)
	// A run in progress while the disk is full is stored at its end.
	assert.OK(t, os.Truncate(ballast, 1<<20-200<<10))
	w, err := s.Begin(t.Context(), reporttest.Head(5000))
	assert.OK(t, err)
	testkit.Fill(t, dir)
	d := reporttest.Document(5000, 60)
	for i := range d.Intervals {
		e, err := d.Intervals[i].Encode()
		assert.OK(t, err)
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
		if _, err := s.Get(t.Context(), reporttest.Head(i).ID); err != nil {
			t.Errorf("report %d: %v", i, err)
		}
	}
	_, beginning := s.Begin(t.Context(), reporttest.Head(9))
	for name, err := range map[string]error{
		"Put":    s.Put(t.Context(), reporttest.Document(9, 1)),
		"Delete": s.Delete(t.Context(), reporttest.Head(0).ID),
		"Begin":  beginning,
	} {
		if !errors.Is(err, store.ErrReadOnly) || !strings.Contains(targettest.HintOf(err), "--store") {
			t.Errorf("%s: got %v, want %v", name, err, store.ErrReadOnly)
		}
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
		if _, err := left.Get(t.Context(), reporttest.Head(0).ID); err != nil {
			t.Errorf("the log was not read: %v", err)
		}
		return
	}
	if !errors.Is(err, store.ErrReadOnly) || !strings.Contains(targettest.HintOf(err), "copy") {
		t.Errorf("got %v, want %v with the advice to copy it", err, store.ErrReadOnly)
	}
}
