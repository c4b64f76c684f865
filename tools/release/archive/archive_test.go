package archive

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var (
	at    = time.Date(2026, 11, 23, 22, 0, 2, 0, time.UTC)
	files = []File{{"carronade", 0o755, []byte("program")}, {"man/carronade.1", 0o644, []byte("page")}}
)

func TestTarGz(t *testing.T) {
	var first, second bytes.Buffer
	for _, b := range []*bytes.Buffer{&first, &second} {
		if err := TarGz(b, "top", files, at); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two archives of the same files differ")
	}
	z, err := gzip.NewReader(&first)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		got[h.Name] = h.FileInfo().Mode().String() + " " + string(data)
		if !h.ModTime.Equal(at) || h.Uid != 0 || h.Uname != "" {
			t.Errorf("%s: got the time %v and the user %d %q", h.Name, h.ModTime, h.Uid, h.Uname)
		}
	}
	want := map[string]string{"top/carronade": "-rwxr-xr-x program", "top/man/carronade.1": "-rw-r--r-- page"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestZip(t *testing.T) {
	var first, second bytes.Buffer
	for _, b := range []*bytes.Buffer{&first, &second} {
		if err := Zip(b, "top", files, at); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two archives of the same files differ")
	}
	r, err := zip.NewReader(bytes.NewReader(first.Bytes()), int64(first.Len()))
	if err != nil {
		t.Fatal(err)
	}
	if len(r.File) != 2 || r.File[0].Name != "top/carronade" || r.File[0].Mode() != 0o755 || !r.File[0].Modified.Equal(at) {
		t.Errorf("got %d files, the first is %s %v %v", len(r.File), r.File[0].Name, r.File[0].Mode(), r.File[0].Modified)
	}
}

func TestSums(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b", "a", "SHA256SUMS"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("abc"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := Sums(dir); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	const abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	if want := abc + "  a\n" + abc + "  b\n"; string(got) != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
