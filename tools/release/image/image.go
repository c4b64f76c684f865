// Package image builds the container image from files, without an engine: an OCI layout
// with a manifest for each platform, and archives for docker load.
//
// Its invariant: the same programs, files and time give the same bytes, and so the same
// digests.
package image

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"

	"carronade/tools/release/archive"
	"carronade/tools/release/build"
)

// MaxSize is the largest sum of a platform's compressed layers, in bytes.
const MaxSize = 25 << 20

// User is the user and the group of the image's process: not root, and without a name
// elsewhere.
const User = 65532

// refName is the annotation by which tools find an image in a layout.
const refName = "org.opencontainers.image.ref.name"

// A Source is what an image is made of.
type Source struct {
	Facts    build.Facts
	Programs map[build.Platform]string // built programs, by their platforms
	Accounts []archive.File            // passwd and group, for /etc
	Texts    []archive.File            // licences and notices
	Tools    []string                  // names of the program as old tools: links to it
}

// An Image is the image of one platform.
type Image struct {
	Platform build.Platform
	v1.Image
}

// Build builds the images of the platforms, in their order.
func Build(s Source, platforms []build.Platform) ([]Image, error) {
	common, err := s.common()
	if err != nil {
		return nil, err
	}
	var all []Image
	for _, p := range platforms {
		program, err := os.ReadFile(s.Programs[p])
		if err != nil {
			return nil, fmt.Errorf("program for %s: %w", p, err)
		}
		own, err := layer([]entry{{name: "carronade", mode: 0o755, data: program}}, s.Facts.Time)
		if err != nil {
			return nil, err
		}
		img, err := s.image(p, []v1.Layer{common, own})
		if err != nil {
			return nil, fmt.Errorf("image for %s: %w", p, err)
		}
		size, err := Size(img)
		if err != nil {
			return nil, err
		}
		if size > MaxSize {
			return nil, fmt.Errorf("image for %s: its layers have %d bytes, more than %d", p, size, MaxSize)
		}
		all = append(all, Image{p, img})
	}
	return all, nil
}

// common is the layer of all platforms: everything but the program.
func (s Source) common() (v1.Layer, error) {
	certificates, err := Certificates()
	if err != nil {
		return nil, err
	}
	entries := []entry{
		{name: "data/", mode: 0o755, user: User},
		{name: "etc/", mode: 0o755},
	}
	for _, f := range s.Accounts {
		entries = append(entries, entry{name: path.Join("etc", f.Name), mode: 0o644, data: f.Data})
	}
	entries = append(
		entries,
		entry{name: "etc/ssl/", mode: 0o755},
		entry{name: "etc/ssl/certs/", mode: 0o755},
		entry{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, data: certificates},
		entry{name: "tmp/", mode: 0o777 | fs.ModeSticky},
		entry{name: "usr/", mode: 0o755},
		entry{name: "usr/share/", mode: 0o755},
		entry{name: "usr/share/doc/", mode: 0o755},
		entry{name: "usr/share/doc/carronade/", mode: 0o755},
	)
	for _, f := range s.Texts {
		entries = append(entries, entry{name: path.Join("usr/share/doc/carronade", f.Name), mode: 0o644, data: f.Data})
	}
	for _, name := range s.Tools {
		entries = append(entries, entry{name: name, mode: 0o777, link: "carronade"})
	}
	return layer(entries, s.Facts.Time)
}

// Certificates are the certificates of the authorities that Mozilla trusts for servers,
// as PEM. They come from a Go module, so go.sum pins them. Those that Mozilla trusts only
// with conditions are left out: a file of certificates cannot express them.
func Certificates() ([]byte, error) {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		if err := pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, err
		}
	}
	if b.Len() == 0 {
		return nil, errors.New("the module with the certificates of authorities contains none")
	}
	return b.Bytes(), nil
}

// An entry of a layer. A name that ends in a slash is a folder.
type entry struct {
	name string
	mode fs.FileMode
	user int
	data []byte
	link string // where a symbolic link leads; "": it is none
}

