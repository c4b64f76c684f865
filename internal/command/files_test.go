package command

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carronade/internal/host"
	"carronade/internal/report"
	"carronade/internal/store"
	"carronade/internal/store/sqlite"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/reporttest"
)

// The contents of a folder before, and after a file was written or could not be.
func TestWriteFile(t *testing.T) {
	const path = "report.json"
	put := func(t *testing.T, name, text string, mode fs.FileMode) {
		t.Helper()
		assert.OK(t, os.WriteFile(name, []byte(text), 0o600))
		assert.OK(t, os.Chmod(name, mode))
	}
	link := func(t *testing.T, name, to string) {
		t.Helper()
		assert.OK(t, os.Symlink(to, name))
	}
	for _, tt := range []struct {
		name   string
		before func(*testing.T)
		fails  bool // while it is written
		want   map[string]string
	}{
		{"new", func(*testing.T) {}, false, map[string]string{path: "new"}},
		{"new, and it fails", func(*testing.T) {}, true, map[string]string{}},
		{"there", func(t *testing.T) { put(t, path, "old", 0o640) }, false, map[string]string{path: "new -rw-r-----"}},
		{"there, for its owner", func(t *testing.T) { put(t, path, "old", 0o600) }, false, map[string]string{path: "new -rw-------"}},
		{"there, for all", func(t *testing.T) { put(t, path, "old", 0o666) }, false, map[string]string{path: "new -rw-rw-rw-"}},
		{"there, and it fails", func(t *testing.T) { put(t, path, "old", 0o640) }, true, map[string]string{path: "old -rw-r-----"}},
		{
			"a link", func(t *testing.T) { put(t, "kept.json", "old", 0o640); link(t, path, "kept.json") }, false,
			map[string]string{path: "-> kept.json", "kept.json": "new -rw-r-----"},
		},
		{
			"a link to a link in a folder", func(t *testing.T) {
				assert.OK(t, os.Mkdir("kept", 0o755))
				put(t, "kept/b.json", "old", 0o640)
				link(t, "kept/a.json", "b.json")
				link(t, path, "kept/a.json")
			}, false,
			map[string]string{path: "-> kept/a.json", "kept/a.json": "-> b.json", "kept/b.json": "new -rw-r-----"},
		},
		{
			"a link to nothing", func(t *testing.T) { link(t, path, "kept.json") }, false,
			map[string]string{path: "-> kept.json", "kept.json": "new"},
		},
		{
			"a link to nothing, and it fails", func(t *testing.T) { link(t, path, "kept.json") }, true,
			map[string]string{path: "-> kept.json"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			// The mode of any new file: the umask cannot be read.
			fresh := assert.Value(os.Create(filepath.Join(t.TempDir(), "fresh")))(t)
			defer fresh.Close()
			info := assert.Value(fresh.Stat())(t)
			for name, text := range tt.want {
				if text == "new" {
					tt.want[name] += " " + info.Mode().String()
				}
			}
			tt.before(t)
			before := contents(t)
			assert.OK(t, TryFile(path))
			assert.Same(t, contents(t), before, "contents after the try")
			full := errors.New("full")
			err := WriteFile(path, func(w io.Writer) error {
				if _, err := io.WriteString(w, "new"); err != nil || !tt.fails {
					return err
				}
				return full
			})
			assert.True(t, tt.fails == errors.Is(err, full) && (tt.fails || err == nil), "error %v", err)
			assert.Same(t, contents(t), tt.want)
		})
	}
}

// contents returns the contents of the folder: the text and mode of each file, the destination of each link.
func contents(t *testing.T) map[string]string {
	t.Helper()
	got := map[string]string{}
	err := filepath.WalkDir(".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		if e.Type() == fs.ModeSymlink {
			to, err := os.Readlink(path)
			got[path] = "-> " + to
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, err := e.Info()
		got[path] = string(text) + " " + info.Mode().String()
		return err
	})
	assert.OK(t, err)
	return got
}

