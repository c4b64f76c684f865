package testkit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// A Bundle is a set of jars that are fetched together.
type Bundle struct {
	Name    string   // of their directory, with the version: "kafka-4.3.1"
	Project []byte   // for Maven (a pom.xml): its runtime dependencies are the jars
	Needs   []string // files without which the directory is not complete
}

// Fetch returns the directory with the jars, in the user's cache. The first
// call on a machine fetches them; later ones find them. Several processes may
// call it at once.
func (b *Bundle) Fetch(ctx context.Context) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("testkit: find the user's cache directory: %w", err)
	}
	return b.fetch(ctx, filepath.Join(cache, "carronade"))
}

// fetch returns parent/Name, which Maven makes if it is missing. A rename makes the
// directory appear, so it is complete or absent; the lock only prevents that several
// processes fetch the same jars.
func (b *Bundle) fetch(ctx context.Context, parent string) (string, error) {
	dir := filepath.Join(parent, b.Name)
	if b.complete(dir) {
		return dir, nil
	}
	mvn, err := exec.LookPath("mvn")
	if err != nil {
		return "", errors.New("testkit: Maven (mvn) is missing, and with it the way to fetch " + b.Name + "; install it: apt-get install maven, or run scripts/deps as root")
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", fmt.Errorf("testkit: make the cache: %w", err)
	}
	unlock, err := lock(filepath.Join(parent, b.Name+".lock"))
	if err != nil {
		return "", fmt.Errorf("testkit: lock the cache: %w", err)
	}
	defer unlock()
	if b.complete(dir) { // another process was first
		return dir, nil
	}
	stage, err := os.MkdirTemp(parent, b.Name+".part-*")
	if err != nil {
		return "", fmt.Errorf("testkit: make room in the cache: %w", err)
	}
	defer os.RemoveAll(stage)
	if err := os.WriteFile(filepath.Join(stage, "pom.xml"), b.Project, 0o644); err != nil {
		return "", fmt.Errorf("testkit: write the list of jars: %w", err)
	}
	cmd := exec.CommandContext(ctx, mvn, "-B", "-ntp", "-C", "-q",
		"dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory=jars")
	cmd.Dir = stage
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("testkit: fetch %s with Maven (a network or a mirror in Maven's settings is needed once): %w\n%s", b.Name, err, out)
	}
	os.RemoveAll(dir) // it may exist, but is not complete
	if err := os.Rename(filepath.Join(stage, "jars"), dir); err != nil {
		return "", fmt.Errorf("testkit: put %s into the cache: %w", b.Name, err)
	}
	if !b.complete(dir) {
		return "", fmt.Errorf("testkit: Maven left no %s in %s", b.Name, dir)
	}
	return dir, nil
}

// complete reports whether dir contains all needed files.
func (b *Bundle) complete(dir string) bool {
	for _, file := range b.Needs {
		if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
			return false
		}
	}
	return true
}
