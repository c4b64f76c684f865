package digest

import "time"

// A Field is a named value.
type Field struct {
	Name  string
	Value Value
}

// A Row is one report, flat. Fields are sorted by name, each name once. A
// field that does not exist for a run is absent, which differs from 0.
type Row struct {
	ID      string
	At      time.Time // when the run started
	Fields  []Field
	Running bool // still being written by a living process
}

// Get returns a field by its name, or by an alias of it.
func (r *Row) Get(name string) (Value, bool) {
	name = Canonical(name)
	lo, hi := 0, len(r.Fields)
	for lo < hi {
		m := int(uint(lo+hi) >> 1)
		if r.Fields[m].Name < name {
			lo = m + 1
		} else {
			hi = m
		}
	}
	if lo < len(r.Fields) && r.Fields[lo].Name == name {
		return r.Fields[lo].Value, true
	}
	return Value{}, false
}