// A path that cannot be written is an error, and stays as it is.
func TestWriteFileRefuses(t *testing.T) {
	t.Chdir(t.TempDir())
	assert.OK(t, os.Symlink("b", "a"))
	assert.OK(t, os.Symlink("a", "b"))
	assert.OK(t, os.Mkdir("folder", 0o755))
	for _, path := range []string{"a", "folder", "no/such/folder"} {
		for name, err := range map[string]error{
			"TryFile":   TryFile(path),
			"WriteFile": WriteFile(path, func(io.Writer) error { t.Error("it is written"); return nil }),
		} {
			var at *fs.PathError
			assert.True(t, errors.As(err, &at), "%s(%s): %v, want where and why", name, path, err)
		}
	}
	assert.Same(t, contents(t), map[string]string{"a": "-> b", "b": "-> a"})
}

// What a system printed cannot change the terminal; elsewhere it is written as it was.
func TestLogOnATerminal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "reports.db")
	s := assert.Value(sqlite.Open(t.Context(), path))(t)
	const made = "\x1b[31mmaking\x1b[0m\nmade\n"
	const text = "\x1b[31mred\x1b[0m\n\x1b]0;a title\a\nthe last line\n"
	d := reporttest.Document(1, 2)
	d.System = &report.System{Facts: map[string]any{}, LastLines: []string{}, Output: report.NewOutput(text, 0), BuildOutput: report.NewOutput(made, 9)}
	assert.OK(t, d.Seal())
	assert.OK(t, s.Put(t.Context(), d))
	assert.OK(t, s.Close())
	if r := runs(t, "log", "--store", path); r.out != text {
		t.Errorf("got %q (%s), want %q", r.out, r.words, text)
	}
	if r := runs(t, "log", "--store", path, "--build"); r.out != made || !strings.Contains(r.notes, "the first 9 B were not kept") {
		t.Errorf("got %q (%s, %s), want %q", r.out, r.words, r.notes, made)
	}
	if r := runsOn(t, true, "log", "--store", path, "--build"); strings.Contains(r.out, "\x1b") || strings.Count(r.out, "\n") != 2 || !strings.HasSuffix(r.out, "\nmade\n") {
		t.Errorf("got %q of the build on a terminal", r.out)
	}
	r := runsOn(t, true, "log", "--store", path)
	assert.True(t, !strings.ContainsAny(r.out, "\x1b\a") && strings.Count(r.out, "\n") == 3 &&
		strings.HasSuffix(r.out, "\nthe last line\n"), "got %q on a terminal", r.out)
}

// The values of flags are read by name, and an unknown name panics, so that any test finds it.
func TestSettingsByName(t *testing.T) {
	var s Settings
	s.Doc.Add("quiet", "--quiet", "false")
	s.Doc.Add("quiet", "quiet in a file", "true")
	s.Doc.Add("label", "--label", "a=b")
	s.Doc.Add("label", "--label", "c=d")
	if !s.Bool("quiet") || s.Bool("json") || s.Last("quiet") != "true" || s.Where("quiet") != "quiet in a file" || s.Last("note") != "" {
		t.Errorf("got %v, %v, %q, %q", s.Bool("quiet"), s.Bool("json"), s.Last("quiet"), s.Where("quiet"))
	}
	all := s.All("label")
	assert.True(t, len(all) == 2 && all[1] == "c=d", "got %v", all)
	for name, ask := range map[string]func(string){
		"Last": func(n string) { s.Last(n) }, "Bool": func(n string) { s.Bool(n) }, "Where": func(n string) { s.Where(n) }, "All": func(n string) { s.All(n) },
	} {
		func() {
			defer func() { assert.True(t, recover() != nil, "%s of no setting: nothing happened", name) }()
			ask("metrics-adr")
		}()
	}
}

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
