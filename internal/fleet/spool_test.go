package fleet

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"carronade/test/testkit/assert"
)

func openSpool(t *testing.T, dir string) *FileSpool {
	t.Helper()
	s := assert.Value(OpenSpool(dir))(t)
	return s
}

// TestSpool: both kinds of spools do the same.
func TestSpool(t *testing.T) {
	file := openSpool(t, t.TempDir())
	defer file.Close()
	for _, s := range []Spool{NewMemorySpool(), file} {
		t.Run(fmt.Sprintf("%T", s), func(t *testing.T) {
			_, err := s.Look("b")
			assert.True(t, errors.Is(err, ErrNotSpooled), "a run that is not there: %v", err)
			_, err = s.Append("b", nil)
			assert.True(t, errors.Is(err, ErrNotSpooled), "a record of a run that is not there: %v", err)
			for _, run := range []string{"b", "a"} {
				assert.OK(t, s.Begin(run, []byte("head of "+run)))
			}
			err = s.Begin("b", nil)
			assert.True(t, errors.Is(err, ErrSpooled), "a run that is there: %v", err)
			for i := range 5 {
				if n, err := s.Append("b", bytes.Repeat([]byte{byte(i)}, i)); n != uint64(i+1) || err != nil {
					t.Fatal(n, err)
				}
			}
			assert.OK(t, s.End("b", []byte("end")))
			names, err := s.Runs()
			assert.True(t, slices.Equal(names, []string{"a", "b"}) && err == nil, "runs %q, %v", names, err)
			if got, err := s.Look("b"); string(got.Header) != "head of b" || got.Records != 5 || string(got.End) != "end" || err != nil {
				t.Errorf("%+v, %v", got, err)
			}
			if got, err := s.Look("a"); string(got.Header) != "head of a" || got.Records != 0 || got.End != nil || err != nil {
				t.Errorf("%+v, %v", got, err)
			}
			for i := range 5 {
				if data, err := s.Read("b", uint64(i+1)); !bytes.Equal(data, bytes.Repeat([]byte{byte(i)}, i)) || err != nil {
					t.Errorf("record %d is %x, %v", i+1, data, err)
				}
			}
			for _, n := range []uint64{0, 6} {
				_, err := s.Read("b", n)
				assert.True(t, err != nil, "record %d is there", n)
			}
			for range 2 {
				assert.OK(t, s.Remove("b"))
			}
			names, err = s.Runs()
			assert.True(t, slices.Equal(names, []string{"a"}) && err == nil, "runs %q, %v", names, err)
		})
	}
}

// TestSpoolTorn cuts a file at every byte, and changes every byte: what is read is
// always the beginning of what was written, and a file can be cut anywhere.
func TestSpoolTorn(t *testing.T) {
	dir := t.TempDir()
	s := openSpool(t, dir)
	assert.OK(t, s.Begin("run", []byte("header")))
	var want [][]byte
	for i := range 4 {
		want = append(want, fmt.Appendf(nil, "record %d", i))
		assert.Value(s.Append("run", want[i]))(t)
	}
	assert.OK(t, s.End("run", []byte("end")))
	s.Close()
	name := filepath.Join(dir, "run", spoolFile)
	whole := assert.Value(os.ReadFile(name))(t)
	try := func(what string, data []byte) {
		t.Helper()
		assert.OK(t, os.WriteFile(name, data, 0o600))
		s := openSpool(t, dir)
		defer s.Close()
		got, err := s.Look("run")
		if errors.Is(err, ErrNotSpooled) {
			assert.True(t, len(data) <= entryHead+len("header") || !bytes.Equal(data[:entryHead+6], whole[:entryHead+6]),
				"%s: nothing is left", what)
			err := s.Begin("run", []byte("again"))
			assert.True(t, err == nil, "%s: it cannot begin again: %v", what, err)
			return
		} else if err != nil {
			t.Errorf("%s: %v", what, err)
			return
		}
		if string(got.Header) != "header" || got.End != nil && (string(got.End) != "end" || got.Records != 4) || got.Records > 4 {
			t.Errorf("%s: %+v", what, got)
		}
		for i := range got.Records {
			data, err := s.Read("run", i+1)
			assert.True(t, bytes.Equal(data, want[i]) && err == nil, "%s: record %d is %q, %v", what, i+1, data, err)
		}
		if got.End == nil { // the next record takes the place of what was torn
			n, err := s.Append("run", []byte("new"))
			s.leave()
			again, err2 := s.Look("run")
			assert.True(t, n == got.Records+1 && again.Records >= n && err == nil && err2 == nil,
				"%s: after %d records, one more is number %d, then %d: %v, %v", what, got.Records, n, again.Records, err, err2)
		}
	}
	for i := range whole {
		try(fmt.Sprintf("cut at %d", i), whole[:i])
		changed := slices.Clone(whole)
		changed[i] ^= 0x40
		try(fmt.Sprintf("byte %d changed", i), changed)
	}
}

func TestSpoolLocked(t *testing.T) {
	dir := t.TempDir()
	s := openSpool(t, dir)
	if other, err := OpenSpool(dir); err == nil {
		other.Close()
		t.Error("two processes can use one spool")
	}
	s.Close()
	openSpool(t, dir).Close()
	for _, run := range []string{"", "..", "../x", ".lock", "a/b"} {
		s := openSpool(t, dir)
		assert.True(t, s.Begin(run, nil) != nil, "a run %q began", run)
		assert.True(t, s.Remove(run) != nil, "a run %q was removed", run)
		s.Close()
	}
}

func FuzzSpool(f *testing.F) {
	f.Add([]byte("\x01\x00\x00\x00\x00\x00\x00\x00hx"))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		assert.OK(t, os.Mkdir(filepath.Join(dir, "run"), 0o700))
		assert.OK(t, os.WriteFile(filepath.Join(dir, "run", spoolFile), data, 0o600))
		s := openSpool(t, dir)
		defer s.Close()
		got, err := s.Look("run")
		if err != nil {
			return
		}
		for i := range got.Records {
			assert.Value(s.Read("run", i+1))(t)
		}
	})
}

// TestRemoveOlder: results that were not fetched for long are deleted, and no others.
func TestRemoveOlder(t *testing.T) {
	dir := t.TempDir()
	s := openSpool(t, dir)
	defer s.Close()
	for _, run := range []string{"a", "b", "c"} {
		assert.OK(t, s.Begin(run, []byte("head")))
	}
	now := time.Now()
	for _, run := range []string{"a", "c"} {
		assert.OK(t, os.Chtimes(filepath.Join(dir, run, spoolFile), now, now.Add(-2*time.Hour)))
	}
	removed, err := s.RemoveOlder(now.Add(-time.Hour))
	assert.True(t, err == nil && slices.Equal(removed, []string{"a", "c"}), "removed %q, %v", removed, err)
	left, err := s.Runs()
	assert.True(t, err == nil && slices.Equal(left, []string{"b"}), "left %q, %v", left, err)
}
