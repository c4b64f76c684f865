package scrape

import "strings"

// A Filter says which names are told: those that any of its patterns fits. A
// pattern is a name in which * stands for any text; one that begins with "!"
// leaves out what it fits. Without any pattern that takes, all are told that
// none leaves out.
type Filter struct{ take, leave []string }

// NewFilter makes a filter of patterns, which may hold several parted by commas.
func NewFilter(patterns []string) Filter {
	var f Filter
	for _, list := range patterns {
		for p := range strings.SplitSeq(list, ",") {
			p = strings.TrimSpace(p)
			if q, ok := strings.CutPrefix(p, "!"); ok {
				f.leave = append(f.leave, q)
			} else if p != "" {
				f.take = append(f.take, p)
			}
		}
	}
	return f
}

// Takes reports whether a name is told. Of a name with labels, NAME{...}, the
// bare name counts too.
func (f Filter) Takes(name string) bool {
	for _, p := range f.leave {
		if fits(p, name) {
			return false
		}
	}
	return len(f.take) == 0 || f.names(name)
}

// names reports whether a pattern asks for the name.
func (f Filter) names(name string) bool {
	for _, p := range f.take {
		if fits(p, name) {
			return true
		}
	}
	return false
}

func fits(pattern, name string) bool {
	if glob(pattern, name) {
		return true
	}
	bare, _, ok := strings.Cut(name, "{")
	return ok && glob(pattern, bare)
}

// glob matches * with any text, in time that grows with the product of the
// lengths at worst.
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
