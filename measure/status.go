package measure

import "slices"

// A Status counts the answers with one status code (of HTTP, for example).
type Status struct {
	Code    int    `json:"code"`
	Batches uint64 `json:"batches"`
	Events  uint64 `json:"events"` // in those batches, accepted or not
}

// Statuses counts answers by status code, in ascending order of codes. Nil: no answer
// came, or the protocol has no such codes.
type Statuses []Status

// Add counts answers with a code.
func (s *Statuses) Add(code int, batches, events uint64) {
	i := 0
	for i < len(*s) && (*s)[i].Code < code { // there are only a few codes
		i++
	}
	if i == len(*s) || (*s)[i].Code != code {
		*s = slices.Insert(*s, i, Status{Code: code})
	}
	(*s)[i].Batches += batches
	(*s)[i].Events += events
}

// Merge adds o to s.
func (s *Statuses) Merge(o Statuses) {
	for i := range o {
		s.Add(o[i].Code, o[i].Batches, o[i].Events)
	}
}
