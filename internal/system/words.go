package system

import (
	"errors"
	"strings"

	"carronade/internal/secret"
)

// flagsPlaceholder is the place of the flags in a command; without it they are
// appended.
const flagsPlaceholder = "{flags}"

// withFlags puts flags into a command's words.
func withFlags(words []string, flags []string) []string {
	var out []string
	put := false
	for _, w := range words {
		if w == flagsPlaceholder {
			out = append(out, flags...)
			put = true
			continue
		}
		out = append(out, w)
	}
	if !put {
		out = append(out, flags...)
	}
	return out
}

// formatFlag returns one flag in the given format: the format is split into
// words first, so that a value with blanks stays one argument.
func formatFlag(format string, f Flag) ([]string, error) {
	words, err := secret.Split(format)
	if err != nil {
		return nil, err
	}
	if !strings.Contains(format, "{name}") {
		return nil, errors.New("it does not contain {name}")
	}
	r := strings.NewReplacer("{name}", f.Name, "{value}", f.Value)
	for i, w := range words {
		words[i] = r.Replace(w)
	}
	return words, nil
}
