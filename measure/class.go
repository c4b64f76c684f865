package measure

import (
	"cmp"
	"slices"
)

// A ClassCount counts failed and unknown events of one class of reasons.
type ClassCount struct {
	Class   string `json:"class"`
	Events  uint64 `json:"events"`
	Batches uint64 `json:"batches"`
}

// Classes counts failures by class, sorted by name. Nil: nothing failed.
type Classes []ClassCount

// Add counts failures of a class.
func (c *Classes) Add(class string, events, batches uint64) {
	i, ok := slices.BinarySearchFunc(*c, class, func(n ClassCount, name string) int { return cmp.Compare(n.Class, name) })
	if !ok {
		*c = slices.Insert(*c, i, ClassCount{Class: class})
	}
	(*c)[i].Events += events
	(*c)[i].Batches += batches
}

// Merge adds o to c.
func (c *Classes) Merge(o Classes) {
	for i := range o {
		c.Add(o[i].Class, o[i].Events, o[i].Batches)
	}
}
