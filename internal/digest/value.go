package digest

// A Kind is what a value is; it decides how it is compared, parsed in a filter
// and printed.
type Kind uint8

// The kinds. Numbers of every kind are kept in Num, in the unit said here.
const (
	Text     Kind = iota
	Number        // a plain number
	Count         // whole, of events, shots, reports
	Share         // part of one
	Duration      // seconds
	Size          // bytes
	Rate          // a second
	Time          // seconds since the epoch, UTC
	Bool          // Num 0 or 1, Text "false" or "true"
)

// A Value is one field of a report. Text is what is shown and, for the kind
// Text, compared; of a setting it is the text as it would be typed.
type Value struct {
	Kind Kind
	Num  float64
	Text string
}