func layer(entries []entry, at time.Time) (v1.Layer, error) {
	var b bytes.Buffer
	t := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: e.name, Mode: int64(e.mode.Perm()), Uid: e.user, Gid: e.user, Size: int64(len(e.data)), ModTime: at, Format: tar.FormatUSTAR}
		if strings.HasSuffix(e.name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if e.link != "" {
			h.Typeflag, h.Linkname = tar.TypeSymlink, e.link
		}
		if e.mode&fs.ModeSticky != 0 {
			h.Mode |= 0o1000
		}
		if err := t.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := t.Write(e.data); err != nil {
			return nil, err
		}
	}
	if err := t.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(
		func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(9), tarball.WithCompressedCaching,
	)
}

func (s Source) image(p build.Platform, layers []v1.Layer) (v1.Image, error) {
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	var adds []mutate.Addendum
	for i, l := range layers {
		by := []string{"certificates, accounts, folders, licences, names of old tools", "the program"}[i]
		adds = append(adds, mutate.Addendum{Layer: l, History: v1.History{Created: v1.Time{Time: s.Facts.Time}, CreatedBy: by}})
	}
	img, err := mutate.Append(img, adds...)
	if err != nil {
		return nil, err
	}
	file, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture = p.OS, p.Arch
	file.Created = v1.Time{Time: s.Facts.Time}
	file.Config = v1.Config{
		User:       fmt.Sprintf("%d:%d", User, User),
		Entrypoint: []string{"/carronade"},
		WorkingDir: "/data",
		Env:        []string{"HOME=/data", "PATH=/", "XDG_DATA_HOME=/data"},
		Labels:     s.labels(),
	}
	img, err = mutate.ConfigFile(img, file)
	if err != nil {
		return nil, err
	}
	return mutate.Annotations(img, s.labels()).(v1.Image), nil
}

// labels are those that OCI defines.
func (s Source) labels() map[string]string {
	const prefix = "org.opencontainers.image."
	l := map[string]string{
		prefix + "title":       "carronade",
		prefix + "description": "Load tester for systems that take in events",
		prefix + "licenses":    "Apache-2.0",
		prefix + "version":     s.Facts.Version,
		prefix + "created":     s.Facts.Time.Format(time.RFC3339),
	}
	if s.Facts.Commit != "" {
		l[prefix+"revision"] = s.Facts.Commit
	}
	return l
}

// Size is the sum of the compressed layers, in bytes.
func Size(img v1.Image) (size int64, err error) {
	layers, err := img.Layers()
	if err != nil {
		return 0, err
	}
	for _, l := range layers {
		n, err := l.Size()
		if err != nil {
			return 0, err
		}
		size += n
	}
	return size, nil
}

// WriteLayout writes an OCI layout: the version's index of all platforms, and each
// platform under a name of its own, for tools that do not read indexes. It returns the
// digest of the index.
func WriteLayout(dir string, images []Image, facts build.Facts) (string, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, img := range images {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img.Image, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: img.Platform.OS, Architecture: img.Platform.Arch},
		}})
	}
	to, err := layout.Write(dir, mutate.IndexMediaType(empty.Index, types.OCIImageIndex))
	if err != nil {
		return "", err
	}
	if err := to.AppendIndex(index, layout.WithAnnotations(map[string]string{refName: facts.Tag()})); err != nil {
		return "", err
	}
	for _, img := range images {
		tag := facts.Tag() + "-" + strings.ReplaceAll(img.Platform.Suffix(), "_", "-")
		if err := to.AppendImage(img.Image, layout.WithAnnotations(map[string]string{refName: tag}), layout.WithPlatform(v1.Platform{OS: img.Platform.OS, Architecture: img.Platform.Arch})); err != nil {
			return "", err
		}
	}
	digest, err := index.Digest()
	return digest.String(), err
}

// WriteTar writes one platform for docker load, which names it carronade:VERSION.
func WriteTar(file string, img Image, facts build.Facts) error {
	tag, err := name.NewTag("carronade:" + facts.Tag())
	if err != nil {
		return err
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	if err := tarball.Write(tag, img.Image, f); err != nil {
		f.Close()
		return fmt.Errorf("%s: %w", filepath.Base(file), err)
	}
	return f.Close()
}
