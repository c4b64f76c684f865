package elastictest

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
)

// java returns a Java of at least a version: the one on the PATH, or one of
// those where Debian and others put them.
func java(least int) (string, error) {
	places := []string{"java"}
	others, _ := filepath.Glob("/usr/lib/jvm/*/bin/java") // the pattern is whole
	for _, place := range append(places, others...) {
		if versionOf(place) >= least {
			return place, nil
		}
	}
	return "", fmt.Errorf("elastictest: Java %d or later is missing; install a runtime: apt-get install default-jre-headless, or run scripts/deps as root", least)
}

var (
	javaVersion = regexp.MustCompile(`version "(?:1\.)?(\d+)`)
	versionsMu  sync.Mutex
	versions    = make(map[string]int)
)

// versionOf is the version of a Java, 0 of none.
func versionOf(place string) int {
	versionsMu.Lock()
	defer versionsMu.Unlock()
	n, known := versions[place]
	if !known {
		out, err := exec.Command(place, "-version").CombinedOutput()
		if m := javaVersion.FindSubmatch(out); err == nil && m != nil {
			n, _ = strconv.Atoi(string(m[1])) // digits
		}
		versions[place] = n
	}
	return n
}
