package run

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"carronade/internal/host"
	"carronade/internal/report"
	"carronade/internal/secret"
	"carronade/internal/store"
	"carronade/load"
	"carronade/protocol"
	"carronade/test/testkit/assert"
)

// A failingStore fails where the test says, and records the calls in order.
type failingStore struct {
	store.Store                      // no other method is called
	begin, finish, put error         // the results of these calls
	slow               time.Duration // before Begin answers
	asked              []string
	head, kept         *report.Document
	rows               []report.Encoded
}

func (s *failingStore) Begin(ctx context.Context, head *report.Document) (store.Writer, error) {
	s.asked = append(s.asked, "begin")
	s.head = head
	if s.slow > 0 {
		select {
		case <-time.After(s.slow):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if s.begin != nil {
		return nil, s.begin
	}
	return s, nil
}

func (s *failingStore) Put(_ context.Context, d *report.Document) error {
	s.asked, s.kept = append(s.asked, "put"), d
	return s.put
}
func (s *failingStore) Interval(e report.Encoded) { s.rows = append(s.rows, e) }
func (s *failingStore) Finish(_ context.Context, d *report.Document) error {
	s.asked, s.kept = append(s.asked, "finish"), d
	return s.finish
}

func (s *failingStore) Abandon(context.Context) error {
	s.asked = append(s.asked, "abandon")
	return nil
}

// However a store fails, there is a sealed report, and Stored gets the error.
func TestKeeping(t *testing.T) {
	down := errors.New("connection refused")
	for _, tt := range []struct {
		name  string
		store *failingStore
		set   []string
		asked string
		want  error
		most  time.Duration
	}{
		{"no failure", &failingStore{}, []string{"for=3s"}, "begin finish", nil, 0},
		{"consuming", &failingStore{}, []string{"op=consume", "for=3s", "idle-timeout=1h"}, "begin finish", nil, 0},
		{"unavailable at first", &failingStore{begin: down}, []string{"for=3s"}, "begin put", nil, 0},
		{"unavailable", &failingStore{begin: down, put: down}, []string{"for=3s"}, "begin put", down, 0},
		{"unavailable at the end", &failingStore{finish: down}, []string{"for=3s"}, "begin finish", down, 0},
		{"no answer at first", &failingStore{slow: time.Hour}, []string{"for=3s"}, "begin put", nil, 2*beginTimeout + 4*time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &fakeKind{}
				var got error
				var words []string
				calls, began := 0, time.Now()
				d, err := Execute(t.Context(), Job{
					Portable: true,
					Workload: resolve(t, m, tt.set...), Store: tt.store, Note: "with password=hunter2",
					Stored: func(_ *report.Document, err error) { calls, got = calls+1, err },
					Logf:   func(format string, _ ...any) { words = append(words, format) },
				})
				assert.OK(t, err)
				if asked := strings.Join(tt.store.asked, " "); asked != tt.asked || calls != 1 || !errors.Is(got, tt.want) {
					t.Errorf("got the calls %q, %d results and %v; want %q, 1 and %v", asked, calls, got, tt.asked, tt.want)
				}
				err = d.Check()
				assert.True(t, err == nil, "%v", err)
				assert.True(t, tt.store.kept == d && tt.store.head.ID == d.ID && tt.store.head.Stopped == load.Killed &&
					tt.store.head.Mode == d.Mode, "another report was stored: %+v", tt.store.head)
				if tt.store.begin == nil && tt.store.slow == 0 {
					n := len(tt.store.rows)
					assert.True(t, n >= 3, "%d intervals were stored during the run", n)
				} else if !slices.ContainsFunc(words, func(s string) bool { return strings.Contains(s, "not saved during") }) {
					t.Errorf("no message says so: %q", words)
				}
				assert.True(t, !strings.Contains(d.Note, "hunter2") && d.Note != "", "the note is %q", d.Note)
				took := time.Since(began)
				assert.True(t, tt.most <= 0 || took <= tt.most, "it took %v, want %v at most", took, tt.most)
				assert.True(t, d.ExitCode() != host.ExitFailed, "the store made the run fail: %v", d.Problems)
				<-m.session.ended
			})
		})
	}
}

// A run that never began leaves nothing in the store.
func TestKeepingNothing(t *testing.T) {
	m, s := &fakeKind{}, &failingStore{}
	w := resolve(t, m, "count=1")
	w.Kind = refusing{m}
	_, err := Execute(t.Context(), Job{Portable: true, Workload: w, Store: s, Stored: func(*report.Document, error) { t.Error("got a result of storing") }})
	assert.True(t, err != nil, "got no error")
	assert.True(t, len(s.asked) == 0, "asked for %q", s.asked)
	// It begins, and then the folder for the trace is missing.
	path := filepath.Join(t.TempDir(), "no", "such", "folder")
	s = &failingStore{}
	_, err = Execute(t.Context(), Job{Portable: true, Workload: resolve(t, m, "count=1", "trace="+path), Trace: path, Store: s})
	assert.True(t, err != nil, "got no error")
	got := strings.Join(s.asked, " ")
	assert.True(t, got == "" || got == "begin abandon", "asked for %q", got)
}

