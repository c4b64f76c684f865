// Command release builds what is handed out: container images (image), archives and
// packages (archives), or only the licences of what the program contains (notices). The
// same commit gives the same bytes.
//
// It is a module of its own, so that what it needs is not among the program's
// dependencies. Run it in its folder: go run . image.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"carronade/tools/release/archive"
	"carronade/tools/release/build"
	"carronade/tools/release/notices"
)

// texts is the name of the file with the licences of others.
const texts = "THIRD-PARTY-LICENSES.txt"

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			os.Exit(0)
		}
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(2)
	}
}

// A job is one command line.
type job struct {
	root      string
	out       string
	platforms []build.Platform
	url       string // of the downloads, for the formula; may be ""
	say       io.Writer
}

func run(ctx context.Context, args []string, say io.Writer) error {
	if len(args) == 0 {
		return errors.New("want a command: image, archives or notices")
	}
	commands := map[string]struct {
		run       func(context.Context, *job) error
		platforms string
		out       string
	}{
		"image":    {images, "linux/amd64 linux/arm64", "dist/image"},
		"archives": {archives, "linux/amd64 linux/arm64 darwin/arm64 windows/amd64 windows/arm64", "dist/release"},
		"notices":  {licences, "linux/amd64 linux/arm64 darwin/arm64 windows/amd64 windows/arm64", "dist/" + texts},
	}
	c, ok := commands[args[0]]
	if !ok {
		return fmt.Errorf("unknown command %q: want image, archives or notices", args[0])
	}
	fs := flag.NewFlagSet(args[0], flag.ContinueOnError)
	root := fs.String("root", "../..", "folder of the program's module")
	out := fs.String("out", "", "where to write (default "+c.out+" in the program's module)")
	list := fs.String("platforms", c.platforms, "platforms, separated by spaces")
	url := fs.String("url", "", "where the archives can be downloaded; writes a formula for Homebrew")
	if err := fs.Parse(args[1:]); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("unknown argument %q", fs.Arg(0))
	}
	platforms, err := build.Platforms(*list)
	if err != nil {
		return err
	}
	j := &job{platforms: platforms, url: *url, say: say}
	if j.root, err = filepath.Abs(*root); err != nil {
		return err
	}
	if j.out = *out; j.out == "" {
		j.out = filepath.Join(j.root, filepath.FromSlash(c.out))
	}
	return c.run(ctx, j)
}

// licences writes the licences only.
func licences(ctx context.Context, j *job) error {
	parts, err := notices.Collect(ctx, j.root, j.platforms)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := notices.Write(&b, parts); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(j.out), 0o755); err != nil {
		return err
	}
	return os.WriteFile(j.out, b.Bytes(), 0o644)
}

// A built release: the programs, what they are, and the texts that go with them.
type release struct {
	dir      string // of the programs
	programs map[build.Platform]string
	facts    build.Facts
	parts    []notices.Part
	texts    []archive.File
}

// build builds the programs of all platforms, and reads what goes with them. The caller
// removes the folder.
func (j *job) build(ctx context.Context) (*release, error) {
	parts, err := notices.Collect(ctx, j.root, j.platforms)
	if err != nil {
		return nil, err
	}
	r := &release{parts: parts, programs: map[build.Platform]string{}}
	if r.dir, err = os.MkdirTemp("", "carronade-release-"); err != nil {
		return nil, err
	}
	for i, p := range j.platforms {
		start := time.Now()
		program := filepath.Join(r.dir, p.Suffix(), p.Exe())
		if err := build.Program(ctx, j.root, p, program); err != nil {
			return r, err
		}
		r.programs[p] = program
		facts, _, err := build.Read(program)
		if err != nil {
			return r, err
		}
		if i > 0 && facts != r.facts {
			return r, fmt.Errorf("the files changed during the build: %s is of %v, %s of %v", j.platforms[0], r.facts, p, facts)
		}
		r.facts = facts
		fmt.Fprintf(j.say, "built %s in %.0f s\n", p, time.Since(start).Seconds())
	}
	if r.facts.Modified {
		fmt.Fprintln(j.say, "warning: some files differ from the commit, so this build cannot be repeated")
	}
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		data, err := os.ReadFile(filepath.Join(j.root, name))
		if err != nil {
			return r, err
		}
		r.texts = append(r.texts, archive.File{Name: name, Mode: 0o644, Data: data})
	}
	var b bytes.Buffer
	if err := notices.Write(&b, parts); err != nil {
		return r, err
	}
	r.texts = append(r.texts, archive.File{Name: texts, Mode: 0o644, Data: b.Bytes()})
	return r, nil
}

// documents makes the man pages and completions, with the program's own generator.
func (j *job) documents(ctx context.Context, dir string) (files []archive.File, err error) {
	cmd := exec.CommandContext(ctx, "go", "run", "-trimpath", "./tools/generate", "manuals", dir)
	cmd.Dir, cmd.Env = j.root, append(os.Environ(), "CGO_ENABLED=0")
	if err := build.Run(cmd); err != nil {
		return nil, err
	}
	for _, name := range []string{"completion", "man"} {
		more, err := archive.Read(filepath.Join(dir, name), name, 0o644)
		if err != nil {
			return nil, err
		}
		files = append(files, more...)
	}
	return files, nil
}
