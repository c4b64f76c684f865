package distro

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"carronade/tools/release/archive"
	"carronade/tools/release/build"
)

const root = "../../.."

var (
	facts = build.Facts{Version: "0.0.0-20261123220000-532f904b0000", Commit: "532f904b", Time: time.Date(2026, 11, 23, 22, 0, 0, 0, time.UTC)}
	want  = map[string]string{
		"/usr/bin/carronade":                                  "-rwxr-xr-x",
		"/usr/share/man/man1/carronade.1.gz":                  "-rw-r--r--",
		"/usr/share/man/man7/carronade-subjects.7.gz":         "-rw-r--r--",
		"/usr/share/bash-completion/completions/carronade":    "-rw-r--r--",
		"/usr/share/zsh/vendor-completions/_carronade":        "-rw-r--r--",
		"/usr/share/fish/vendor_completions.d/carronade.fish": "-rw-r--r--",
		"/usr/lib/systemd/system/carronade.service":           "-rw-r--r--",
		"/usr/share/carronade/grafana/carronade.json":         "-rw-r--r--",
		"/usr/share/doc/carronade/copyright":                  "-rw-r--r--",
		"/usr/share/doc/carronade/README.md":                  "-rw-r--r--",
		"/etc/carronade/agent.conf":                           "-rw-r--r--",
	}
)

func contents(t *testing.T) Contents {
	t.Helper()
	var all []archive.File
	for _, name := range []string{
		"carronade", "LICENSE", "README.md", "man/carronade.1", "man/carronade-subjects.7", "completion/carronade.bash", "completion/_carronade",
		"completion/carronade.fish", "completion/carronade.ps1", "systemd/carronade.service", "grafana/carronade.json",
	} {
		f := archive.File{Name: name, Mode: 0o644, Data: []byte("contents of " + name)}
		if name == "carronade" {
			f.Mode = 0o755
		}
		all = append(all, f)
	}
	files, err := Layout(all)
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, File{Path: "/etc/carronade/agent.conf", Mode: 0o644, Data: []byte("# options\n"), Config: true})
	c := Contents{Files: files, Description: "A load tester.", Maintainer: "Example"}
	for name, to := range map[string]*[]byte{"postinstall.sh": &c.PostInstall, "postremove.sh": &c.PostRemove} {
		if *to, err = os.ReadFile(filepath.Join(root, "packaging/linux", name)); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func write(t *testing.T, format string) []byte {
	t.Helper()
	var first, second bytes.Buffer
	for _, b := range []*bytes.Buffer{&first, &second} {
		if err := Write(b, format, contents(t), "arm64", facts); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Errorf("two %s packages of the same files differ", format)
	}
	return first.Bytes()
}

func TestDeb(t *testing.T) {
	members := parts(t, write(t, "deb"))
	control := untar(t, members["control.tar.gz"])
	for _, line := range []string{"Package: carronade", "Version: 0.0.0~20261123220000-532f904b0000-1", "Architecture: arm64", "Recommends: ca-certificates", "Maintainer: Example"} {
		if !strings.Contains("\n"+control["/control"].text, "\n"+line+"\n") {
			t.Errorf("control does not have the line %q:\n%s", line, control["/control"].text)
		}
	}
	if !strings.Contains(control["/postinst"].text, "systemd-sysusers carronade.conf") || control["/conffiles"].text != "/etc/carronade/agent.conf\n" {
		t.Errorf("got postinst %q and conffiles %q", control["/postinst"].text, control["/conffiles"].text)
	}
	got := map[string]string{}
	for path, f := range untar(t, members["data.tar.gz"]) {
		if strings.HasSuffix(path, "/") {
			continue
		}
		got[path] = f.mode
		if !f.at.Equal(facts.Time) {
			t.Errorf("%s has the time %v", path, f.at)
		}
	}
	delete(got, "/usr/share/doc/carronade/changelog.Debian.gz")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if tool, err := exec.LookPath("dpkg-deb"); err == nil {
		query(t, tool, "deb", "--info")
		query(t, tool, "deb", "--contents")
	}
}

func TestRPM(t *testing.T) {
	data := write(t, "rpm")
	if !bytes.HasPrefix(data, []byte{0xed, 0xab, 0xee, 0xdb}) {
		t.Error("the package does not begin as an rpm does")
	}
	tool, err := exec.LookPath("rpm")
	if err != nil {
		t.Skip("rpm is not installed: the contents are not checked")
	}
	list := query(t, tool, "rpm", "-qlp")
	for path := range want {
		if !strings.Contains("\n"+list, "\n"+path+"\n") {
			t.Errorf("%s is missing in\n%s", path, list)
		}
	}
	about := query(t, tool, "rpm", "-qip")
	for _, row := range []string{`Version +: 0\.0\.0~20261123220000_532f904b0000`, `Architecture: +aarch64`, `License +: Apache-2\.0`, `Build Host +: localhost`} {
		if !regexp.MustCompile(row).MatchString(about) {
			t.Errorf("%s does not match\n%s", row, about)
		}
	}
}

// query runs a distribution's own tool on a package.
func query(t *testing.T, tool, format string, args ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "carronade."+format)
	if err := os.WriteFile(path, write(t, format), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), tool, append(args, path)...).CombinedOutput()
	if err != nil {
		t.Errorf("%s %s: %v\n%s", tool, args, err, out)
	}
	return string(out)
}

// parts reads the members of an ar archive: headers of 60 bytes, and contents padded to an even length.
func parts(t *testing.T, data []byte) map[string][]byte {
	t.Helper()
	const magic = "!<arch>\n"
	all := map[string][]byte{}
	if !bytes.HasPrefix(data, []byte(magic)) {
		t.Fatal("the package does not begin as a deb does")
	}
	for data = data[len(magic):]; len(data) >= 60; {
		size, err := strconv.Atoi(strings.TrimSpace(string(data[48:58])))
		if err != nil || size > len(data)-60 {
			t.Fatalf("a member has the size %q: %v", data[48:58], err)
		}
		all[strings.Trim(string(data[:16]), " /")] = data[60 : 60+size]
		data = data[60+size+size%2:]
	}
	return all
}

type packed struct {
	mode, text string
	at         time.Time
}

func untar(t *testing.T, data []byte) map[string]packed {
	t.Helper()
	all := map[string]packed{}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimPrefix(h.Name, ".")] = packed{h.FileInfo().Mode().String(), string(text), h.ModTime}
	}
}

func TestUnknownFormat(t *testing.T) {
	if err := Write(io.Discard, "apk2", Contents{}, "amd64", facts); err == nil {
		t.Error("got no error")
	}
}

// TestUnits checks the systemd units with systemd's own tool. The program that they start
// is replaced by one that exists here.
func TestUnits(t *testing.T) {
	tool, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root, "packaging/systemd/*"))
	if err != nil || len(files) < 4 {
		t.Fatalf("got %d units and %v", len(files), err)
	}
	dir := t.TempDir()
	units := []string{}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		unit := filepath.Join(dir, filepath.Base(f))
		if err := os.WriteFile(unit, bytes.ReplaceAll(data, []byte("/usr/bin/carronade"), []byte(self)), 0o644); err != nil {
			t.Fatal(err)
		}
		units = append(units, unit)
	}
	out, err := exec.CommandContext(t.Context(), tool, append([]string{"verify", "--man=no"}, units...)...).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "carronade") { // others are about units of this machine
			t.Error(strings.TrimSpace(line))
		}
	}
}
