package cmdutil

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"carronade/internal/host"
	"carronade/internal/workload"
	"carronade/protocol"
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
	link := func(t *testing.T, name, to string) { t.Helper(); assert.OK(t, os.Symlink(to, name)) }
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
	assert.OK(t, filepath.WalkDir(".", func(path string, e fs.DirEntry, err error) error {
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
	}))
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
	assert.True(t, s.Bool("quiet") && !s.Bool("json") && s.Last("quiet") == "true" && s.Where("quiet") == "quiet in a file" && s.Last("note") == "",
		"got %v, %v, %q, %q", s.Bool("quiet"), s.Bool("json"), s.Last("quiet"), s.Where("quiet"))
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

func TestArgs(t *testing.T) {
	for _, tt := range []struct {
		name       string
		args       []string
		want, hint string
	}{
		{"enough", []string{"a"}, "", ""},
		{"most", []string{"a", "b"}, "", ""},
		{"too few", nil, "tool needs a target", "usage: tool TARGET"},
		{"too many", []string{"a", "b", "c"}, `tool: unexpected argument "c"`, "usage: tool TARGET"},
		{"a flag without dashes", []string{"a", "b", "rate=5"}, `tool: unexpected argument "rate=5"`, "flags begin with two dashes: --rate=5"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := Args(1, 2, "a target")(&cobra.Command{Use: "tool TARGET", DisableFlagsInUseLine: true}, tt.args)
			got, hint := "", ""
			if w, ok := errors.AsType[*protocol.Error](err); ok {
				got, hint = w.Error(), w.Hint
			}
			assert.True(t, got == tt.want && hint == tt.hint, "got %q (%q), want %q (%q)", got, hint, tt.want, tt.hint)
		})
	}
}

// The error of an interrupted command is not printed, unless the command has a result.
func TestRun(t *testing.T) {
	broken := Exit{Code: host.ExitBroken}
	for _, tt := range []struct {
		name        string
		interrupted bool
		err         error
		want        int // exit code; 0: the error is returned unchanged
	}{
		{"done", false, nil, 0},
		{"failed", false, errors.New("no"), 0},
		{"canceled by another", false, context.Canceled, 0},
		{"interrupted", true, fmt.Errorf("asking: %w", context.Canceled), host.ExitInterrupted},
		{"interrupted, with a result", true, broken, host.ExitBroken},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tt.interrupted {
				cancel()
			}
			cmd := &cobra.Command{}
			cmd.SetContext(ctx)
			err := Run(func(*cobra.Command, []string) error { return tt.err })(cmd, nil)
			var e Exit
			errors.As(err, &e)
			assert.True(t, e.Code == tt.want && (tt.want != 0 || errors.Is(err, tt.err)),
				"got %v with code %d, want code %d", err, e.Code, tt.want)
		})
	}
}

// cannon is a kind with its own options.
type cannon struct{ protocol.Kind }

func (cannon) Name() string      { return "cannon" }
func (cannon) Schemes() []string { return []string{"cannon"} }
func (cannon) Ops() []string     { return []string{workload.Produce} }
func (cannon) Options() []protocol.Option {
	return []protocol.Option{{Name: "calibre"}, {Name: "loud", Type: protocol.Bool}}
}

// Flags collect what was typed, in order, and the last one counts.
func TestSettings(t *testing.T) {
	var s Settings
	fs := pflag.NewFlagSet("tool", pflag.ContinueOnError)
	s.Bind(fs, []protocol.Kind{cannon{}})
	assert.OK(t, fs.Parse([]string{"--calibre", "32", "--rate=5/s", "--loud", "--calibre", "68"}))
	for name, want := range map[string]string{"calibre": "68", "rate": "5/s", "loud": "true", "for": ""} {
		assert.Equal(t, s.Last(name), want, "--%s", name)
	}
	var typed []string
	for _, e := range s.Doc.Entries {
		typed = append(typed, e.Name+"="+strings.Join(e.Values, ","))
	}
	assert.Same(t, typed, []string{"calibre=32", "rate=5/s", "loud=true", "calibre=68"}, "typed")
	row, ok := SettingOf(fs.Lookup("calibre"))
	assert.True(t, ok && row.Kind == "cannon", "--calibre is not a setting of cannon: %+v", row)
	fs.Bool("plain", false, "")
	_, ok = SettingOf(fs.Lookup("plain"))
	assert.True(t, !ok, "--plain is a setting")
}

func TestReason(t *testing.T) {
	_, err := os.Open("nowhere/at/all")
	got, want := Reason(err), fs.ErrNotExist.Error()
	assert.True(t, got == "no such file or directory" || got == want, "got %q", got)
}
