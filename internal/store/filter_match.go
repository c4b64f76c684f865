package store

import (
	"errors"
	"fmt"
	"slices"

	"carronade/internal/advice"
	"carronade/protocol"
)

// A Matcher matches rows against filters, and knows afterwards whether the
// filters made sense for them. It has one owner.
type Matcher struct {
	conditions []condition
	names      map[string]bool // of the rows, while a filter's field has not been found
	rows       int
}

type condition struct {
	Filter
	operands [kinds]operand
	errs     [kinds]error
	read     [kinds]bool
	met      bool // a row has the field
	compared bool // a value could be compared
}

// NewMatcher returns a matcher for rows of one store.
func NewMatcher(fs Filters) *Matcher {
	m := &Matcher{conditions: make([]condition, len(fs))}
	for i, f := range fs {
		m.conditions[i] = condition{Filter: f}
	}
	return m
}

// Fields appends to a list the names of the fields that the filters use, as
// Select takes them.
func (fs Filters) Fields(to []string) []string {
	for _, f := range fs {
		to = append(to, f.Name)
	}
	return to
}

// Match reports whether a row matches all filters. A row without a field meets no
// condition on it.
func (m *Matcher) Match(r *Row) bool {
	m.rows++
	all := true
	for i := range m.conditions {
		c := &m.conditions[i]
		if !all && c.compared {
			continue
		}
		v, ok := r.Get(c.Name)
		if !ok {
			all = false
			if !c.met && !isKnown(c.Name) {
				m.addNames(r)
			}
			continue
		}
		c.met = true
		all = c.match(v) && all
	}
	return all
}

func (c *condition) match(v Value) bool {
	if c.Op == OpMatching {
		c.compared = true
		return c.re.MatchString(v.String())
	}
	if !c.read[v.Kind] {
		c.operands[v.Kind], c.errs[v.Kind] = c.operand(v.Kind)
		c.read[v.Kind] = true
	}
	if c.errs[v.Kind] != nil {
		return c.Op == OpUnequal // a text that is not such a value differs from all
	}
	c.compared = true
	return c.satisfiedBy(v, c.operands[v.Kind])
}

// addNames keeps the names of a row, one of which may have been meant.
func (m *Matcher) addNames(r *Row) {
	if m.names == nil {
		m.names = make(map[string]bool, 256)
	}
	for i := range r.Fields {
		m.names[r.Fields[i].Name] = true
	}
}

// Err says, after the rows were matched, what was wrong with the filters: a
// field that no report has, or a text that is not a value of its field. It is
// nil if there were no rows: then nothing is known.
func (m *Matcher) Err() error {
	if m.rows == 0 {
		return nil
	}
	for i := range m.conditions {
		c := &m.conditions[i]
		switch {
		case !c.met && !isKnown(c.Name):
			return UnknownField(c.Name, m.names)
		case c.met && !c.compared:
			for k, err := range c.errs {
				if err != nil {
					return &protocol.Error{Doing: fmt.Sprintf("compare %s", c.String()), Err: err, Hint: kindHint(ValueKind(k))}
				}
			}
		}
	}
	return nil
}

// ErrNoField is the reason in an error for a field that no report has.
var ErrNoField = errors.New("no such field")

// UnknownField is the error for a field that no report has, with a suggestion; names
// are those that reports have.
func UnknownField(name string, names map[string]bool) error {
	var all []string
	for n := range known() {
		all = append(all, n)
	}
	for n := range aliases {
		all = append(all, n)
	}
	for n := range names {
		all = append(all, n)
		for _, prefix := range []string{flagPrefix, labelPrefix} {
			if len(n) > len(prefix) && n[:len(prefix)] == prefix {
				all = append(all, n[len(prefix):])
			}
		}
	}
	slices.Sort(all) // so that the suggestion does not change between equally near ones
	return &protocol.Error{
		Err:  reason{fmt.Sprintf("no report has the field %q", name), ErrNoField},
		Hint: advice.DidYouMean(name, all, "%s", "docs/reports.md lists the fields of reports; settings are named like their flags"),
	}
}
