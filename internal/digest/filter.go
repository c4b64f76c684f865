package digest

// A Filter is one condition on a field, such as rate>=50k/s or branch=master.
type Filter struct {
	Name  string // canonical
	Op    Op
	Text  string // as written
	value Value  // Text as the field's kind reads it; set when a row is met
}

// An Op compares a field with what was written.
type Op string

// The operators. "~" is a regular expression found anywhere in the text.
const (
	Equal    Op = "="
	Unequal  Op = "!="
	Less     Op = "<"
	AtMost   Op = "<="
	Greater  Op = ">"
	AtLeast  Op = ">="
	Matching Op = "~"
)

// Filters are conditions that must all hold.
type Filters []Filter
