package store

import (
	"strings"
	"time"
)

// A Field is a named value.
type Field struct {
	Name  string
	Value Value
}

// A Row is one report, flat. Fields are sorted by name, each name once. A field
// that does not exist for a run is absent, which differs from 0. Rows decoded
// by one RowDecoder share their names and texts.
type Row struct {
	ID      string
	At      time.Time // when the run started
	Fields  []Field
	Running bool // still being written by a living process
}

// Prefixes of the names of fields that users choose.
const (
	flagPrefix  = "flag."
	labelPrefix = "label."
)

// Get returns a field by its name or by an alias of it. A flag of the system
// under test or a label is also found by its bare name, unless that is the name
// of a field.
func (r *Row) Get(name string) (Value, bool) {
	name = Canonical(name)
	if v, ok := r.get(name); ok {
		return v, true
	}
	if isKnown(name) {
		return Value{}, false
	}
	for _, prefix := range [...]string{flagPrefix, labelPrefix} {
		if fields := r.Under(prefix); len(fields) > 0 {
			for i := range fields {
				if fields[i].Name[len(prefix):] == name {
					return fields[i].Value, true
				}
			}
		}
	}
	return Value{}, false
}

func (r *Row) get(name string) (Value, bool) {
	if i := r.search(name); i < len(r.Fields) && r.Fields[i].Name == name {
		return r.Fields[i].Value, true
	}
	return Value{}, false
}

// search returns the index of the name, or where it would be.
func (r *Row) search(name string) int {
	lo, hi := 0, len(r.Fields)
	for lo < hi {
		m := int(uint(lo+hi) >> 1)
		if r.Fields[m].Name < name {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo
}

// Under returns the fields whose names begin with a prefix, such as "flag.".
// They are part of the row.
func (r *Row) Under(prefix string) []Field {
	i := r.search(prefix)
	j := i
	for j < len(r.Fields) && strings.HasPrefix(r.Fields[j].Name, prefix) {
		j++
	}
	return r.Fields[i:j]
}

// Num returns a field's number; false if it is absent or a text.
func (r *Row) Num(name string) (float64, bool) {
	v, ok := r.Get(name)
	return v.Num, ok && v.Kind != KindText
}

// Text returns a field as it is shown, "" if it is absent.
func (r *Row) Text(name string) string {
	v, _ := r.Get(name)
	return v.String()
}
