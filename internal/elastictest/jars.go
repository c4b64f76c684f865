package elastictest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// fetch returns the directory that holds a release's jars, some 90 MB. The first
// call on a machine fetches them with Maven; later ones find them in the user's
// cache. The directory appears by a rename, so it is whole or absent; of several
// processes that fetch at once, one wins.
func (r *release) fetch() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("elastictest: find the user's cache directory: %w", err)
	}
	parent := filepath.Join(cache, "carronade")
	dir := filepath.Join(parent, r.name)
	if r.whole(dir) {
		return dir, nil
	}
	mvn, err := exec.LookPath("mvn")
	if err != nil {
		return "", errors.New("elastictest: Maven (mvn) is missing, and with it the way to fetch " + r.name + "; install it: apt-get install maven, or run scripts/deps as root")
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", fmt.Errorf("elastictest: make the cache: %w", err)
	}
	stage, err := os.MkdirTemp(parent, r.name+".part-*")
	if err != nil {
		return "", fmt.Errorf("elastictest: make room in the cache: %w", err)
	}
	defer os.RemoveAll(stage)
	if err := os.WriteFile(filepath.Join(stage, "pom.xml"), r.project(), 0o644); err != nil {
		return "", fmt.Errorf("elastictest: write the list of jars: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, mvn, "-B", "-ntp", "-C", "-q",
		"dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory=jars")
	cmd.Dir = stage
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("elastictest: fetch %s with Maven (a network or a mirror in Maven's settings is needed once): %w\n%s", r.name, err, out)
	}
	if err := os.Rename(filepath.Join(stage, "jars"), dir); err != nil && !r.whole(dir) {
		return "", fmt.Errorf("elastictest: put %s into the cache: %w", r.name, err)
	}
	if !r.whole(dir) {
		return "", fmt.Errorf("elastictest: %s is not whole; remove it", dir)
	}
	return dir, nil
}

// whole tells whether dir holds what a node needs.
func (r *release) whole(dir string) bool {
	for _, jar := range r.jars {
		if _, err := os.Stat(filepath.Join(dir, file(jar))); err != nil {
			return false
		}
	}
	return true
}
