package apm

import (
	"fmt"
	"strconv"
	"strings"

	"carronade/internal/apm/wire"
)

// Servers know logs since 8.5, with all of their fields since 8.6. Older ones refuse
// each with unknownObject and the name of the kind.
const (
	unknownObject = "did not recognize object type"
	dropLogs      = "servers before 8.5 do not know logs and refuse each of them; leave log out of --mix (or of the --corpus), or use a newer server"
)

// logWarnings says which servers are too old for the logs of this run, by their
// versions, or else by their words.
func (s *session) logWarnings() (w []string) {
	if s.cfg.bodyPool.kinds[wire.Log] == 0 {
		return nil
	}
	for _, v := range s.servers {
		if major, minor, ok := parseVersion(v.Version); ok && (major < 8 || major == 8 && minor < 5) {
			w = append(w, fmt.Sprintf("%s is version %s: %s", v.Base, v.Version, dropLogs))
		}
	}
	if len(w) > 0 {
		return w
	}
	for text := range s.errors.All() {
		if rest, ok := strings.CutPrefix(text, unknownObject); ok && strings.Contains(rest, `"log"`) {
			return []string{"the server says " + text + ": " + dropLogs}
		}
	}
	return nil
}

// parseVersion reads the beginning of a version such as 8.4.3.
func parseVersion(s string) (major, minor int, ok bool) {
	first, rest, _ := strings.Cut(s, ".")
	second, _, _ := strings.Cut(rest, ".")
	major, err := strconv.Atoi(first)
	minor, err2 := strconv.Atoi(second)
	return major, minor, err == nil && err2 == nil
}
