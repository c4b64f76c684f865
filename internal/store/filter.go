package store

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"carronade/protocol"
)

// A Filter is one condition on a field, such as rate>=50k/s or branch=master.
type Filter struct {
	Name string // canonical
	Op   Op
	Text string // as written

	now time.Time // the reference of ages
	re  *regexp.Regexp
}

// An Op compares a field with the text of a filter.
type Op string

// The operators. "~" is a regular expression that matches anywhere in the text.
const (
	OpEqual    Op = "="
	OpUnequal  Op = "!="
	OpLess     Op = "<"
	OpAtMost   Op = "<="
	OpGreater  Op = ">"
	OpAtLeast  Op = ">="
	OpMatching Op = "~"
)

// ordering reports whether an operator needs values that have an order.
func (o Op) ordering() bool { return o == OpLess || o == OpAtMost || o == OpGreater || o == OpAtLeast }

// Filters are conditions that must all hold.
type Filters []Filter

// String is the filter as it was written, with the field's canonical name.
func (f Filter) String() string { return f.Name + string(f.Op) + f.Text }

const filterHint = "a filter is FIELD=VALUE, or with != < <= > >= ~, such as branch=master or 'response_p99<50ms' (in quotes, for the shell)"

// ParseFilters parses conditions. Ages in them count from now. Whether a field
// exists is known only after rows were matched: see Matcher.
func ParseFilters(words []string, now time.Time) (Filters, error) {
	var out Filters
	for _, w := range words {
		f, err := parseFilter(w, now)
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}

func parseFilter(word string, now time.Time) (Filter, error) {
	fail := func(err error, hint string) (Filter, error) {
		return Filter{}, &protocol.Error{Doing: fmt.Sprintf("read the filter %q", word), Err: err, Hint: hint}
	}
	i := strings.IndexAny(word, "=!<>~")
	if i < 0 {
		return fail(errors.New("it contains no comparison"), filterHint)
	}
	name, rest := strings.TrimSpace(word[:i]), word[i:]
	if name == "" {
		return fail(errors.New("it names no field"), filterHint)
	}
	f := Filter{Name: Canonical(name), now: now}
	for _, op := range []Op{OpUnequal, OpAtMost, OpAtLeast, OpEqual, OpLess, OpGreater, OpMatching} {
		if text, ok := strings.CutPrefix(rest, string(op)); ok {
			f.Op, f.Text = op, strings.TrimSpace(text)
			break
		}
	}
	switch {
	case f.Op == "":
		return fail(fmt.Errorf("%q is not a comparison", rest[:1]), filterHint)
	case f.Op == OpEqual && strings.HasPrefix(f.Text, "="):
		f.Text = strings.TrimSpace(f.Text[1:]) // ==, as in programs
	}
	if f.Text == "" {
		return fail(errors.New("the value is missing"), filterHint)
	}
	if f.Op == OpMatching {
		re, err := regexp.Compile(f.Text)
		if err != nil {
			return fail(err, "regular expressions have RE2's syntax; write \\. for a dot")
		}
		f.re = re
		return f, nil
	}
	kind, ok := known()[f.Name]
	if !ok || kind == anyKind {
		return f, nil // the rows decide
	}
	if _, err := f.operand(kind); err != nil {
		return fail(err, kindHint(kind))
	}
	return f, nil
}

// An operand is what a filter compares with: a range of numbers from low to
// below high, which is one number unless it is a day or the like; or a text.
type operand struct {
	low, high float64
	text      string
}

// operand parses the filter's text as a value of a kind.
func (f *Filter) operand(k ValueKind) (operand, error) {
	if k == KindText {
		if f.Op.ordering() {
			return operand{}, fmt.Errorf("%s is text, which has no order: %s cannot be used", f.Name, f.Op)
		}
		return operand{text: f.Text}, nil
	}
	if k == KindTime {
		low, high, err := parseMoment(f.Text, f.now)
		return operand{low: low, high: high}, err
	}
	x, err := parseNumber(k, f.Text)
	return operand{low: x, high: x}, err
}

// Match reports whether a row meets all conditions. For many rows use a
// Matcher, which also notices a field that none of them has.
func (fs Filters) Match(r *Row) bool {
	for i := range fs {
		f := &fs[i]
		v, ok := r.Get(f.Name)
		if !ok {
			return false
		}
		c := condition{Filter: *f}
		if !c.match(v) {
			return false
		}
	}
	return true
}

// satisfiedBy reports whether a value meets the condition.
func (f *Filter) satisfiedBy(v Value, o operand) bool {
	if v.Kind == KindText {
		same := v.Text == o.text
		return same == (f.Op == OpEqual)
	}
	x := v.Num
	below, above := x < o.low, x > o.high
	if o.high > o.low {
		above = x >= o.high // the day ends when the next one begins
	} else if v.Kind != KindTime && near(x, o.low) { // seconds since the epoch are large
		below, above = false, false
	}
	switch f.Op {
	case OpEqual:
		return !below && !above
	case OpUnequal:
		return below || above
	case OpLess:
		return below
	case OpAtMost:
		return !above
	case OpGreater:
		return above
	case OpAtLeast:
		return !below
	}
	return false
}

// near reports whether two numbers are equal up to rounding.
func near(a, b float64) bool {
	d := a - b
	if d < 0 {
		d = -d
	}
	m := max(a, -a, b, -b)
	return d <= 1e-9*m
}
