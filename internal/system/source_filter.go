package system

import "strings"

// A filter selects names: those that match any of its patterns. A pattern is a name
// in which * matches any text. One that begins with "!" excludes the names that
// match it. If all patterns exclude, or there are none, all other names are
// selected.
type filter struct{ include, exclude []string }

// newFilter makes a filter. Each element of patterns may contain several patterns,
// separated by commas.
func newFilter(patterns []string) filter {
	var f filter
	for _, list := range patterns {
		for p := range strings.SplitSeq(list, ",") {
			p = strings.TrimSpace(p)
			if q, ok := strings.CutPrefix(p, "!"); ok {
				f.exclude = append(f.exclude, q)
			} else if p != "" {
				f.include = append(f.include, p)
			}
		}
	}
	return f
}

// Selects reports whether a name is selected. A pattern may also match the bare
// name of a name with labels, NAME{...}.
func (f filter) Selects(name string) bool {
	for _, p := range f.exclude {
		if matches(p, name) {
			return false
		}
	}
	return len(f.include) == 0 || f.includes(name)
}

// includes reports whether a pattern that does not exclude matches the name.
func (f filter) includes(name string) bool {
	for _, p := range f.include {
		if matches(p, name) {
			return true
		}
	}
	return false
}

func matches(pattern, name string) bool {
	if glob(pattern, name) {
		return true
	}
	bare, _, ok := strings.Cut(name, "{")
	return ok && glob(pattern, bare)
}

// glob matches * with any text. Its worst-case time is proportional to the product
// of the lengths.
func glob(pattern, s string) bool {
	star, mark := -1, 0
	i, j := 0, 0
	for i < len(s) {
		switch {
		case j < len(pattern) && pattern[j] == '*':
			star, mark = j, i
			j++
		case j < len(pattern) && pattern[j] == s[i]:
			i, j = i+1, j+1
		case star >= 0:
			mark++
			i, j = mark, star+1
		default:
			return false
		}
	}
	for j < len(pattern) && pattern[j] == '*' {
		j++
	}
	return j == len(pattern)
}
