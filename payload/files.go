package payload

import (
	"strings"

	"carronade/internal/place"
)

// wholeFile returns the path in file:PATH: all after file:, including parentheses and commas.
func wholeFile(text string) (path string, ok bool) {
	p := place.Reference(text)
	return p.Value, p.Kind == place.File
}

// Files returns the files that New reads for a payload, and ParseCheck for a check. It reads none
// of them.
func Files(text string) (paths []string) {
	add := func(path string) {
		if path != "" {
			paths = append(paths, path)
		}
	}
	if path, ok := wholeFile(text); ok {
		return []string{path}
	}
	name, args, ok := splitCall(text)
	switch {
	case !ok:
	case name == "file":
		if path, _, err := fileArguments(args); err == nil {
			add(path)
		}
	case name == "ring":
		f, err := parseRing(args, 0)
		if err != nil {
			return nil
		}
		if name, list, _ := splitCall(f.middle); name == "list" {
			add(list)
		}
		if path, ok := wholeFile(strings.TrimSpace(f.source)); ok {
			add(path)
		}
	}
	return paths
}
