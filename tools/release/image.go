package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"carronade/tools/release/archive"
	"carronade/tools/release/image"
)

// images builds the container images: the layout OUT/oci, and an archive for docker load
// of each platform.
func images(ctx context.Context, j *job) error {
	r, err := j.build(ctx)
	if r != nil {
		defer os.RemoveAll(r.dir)
	}
	if err != nil {
		return err
	}
	accounts, err := accountFiles(j.root)
	if err != nil {
		return err
	}
	tools, err := os.ReadFile(filepath.Join(j.root, "packaging/docker/tools"))
	if err != nil {
		return err
	}
	source := image.Source{Facts: r.facts, Programs: r.programs, Accounts: accounts, Texts: r.texts, Tools: strings.Fields(string(tools))}
	built, err := image.Build(source, j.platforms)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(j.out); err != nil {
		return err
	}
	digest, err := image.WriteLayout(filepath.Join(j.out, "oci"), built, r.facts)
	if err != nil {
		return err
	}
	for _, img := range built {
		size, err := image.Size(img)
		if err != nil {
			return err
		}
		file := fmt.Sprintf("carronade_%s_%s.docker.tar", r.facts.Tag(), img.Platform.Suffix())
		if err := image.WriteTar(filepath.Join(j.out, file), img, r.facts); err != nil {
			return err
		}
		fmt.Fprintf(j.say, "%s: %.1f MiB compressed, %s\n", img.Platform, float64(size)/(1<<20), file)
	}
	if err := archive.Sums(j.out); err != nil {
		return err
	}
	fmt.Fprintf(j.say, "carronade:%s %s in %s\n", r.facts.Tag(), digest, filepath.Join(j.out, "oci"))
	return nil
}

// accountFiles are the image's passwd and group.
func accountFiles(root string) (files []archive.File, err error) {
	for _, name := range []string{"group", "passwd"} {
		data, err := os.ReadFile(filepath.Join(root, "packaging/docker", name))
		if err != nil {
			return nil, err
		}
		files = append(files, archive.File{Name: name, Mode: 0o644, Data: data})
	}
	return files, nil
}
