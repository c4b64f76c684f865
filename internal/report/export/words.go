package export

import (
	"maps"
	"slices"
	"strings"
)

// sorted returns a map's keys in order.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func list(names []string) string { return strings.Join(names, ", ") }
