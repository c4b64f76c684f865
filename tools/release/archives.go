package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"carronade/tools/release/archive"
	"carronade/tools/release/brew"
	"carronade/tools/release/build"
	"carronade/tools/release/distro"
	"carronade/tools/release/sbom"
)

const (
	description = "Load tester for systems that take in events: Kafka, Riemann and APM Server."
	maintainer  = "Carronade maintainers"
)

// archives builds the release: an archive and a list of parts for each platform, packages
// for Linux, checksums, and a formula where the address of the downloads is known.
func archives(ctx context.Context, j *job) error {
	r, err := j.build(ctx)
	if r != nil {
		defer os.RemoveAll(r.dir)
	}
	if err != nil {
		return err
	}
	documents, err := j.documents(ctx, filepath.Join(r.dir, "documents"))
	if err != nil {
		return err
	}
	if err := os.RemoveAll(j.out); err != nil {
		return err
	}
	if err := os.MkdirAll(j.out, 0o755); err != nil {
		return err
	}
	names := map[build.Platform]string{}
	for _, p := range j.platforms {
		if names[p], err = j.pack(r, p, documents); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	if j.url != "" {
		if err := j.formula(r, names); err != nil {
			return err
		}
	}
	if err := archive.Sums(j.out); err != nil {
		return err
	}
	entries, err := os.ReadDir(j.out)
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(j.say, "%8d KiB  %s\n", (info.Size()+1023)>>10, e.Name())
	}
	return nil
}

// pack writes what belongs to one platform, and returns the archive's name.
func (j *job) pack(r *release, p build.Platform, documents []archive.File) (string, error) {
	program, err := os.ReadFile(r.programs[p])
	if err != nil {
		return "", err
	}
	all := []archive.File{{Name: p.Exe(), Mode: 0o755, Data: program}}
	all = append(append(all, r.texts...), documents...)
	for _, dir := range []string{"grafana", "systemd"} {
		if dir == "systemd" && p.OS != "linux" {
			continue
		}
		more, err := archive.Read(filepath.Join(j.root, "packaging", dir), dir, 0o644)
		if err != nil {
			return "", err
		}
		all = append(all, more...)
	}
	base := fmt.Sprintf("carronade_%s_%s", r.facts.Version, p.Suffix())
	write, name := archive.TarGz, base+".tar.gz"
	if p.OS == "windows" {
		write, name = archive.Zip, base+".zip"
	}
	if err := create(filepath.Join(j.out, name), func(w io.Writer) error { return write(w, base, all, r.facts.Time) }); err != nil {
		return "", err
	}
	_, info, err := build.Read(r.programs[p])
	if err != nil {
		return "", err
	}
	err = create(filepath.Join(j.out, base+".cdx.json"), func(w io.Writer) error {
		return sbom.Write(w, r.programs[p], p, r.facts, info, r.parts)
	})
	if err != nil || p.OS != "linux" {
		return name, err
	}
	contents, err := j.contents(all)
	if err != nil {
		return "", err
	}
	for _, format := range distro.Formats {
		err := create(filepath.Join(j.out, base+"."+format), func(w io.Writer) error {
			return distro.Write(w, format, contents, p.Arch, r.facts)
		})
		if err != nil {
			return "", err
		}
	}
	return name, nil
}

// contents are those of a package for Linux: the files of the archive and what only a
// package has.
func (j *job) contents(all []archive.File) (distro.Contents, error) {
	c := distro.Contents{Description: description, Maintainer: maintainer}
	var err error
	if c.Files, err = distro.Layout(all); err != nil {
		return c, err
	}
	dir := filepath.Join(j.root, "packaging/linux")
	for _, f := range []struct {
		name string
		use  func(data []byte)
	}{
		{"sysusers.conf", func(data []byte) {
			c.Files = append(c.Files, distro.File{Path: "/usr/lib/sysusers.d/carronade.conf", Mode: 0o644, Data: data})
		}},
		{"agent.conf", func(data []byte) {
			c.Files = append(c.Files, distro.File{Path: "/etc/carronade/agent.conf", Mode: 0o644, Data: data, Config: true})
		}},
		{"postinstall.sh", func(data []byte) { c.PostInstall = data }},
		{"postremove.sh", func(data []byte) { c.PostRemove = data }},
	} {
		data, err := os.ReadFile(filepath.Join(dir, f.name))
		if err != nil {
			return c, err
		}
		f.use(data)
	}
	return c, nil
}

func (j *job) formula(r *release, names map[build.Platform]string) error {
	template, err := os.ReadFile(filepath.Join(j.root, "packaging/homebrew/carronade.rb.tmpl"))
	if err != nil {
		return err
	}
	sums := map[string]string{}
	for _, name := range names {
		if sums[name], err = archive.Sum(filepath.Join(j.out, name)); err != nil {
			return err
		}
	}
	text, err := brew.Formula(string(template), j.url, r.facts, names, sums)
	if err != nil {
		return err
	}
	return create(filepath.Join(j.out, "carronade.rb"), func(w io.Writer) error {
		_, err := io.Copy(w, strings.NewReader(text))
		return err
	})
}

// create writes a file. An error does not leave a part of it.
func create(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		f.Close()
		return fmt.Errorf("%s: %w", filepath.Base(path), errors.Join(err, os.Remove(path)))
	}
	return f.Close()
}
