// Package build builds the program for the platforms of a release, and says what was
// built.
package build

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// A Platform is an operating system and a processor, by Go's names.
type Platform struct{ OS, Arch string }

// String is the form of the Makefile: linux/amd64.
func (p Platform) String() string { return p.OS + "/" + p.Arch }

// Suffix is the form in names of files: linux_amd64.
func (p Platform) Suffix() string { return p.OS + "_" + p.Arch }

// Exe is the name of the program's file.
func (p Platform) Exe() string {
	if p.OS == "windows" {
		return "carronade.exe"
	}
	return "carronade"
}

// Env is this process's environment, for commands that build for the platform.
func (p Platform) Env() []string {
	return append(os.Environ(), "GOOS="+p.OS, "GOARCH="+p.Arch, "CGO_ENABLED=0")
}

// Platforms parses a list such as "linux/amd64 darwin/arm64".
func Platforms(list string) (all []Platform, err error) {
	for _, word := range strings.Fields(list) {
		goos, arch, ok := strings.Cut(word, "/")
		if !ok || goos == "" || arch == "" || strings.Contains(arch, "/") {
			return nil, fmt.Errorf("%q is not a platform: want a form like linux/amd64", word)
		}
		all = append(all, Platform{goos, arch})
	}
	if len(all) == 0 {
		return nil, errors.New("the list of platforms is empty")
	}
	return all, nil
}

// Facts are what a release says about its program.
type Facts struct {
	Version  string    // without a v: 1.2.3, or 0.0.0-20260102030405-abcdef012345 between releases
	Commit   string    // "" outside a repository
	Modified bool      // built from files that differ from the commit
	Time     time.Time // of the commit, in UTC; all files of a release have it
}

// Tag is the version as a tag of images, which cannot have a plus sign.
func (f Facts) Tag() string { return strings.ReplaceAll(f.Version, "+", "-") }

// Flags are the arguments of go build for a release. The toolchain records the commit.
var Flags = []string{"-trimpath", "-buildvcs=auto", "-ldflags", "-s -w"}

// Program builds the program of the module in root into the file out.
func Program(ctx context.Context, root string, p Platform, out string) error {
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", append(append([]string{"build"}, Flags...), "-o", out, ".")...)
	cmd.Dir, cmd.Env = root, p.Env()
	return Run(cmd)
}

// Run runs a command. Its error has what the command printed.
func Run(cmd *exec.Cmd) error {
	var text bytes.Buffer
	if cmd.Stdout == nil {
		cmd.Stdout = &text
	}
	cmd.Stderr = &text
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, text.Bytes())
	}
	return nil
}

// Read returns what the toolchain recorded in a built program. The variable
// SOURCE_DATE_EPOCH, in seconds since 1970, replaces the time of the commit; without
// either it fails.
func Read(program string) (Facts, *debug.BuildInfo, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return Facts{}, nil, err
	}
	f, err := facts(info, os.Getenv("SOURCE_DATE_EPOCH"))
	return f, info, err
}

func facts(info *debug.BuildInfo, epoch string) (f Facts, err error) {
	f.Version = strings.TrimPrefix(info.Main.Version, "v")
	if f.Version == "" || f.Version == "(devel)" {
		f.Version = "0.0.0-devel"
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			f.Commit = s.Value
		case "vcs.modified":
			f.Modified = s.Value == "true"
		case "vcs.time":
			if f.Time, err = time.Parse(time.RFC3339Nano, s.Value); err != nil {
				return Facts{}, fmt.Errorf("time of the commit: %w", err)
			}
		}
	}
	if epoch != "" {
		seconds, err := strconv.ParseInt(epoch, 10, 64)
		if err != nil || seconds < 0 {
			return Facts{}, fmt.Errorf("SOURCE_DATE_EPOCH: %q is not a number of seconds", epoch)
		}
		f.Time = time.Unix(seconds, 0)
	}
	if f.Time.IsZero() {
		return Facts{}, errors.New("the commit is unknown: build in a clone of the git repository (Go records none in a worktree), or set SOURCE_DATE_EPOCH, in seconds since 1970")
	}
	f.Time = f.Time.UTC().Truncate(time.Second)
	return f, nil
}
