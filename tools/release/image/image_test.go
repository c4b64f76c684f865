package image

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"carronade/tools/release/archive"
	"carronade/tools/release/build"
)

const root = "../../.."

var (
	facts = build.Facts{Version: "1.2.3+dirty", Commit: "532f904b", Time: time.Date(2026, 11, 23, 22, 0, 0, 0, time.UTC)}
	here  = build.Platform{OS: "linux", Arch: runtime.GOARCH}
	other = build.Platform{OS: "linux", Arch: "riscv64"}
)

// source has the real program for this machine's processor, and some bytes instead of one for another.
func source(t *testing.T) Source {
	t.Helper()
	dir := t.TempDir()
	s := Source{Facts: facts, Programs: map[build.Platform]string{here: filepath.Join(dir, "carronade"), other: filepath.Join(dir, "other")}}
	if err := build.Program(t.Context(), root, here, s.Programs[here]); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.Programs[other], []byte("a program"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"group", "passwd"} {
		data, err := os.ReadFile(filepath.Join(root, "packaging/docker", name))
		if err != nil {
			t.Fatal(err)
		}
		s.Accounts = append(s.Accounts, archive.File{Name: name, Mode: 0o644, Data: data})
	}
	tools, err := os.ReadFile(filepath.Join(root, "packaging/docker/tools"))
	if err != nil {
		t.Fatal(err)
	}
	s.Tools = strings.Fields(string(tools))
	s.Texts = []archive.File{{Name: "LICENSE", Mode: 0o644, Data: []byte("a licence")}}
	return s
}

