package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"carronade/tools/release/archive"
)

func TestArguments(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{nil, "want a command"},
		{[]string{"images"}, `unknown command "images"`},
		{[]string{"image", "now"}, `unknown argument "now"`},
		{[]string{"image", "--platforms", "linux"}, `"linux" is not a platform`},
		{[]string{"notices", "--root", t.TempDir(), "--platforms", "linux/amd64"}, "go list"},
	} {
		if err := run(t.Context(), tt.args, io.Discard); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: got %v, want %s", tt.args, err, tt.want)
		}
	}
}

// TestArchives makes a release for this machine's processor. That two releases are equal is
// tested for each kind of file, in its package.
func TestArchives(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	out, platform := filepath.Join(t.TempDir(), "release"), "linux_"+runtime.GOARCH
	var said bytes.Buffer
	if err := run(t.Context(), []string{"archives", "--platforms", "linux/" + runtime.GOARCH, "--out", out}, &said); err != nil {
		t.Fatal(err)
	}
	var base string
	kinds := map[string]bool{"SHA256SUMS": false, ".tar.gz": false, ".cdx.json": false, ".deb": false, ".rpm": false}
	entries, err := os.ReadDir(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		start, kind, ok := strings.Cut(e.Name(), platform)
		if !ok {
			kind = e.Name()
		} else {
			base = start + platform
		}
		if seen, ok := kinds[kind]; !ok || seen {
			t.Errorf("%s is not expected", e.Name())
		}
		kinds[kind] = true
	}
	for kind, seen := range kinds {
		if !seen {
			t.Errorf("%s is missing among %v", kind, entries)
		}
	}
	sums, err := os.ReadFile(filepath.Join(out, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for line := range strings.Lines(string(sums)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if got, err := archive.Sum(filepath.Join(out, name)); err != nil || got != sum {
			t.Errorf("%s: got %s and %v, want %s", name, got, err, sum)
		}
		lines++
	}
	if lines != len(kinds)-1 {
		t.Errorf("SHA256SUMS has %d lines, want %d", lines, len(kinds)-1)
	}
	checkArchive(t, filepath.Join(out, base+".tar.gz"), base)

	var bom struct {
		Components []struct{ Name string }
		Metadata   struct{ Timestamp string }
	}
	data, err := os.ReadFile(filepath.Join(out, base+".cdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &bom); err != nil {
		t.Fatal(err)
	}
	if len(bom.Components) < 30 || bom.Metadata.Timestamp != "2023-11-14T22:13:20Z" {
		t.Errorf("the list of parts has %d parts and the time %s", len(bom.Components), bom.Metadata.Timestamp)
	}
}

func checkArchive(t *testing.T, path, base string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	heads := map[string]*tar.Header{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		heads[h.Name] = h
	}
	for name, mode := range map[string]int64{
		"carronade": 0o755, "LICENSE": 0o644, "README.md": 0o644, "CHANGELOG.md": 0o644, "THIRD-PARTY-LICENSES.txt": 0o644,
		"man/carronade.1": 0o644, "man/carronade-subjects.7": 0o644, "completion/carronade.bash": 0o644, "completion/_carronade": 0o644,
		"systemd/carronade.service": 0o644, "systemd/carronade-agent.service": 0o644, "grafana/carronade.json": 0o644,
	} {
		h := heads[base+"/"+name]
		if h == nil {
			t.Errorf("%s is missing", name)
			continue
		}
		if h.Mode != mode || h.Size == 0 || h.ModTime.Unix() != 1700000000 {
			t.Errorf("%s has the mode %o, %d bytes and the time %v", name, h.Mode, h.Size, h.ModTime)
		}
	}
}
