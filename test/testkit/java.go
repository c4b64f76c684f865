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
		if JavaVersion(path) >= minimum {
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

// JavaVersion is the version of a Java, such as 17 or 8; 0 if there is none. A name without a
// folder is one on the PATH.
func JavaVersion(name string) int {
	path, err := exec.LookPath(name)
	if err != nil {
		return 0
	}
	versionsMu.Lock()
	defer versionsMu.Unlock()
	n, known := versions[path]
	if !known {
		if out, err := exec.Command(path, "-version").CombinedOutput(); err == nil {
			n = javaVersionIn(string(out))
		}
		versions[path] = n
	}
	return n
}

// javaVersionIn reads the version in the output of java -version; 0 if it has none.
func javaVersionIn(text string) (n int) {
	if m := javaVersion.FindStringSubmatch(text); m != nil {
		n, _ = strconv.Atoi(m[1]) // digits
	}
	return n
}