// TestImage builds the image twice, reads the layout and the archive, and runs the program
// from the files of its layers.
func TestImage(t *testing.T) {
	s, platforms := source(t), []build.Platform{here, other}
	var dirs, digests []string
	for range 2 {
		images, err := Build(s, platforms)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		digest, err := WriteLayout(filepath.Join(dir, "oci"), images, facts)
		if err != nil {
			t.Fatal(err)
		}
		if err := WriteTar(filepath.Join(dir, "docker.tar"), images[0], facts); err != nil {
			t.Fatal(err)
		}
		dirs, digests = append(dirs, dir), append(digests, digest)
	}
	if digests[0] != digests[1] || !strings.HasPrefix(digests[0], "sha256:") {
		t.Errorf("two builds have the digests %s", digests)
	}
	if diff := cmp.Diff(sums(t, dirs[0]), sums(t, dirs[1])); diff != "" {
		t.Errorf("two builds have different files:\n%s", diff)
	}

	path, err := layout.FromPath(filepath.Join(dirs[0], "oci"))
	if err != nil {
		t.Fatal(err)
	}
	top, err := path.ImageIndex()
	if err != nil {
		t.Fatal(err)
	}
	list, err := top.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var tags []string
	for _, m := range list.Manifests {
		tags = append(tags, m.Annotations[refName])
	}
	if diff := cmp.Diff([]string{"1.2.3-dirty", "1.2.3-dirty-linux-" + here.Arch, "1.2.3-dirty-linux-riscv64"}, tags); diff != "" {
		t.Fatalf("names in the layout (-want +got):\n%s", diff)
	}
	index, err := top.ImageIndex(list.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	both, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(both.Manifests) != 2 {
		t.Fatalf("the index has %d images, want 2", len(both.Manifests))
	}
	for i, m := range both.Manifests {
		img, err := index.Image(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		checkConfig(t, img, platforms[i])
		if m.Platform == nil || m.Platform.OS != "linux" || m.Platform.Architecture != platforms[i].Arch {
			t.Errorf("image %d is for %v, want %s", i, m.Platform, platforms[i])
		}
		if platforms[i] == here {
			checkFiles(t, img, s.Tools)
		}
	}

	tag, err := name.NewTag("carronade:1.2.3-dirty")
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := tarball.ImageFromPath(filepath.Join(dirs[0], "docker.tar"), &tag)
	if err != nil {
		t.Fatal(err)
	}
	checkConfig(t, loaded, here)
}

// sums are the checksums of all files below a folder.
func sums(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		all[rel], err = archive.Sum(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func checkConfig(t *testing.T, img v1.Image, p build.Platform) {
	t.Helper()
	file, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	got := *file
	got.RootFS, got.History = v1.RootFS{}, nil
	want := v1.ConfigFile{
		OS: "linux", Architecture: p.Arch, Created: v1.Time{Time: facts.Time},
		Config: v1.Config{
			User: "65532:65532", Entrypoint: []string{"/carronade"}, WorkingDir: "/data",
			Env: []string{"HOME=/data", "PATH=/", "XDG_DATA_HOME=/data"},
			Labels: map[string]string{
				"org.opencontainers.image.title":       "carronade",
				"org.opencontainers.image.description": "Load tester for systems that take in events",
				"org.opencontainers.image.licenses":    "Apache-2.0",
				"org.opencontainers.image.version":     "1.2.3+dirty",
				"org.opencontainers.image.created":     "2026-11-23T22:00:00Z",
				"org.opencontainers.image.revision":    "532f904b",
			},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: the configuration (-want +got):\n%s", p, diff)
	}
}

// checkFiles extracts the layers, checks what is there, and runs the program, also under the
// names of old tools.
func checkFiles(t *testing.T, img v1.Image, tools []string) {
	t.Helper()
	dir, heads := t.TempDir(), map[string]*tar.Header{}
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range layers {
		r, err := l.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		extract(t, r, dir, heads)
	}
	const size = 1 << 20
	for path, want := range map[string]struct {
		mode  int64
		owner int
		bytes int64
	}{
		"carronade":                         {0o755, 0, 20 * size},
		"data/":                             {0o755, User, 0},
		"tmp/":                              {0o1777, 0, 0},
		"etc/passwd":                        {0o644, 0, 20},
		"etc/group":                         {0o644, 0, 10},
		"etc/ssl/certs/ca-certificates.crt": {0o644, 0, 100 << 10},
		"usr/share/doc/carronade/LICENSE":   {0o644, 0, 5},
		"usr/share/doc/carronade/":          {0o755, 0, 0},
		"etc/":                              {0o755, 0, 0},
		"etc/ssl/":                          {0o755, 0, 0},
		"etc/ssl/certs/":                    {0o755, 0, 0},
		"usr/":                              {0o755, 0, 0},
		"usr/share/":                        {0o755, 0, 0},
		"usr/share/doc/":                    {0o755, 0, 0},
	} {
		h := heads[path]
		if h == nil {
			t.Errorf("/%s is missing", path)
			continue
		}
		if h.Mode != want.mode || h.Uid != want.owner || h.Gid != want.owner || h.Size < want.bytes || !h.ModTime.Equal(facts.Time) {
			t.Errorf("/%s has the mode %o, the owner %d:%d, %d bytes, the time %v; want %+v", path, h.Mode, h.Uid, h.Gid, h.Size, h.ModTime, want)
		}
		delete(heads, path)
	}
	for _, name := range tools {
		if h := heads[name]; h == nil || h.Typeflag != tar.TypeSymlink || h.Linkname != "carronade" {
			t.Errorf("/%s is not a link to the program: %+v", name, h)
		}
		delete(heads, name)
	}
	for path := range heads {
		t.Errorf("/%s is in the image, and nothing needs it", path)
	}
	size1, err := Size(img)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%.1f MiB compressed", float64(size1)/size)
	if runtime.GOOS != "linux" {
		return
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "carronade"), "version", "--json")
	cmd.Dir, cmd.Env = dir, []string{"HOME=" + dir}
	out, err := cmd.CombinedOutput()
	var version struct {
		Go, Platform string
		Modules      []struct{ Path, Version string }
	}
	if err := errors.Join(err, json.Unmarshal(out, &version)); err != nil {
		t.Fatalf("carronade version: %v\n%s", err, out)
	}
	if version.Go != runtime.Version() || version.Platform != here.String() || len(version.Modules) < 30 {
		t.Errorf("carronade version printed\n%s", out)
	}
	cmd = exec.CommandContext(t.Context(), filepath.Join(dir, "carronade"), "as")
	cmd.Env = []string{"HOME=" + dir}
	if out, err = cmd.Output(); err != nil {
		t.Fatal(err)
	}
	var known []string
	for line := range strings.Lines(string(out)) {
		known = append(known, strings.Fields(line)[0])
	}
	if diff := cmp.Diff(known, tools); diff != "" {
		t.Errorf("the program's tools and packaging/docker/tools (-want +got):\n%s", diff)
	}
	for _, name := range tools {
		cmd = exec.CommandContext(t.Context(), filepath.Join(dir, name), "--no-such-option")
		cmd.Env = []string{"HOME=" + dir}
		if out, err := cmd.CombinedOutput(); err == nil || bytes.Contains(out, []byte("error: unknown")) {
			t.Errorf("%s --no-such-option: got %v and\n%s", name, err, out)
		}
	}
	passwd, err := os.ReadFile(filepath.Join(dir, "etc/passwd"))
	if err != nil || !bytes.Contains(passwd, []byte("carronade:x:65532:65532:")) {
		t.Errorf("/etc/passwd: %v\n%s", err, passwd)
	}
}

// extract writes the files of a layer below dir, and adds their headers.
func extract(t *testing.T, r io.Reader, dir string, heads map[string]*tar.Header) {
	t.Helper()
	for z := tar.NewReader(r); ; {
		h, err := z.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if !filepath.IsLocal(h.Name) || heads[h.Name] != nil {
			t.Fatalf("the layer has the name %q, which is outside or there twice", h.Name)
		}
		heads[h.Name] = h
		path := filepath.Join(dir, h.Name)
		if h.Typeflag == tar.TypeSymlink && filepath.IsLocal(h.Linkname) {
			if err := os.Symlink(h.Linkname, path); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if h.Typeflag == tar.TypeDir {
			if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, fs.FileMode(h.Mode).Perm())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(f, z); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTooLarge(t *testing.T) {
	dir := t.TempDir()
	// Bytes that no compression makes smaller.
	data, x := make([]byte, MaxSize), uint32(1)
	for i := range data {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		data[i] = byte(x >> 8)
	}
	program := filepath.Join(dir, "carronade")
	if err := os.WriteFile(program, data, 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := Build(Source{Facts: facts, Programs: map[build.Platform]string{here: program}}, []build.Platform{here})
	if err == nil || !strings.Contains(err.Error(), "more than 26214400") {
		t.Errorf("got %v", err)
	}
	if _, err := Build(Source{Facts: facts}, []build.Platform{here}); err == nil {
		t.Error("got no error without a program")
	}
}

func TestCertificates(t *testing.T) {
	data, err := Certificates()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			break
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		if !c.IsCA {
			t.Errorf("%s is not an authority", c.Subject)
		}
		n++
	}
	if n < 80 || len(bytes.TrimSpace(data)) > 0 {
		t.Errorf("got %d certificates and %d bytes after them, want more than 80 and none", n, len(data))
	}
}
