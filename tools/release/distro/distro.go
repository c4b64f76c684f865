// Package distro writes packages for Linux distributions: deb and rpm. Both contain the
// same files.
//
// Its invariant: the same files and time give the same bytes.
package distro

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // registers the format
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm" // registers the format

	"carronade/tools/release/archive"
	"carronade/tools/release/build"
)

// Formats are the kinds of packages, which are also the ends of their names.
var Formats = []string{"deb", "rpm"}

// A File is one file of a package.
type File struct {
	Path   string // absolute
	Mode   fs.FileMode
	Data   []byte
	Config bool // belongs to the user after the installation
}

// Contents are the files and scripts of a package.
type Contents struct {
	Files                   []File
	PostInstall, PostRemove []byte // shell scripts
	Description, Maintainer string
	Homepage                string // may be ""
}

// Layout says where the files of a release go in a package: the program, the man pages,
// the completions, the systemd units and the texts. The files have names as in an
// archive. Others are left out.
func Layout(all []archive.File) (placed []File, err error) {
	for _, f := range all {
		dir, base := filepath.Split(f.Name)
		put := func(path string) { placed = append(placed, File{Path: path, Mode: f.Mode, Data: f.Data}) }
		switch {
		case f.Name == "carronade":
			put("/usr/bin/carronade")
		case dir == "man/":
			packed, err := archive.Gzip(f.Data)
			if err != nil {
				return nil, err
			}
			section := filepath.Ext(base)[1:]
			placed = append(placed, File{Path: "/usr/share/man/man" + section + "/" + base + ".gz", Mode: f.Mode, Data: packed})
		case f.Name == "completion/carronade.bash":
			put("/usr/share/bash-completion/completions/carronade")
		case f.Name == "completion/_carronade":
			put("/usr/share/zsh/vendor-completions/_carronade")
		case f.Name == "completion/carronade.fish":
			put("/usr/share/fish/vendor_completions.d/carronade.fish")
		case dir == "systemd/":
			put("/usr/lib/systemd/system/" + base)
		case dir == "grafana/":
			put("/usr/share/carronade/grafana/" + base)
		case dir == "" && base != "LICENSE":
			put("/usr/share/doc/carronade/" + base)
		case base == "LICENSE": // Debian's name for it
			put("/usr/share/doc/carronade/copyright")
		}
	}
	return placed, nil
}

// Write writes a package of a format.
func Write(w io.Writer, format string, c Contents, arch string, facts build.Facts) error {
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	// The library reads files, so they are put into a folder.
	dir, err := os.MkdirTemp("", "carronade-"+format+"-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	n := 0
	store := func(data []byte) (string, error) {
		n++
		path := filepath.Join(dir, strconv.Itoa(n))
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return "", err
		}
		return path, os.Chtimes(path, facts.Time, facts.Time)
	}
	info := &nfpm.Info{
		Name: "carronade", Arch: arch, Platform: "linux", Version: facts.Version, Release: "1",
		Section: "utils", Priority: "optional", License: "Apache-2.0",
		Maintainer: c.Maintainer, Vendor: c.Maintainer, Description: c.Description, Homepage: c.Homepage,
		MTime: facts.Time, DisableGlobbing: true,
	}
	info.Recommends = []string{"ca-certificates"}
	info.RPM.BuildHost = "localhost"
	info.RPM.Group = "Applications/System"
	for _, f := range c.Files {
		source, err := store(f.Data)
		if err != nil {
			return err
		}
		content := &files.Content{
			Source: source, Destination: f.Path,
			FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: f.Mode.Perm(), MTime: facts.Time},
		}
		if f.Config {
			content.Type = files.TypeConfigNoReplace
		}
		info.Contents = append(info.Contents, content)
	}
	for _, s := range []struct {
		text []byte
		to   *string
	}{{c.PostInstall, &info.Scripts.PostInstall}, {c.PostRemove, &info.Scripts.PostRemove}} {
		if s.text == nil {
			continue
		}
		if *s.to, err = store(s.text); err != nil {
			return err
		}
	}
	info = nfpm.WithDefaults(info)
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return fmt.Errorf("%s: %w", format, err)
	}
	return packager.Package(info, w)
}
