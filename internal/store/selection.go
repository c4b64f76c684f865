package store

import (
	"slices"
	"strings"
)

// AllIndependent stands, among requested fields, for every independent
// variable.
const AllIndependent = "(independent)"

// A Selection says which fields of rows are requested.
type Selection struct {
	// Independent requests all independent fields, whatever their names.
	Independent bool

	all   bool
	names map[string]bool
	under []string
}

// Select chooses fields by their names or aliases; nil chooses all. The bare
// name of a flag or a label suffices, a name that ends in a dot stands for all
// fields with that prefix, and AllIndependent for the independent variables.
func Select(fields []string) Selection {
	s := Selection{all: fields == nil, names: make(map[string]bool, 2*len(fields))}
	for _, name := range fields {
		switch {
		case name == AllIndependent:
			s.Independent = true
		case strings.HasSuffix(name, "."):
			s.under = append(s.under, name)
		default:
			for _, n := range alternatives(name) {
				s.names[n] = true
			}
		}
	}
	return s
}

// Has reports whether a field is requested by its name.
func (s *Selection) Has(name string) bool {
	return s.all || s.names[name] || slices.ContainsFunc(s.under, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// Keeps reports whether a field is requested.
func (s *Selection) Keeps(f *Field) bool {
	return s.Independent && f.Value.Independent || s.Has(f.Name)
}

// alternatives are the names under which Get looks for a field.
func alternatives(name string) []string {
	name = Canonical(name)
	if isKnown(name) {
		return []string{name}
	}
	return []string{name, flagPrefix + name, labelPrefix + name}
}
