package testkit

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
)

// java returns a Java of at least a version: the one on the PATH, or one in the
// folders where Debian and others install them.
func java(minimum int) (string, error) {
	paths := []string{"java"}
	others, _ := filepath.Glob("/usr/lib/jvm/*/bin/java") // the pattern is valid
	for _, path := range append(paths, others...) {
		if versionOf(path) >= minimum {
			return path, nil
		}
	}
	return "", fmt.Errorf("testkit: Java %d or later is missing; install a runtime: apt-get install default-jre-headless, or run scripts/deps as root", minimum)
}

var (
	javaVersion = regexp.MustCompile(`version "(?:1\.)?(\d+)`)
	versionsMu  sync.Mutex
	versions    = make(map[string]int)
)

// versionOf is the version of a Java; 0 if there is none.
func versionOf(path string) int {
	versionsMu.Lock()
	defer versionsMu.Unlock()
	n, known := versions[path]
	if !known {
		out, err := exec.Command(path, "-version").CombinedOutput()
		if m := javaVersion.FindSubmatch(out); err == nil && m != nil {
			n, _ = strconv.Atoi(string(m[1])) // digits
		}
		versions[path] = n
	}
	return n
}
