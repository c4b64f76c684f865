package protocol

import (
	"fmt"
	"math"
	"time"

	"carronade/units"
)

// Type is the type of an option's value; it decides how text is parsed.
type Type uint8

// The types.
const (
	String   Type = iota
	Bool          // true or false
	Int           // an integer; k and m allowed
	Duration      // with a unit
	Size          // bytes, or with a unit
	Float
	List  // text, repeatable
	Rate  // events/s, or with a unit: 50k/s
	Share // 0.01 or 1%
)

// String returns the name used in help and in the schema.
func (t Type) String() string {
	return [...]string{"text", "bool", "number", "duration", "size", "number", "list", "rate", "share"}[t]
}

// An Option is one row of a kind's table. Flags, keys in a workload file and reports
// use the same names.
type Option struct {
	Name        string
	Type        Type
	Default     string // as entered; "": none
	Help        string // one line, lower case, no full stop
	Word        string // name of the value in help, such as "FILE"; "": the type's name
	Choices     []string
	Group       string   // heading in help: "batching", "security", ...
	Ops         []string // operations that it applies to; empty: all
	Independent bool     // an independent variable: reports may be compared over it
	Secret      bool     // never shown; the value must be env:NAME or file:PATH

	// Visible returns why a value must not be a flag, where others can see it; nil: it may.
	Visible func(text string) error

	// Show returns what reports and other output may show of a value that may contain a
	// secret; nil: all of it.
	Show func(text string) string
}

// Values are option texts by name, with defaults filled in and already checked against
// their table: the getters panic on text that does not parse.
type Values map[string][]string

// Has reports whether the option has a value that is not empty.
func (v Values) Has(name string) bool { return len(v[name]) > 0 && v[name][0] != "" }

// String returns the option's text, "" when it has none.
func (v Values) String(name string) string {
	if len(v[name]) == 0 {
		return ""
	}
	return v[name][len(v[name])-1]
}

// List returns all values of a repeatable option.
func (v Values) List(name string) []string { return v[name] }

// Bool returns the option as a bool, false when it has no value.
func (v Values) Bool(name string) bool { return v.String(name) == "true" }

// Int returns the option as a number, 0 when it has no value. A larger number than an int can be is the
// largest one.
func (v Values) Int(name string) int {
	return int(min(parsed(v, name, units.ParseCount), math.MaxInt))
}

// Rate returns the option in events/s, 0 when it has no value.
func (v Values) Rate(name string) float64 { return parsed(v, name, units.ParseRate) }

// Share returns the option as a share of one, 0 when it has no value.
func (v Values) Share(name string) float64 { return parsed(v, name, units.ParseShare) }

// Size returns the option in bytes, 0 when it has no value.
func (v Values) Size(name string) int64 { return parsed(v, name, units.ParseSize) }

// Duration returns the option as a duration, 0 when it has no value.
func (v Values) Duration(name string) time.Duration { return parsed(v, name, units.ParseDuration) }

func parsed[T any](v Values, name string, parse func(string) (T, error)) T {
	var zero T
	s := v.String(name)
	if s == "" {
		return zero
	}
	x, err := parse(s)
	if err != nil {
		panic(fmt.Sprintf("target: option %s was not checked: %v", name, err))
	}
	return x
}