func TestAttach(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		assert.OK(t, os.MkdirAll(filepath.Dir(path), 0o755))
		assert.OK(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	w := resolve(t, &fakeKind{}, "count=1")
	got, err := Attach(w, []string{
		file("server.properties", "threads=8\nssl.key.password=hunter2\n"), file("b/server.properties", "threads=9\n"),
		file("full.txt", strings.Repeat("x", mostAttached)), file("empty.txt", ""),
	}, nil)
	assert.OK(t, err)
	if len(got) != 4 || got[0].Text != "threads=8\nssl.key.password=***\n" || got[0].Name != "server.properties" || got[1].Name != "server.properties (2)" {
		t.Errorf("got %+v", got[:2])
	}
	assert.Equal(t, got[0].Original, "", "the hash without a key")
	for _, tt := range []struct{ name, path, want string }{
		{"missing", filepath.Join(dir, "missing"), "no such file"},
		{"a folder", dir, "is a directory"},
		{"too large", file("large.txt", strings.Repeat("x", mostAttached+1)), "64 KiB"},
		{"not text", file("x.bin", "a\x00b"), "not text"},
		{"no UTF-8", file("y.bin", "a\xffb"), "not text"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Attach(w, []string{tt.path}, nil)
			var said *protocol.Error
			assert.True(t, errors.As(err, &said) && strings.Contains(err.Error(), tt.want) && said.Hint != "",
				"got %v, want %q and a hint", err, tt.want)
		})
	}
	_, err = Attach(w, slices.Repeat([]string{filepath.Join(dir, "empty.txt")}, mostAttachments+1), nil)
	assert.True(t, err != nil, "too many files were accepted")
}

// An attachment's hash is that of the original bytes, with the user's key: it says which key, and nothing about a short secret.
func TestAttachmentKey(t *testing.T) {
	home := func() string {
		dir := t.TempDir()
		t.Setenv("XDG_DATA_HOME", dir)
		t.Setenv("LocalAppData", dir)
		t.Setenv("HOME", dir)
		return dir
	}
	key := func() []byte { key := assert.Value(AttachmentKey())(t); return key }
	original := func(text string, key []byte) string { return Attachment("a", text, new(secret.Mask), key).Original }
	dir := home()
	one := key()
	assert.True(t, bytes.Equal(one, key()) && len(one) == keyLength, "got the key %x, and another one the second time", one)
	data := assert.Value(host.DataDir())(t)
	path := filepath.Join(data, "carronade", "attachments.key")
	info, err := os.Stat(path)
	assert.True(t, err == nil && (runtime.GOOS == "windows" || info.Mode().Perm() == 0o600), "got %v, %v", info, err)
	left, err := os.ReadDir(filepath.Dir(path))
	assert.True(t, err == nil && len(left) == 1, "got the files %v, %v, in %s", left, err, dir)
	text := "password=a\n"
	plain := sha256.Sum256([]byte(text))
	got := original(text, one)
	assert.True(t, got == original(text, one) && got != original("password=b\n", one) &&
		!strings.Contains(got, hex.EncodeToString(plain[:8])), "got %s", got)
	home()
	id, _, _ := strings.Cut(got, ":")
	other := original(text, key())
	assert.True(t, other != got && !strings.HasPrefix(other, id), "got %s with one key, %s with another", got, other)
	data, _ = host.DataDir()
	assert.OK(t, os.WriteFile(filepath.Join(data, "carronade", "attachments.key"), []byte("short"), 0o600))
	_, err = AttachmentKey()
	assert.True(t, err != nil && strings.Contains(err.Error(), "is not a key"), "got %v for a file without a key", err)
	if runtime.GOOS != "windows" {
		assert.OK(t, os.Chmod(filepath.Join(data, "carronade", "attachments.key"), 0o640))
		_, err := AttachmentKey()
		assert.True(t, err != nil && strings.Contains(err.Error(), "other users can read"), "got %v for a key of others", err)
	}
	assert.Equal(t, original(text, nil), "", "without a key")
}

// Many processes that begin at once have one key.
func TestAttachmentKeyOfMany(t *testing.T) {
	path := filepath.Join(t.TempDir(), "attachments.key")
	var all sync.WaitGroup
	keys := make([]string, 8)
	for i := range keys {
		all.Go(func() {
			err := createKey(path)
			assert.True(t, err == nil, "%v", err)
			key, _ := os.ReadFile(path)
			keys[i] = string(key)
		})
	}
	all.Wait()
	slices.Sort(keys)
	keys = slices.Compact(keys)
	assert.True(t, len(keys) == 1 && len(keys[0]) == keyLength, "got %d keys", len(keys))
}
