package cmdutil

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"carronade/test/testkit/assert"
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
