package picture

import (
	"math"
	"slices"
)

// A Figure is one picture as data.
type Figure struct {
	Name  string // of files and in the page: "throughput"; letters, digits and dashes
	Title string
	Note  string // what it shows and what to mind, in sentences; may be empty

	X, Y   Axis
	Series []Series
	Heat   *Heat  // nil in all but heat maps, which have no series
	Marks  []Mark // stretches and moments of X

	// Shared figures have the time of the run as X and are looked at together:
	// one zoom and one cross-hair for all of them.
	Shared bool
	// Middles: X are the middles of the intervals that Y was measured over. Else
	// they are moments.
	Middles bool
}

// A Unit says what numbers are, and so how they are printed.
type Unit string

// The units. Any other text is a unit as somebody else calls it, and is
// printed behind plain numbers.
const (
	Plain      Unit = ""
	Seconds    Unit = "s"
	Micros     Unit = "us"
	PerSecond  Unit = "/s"
	Events     Unit = "events"
	Bytes      Unit = "bytes"
	BytesPerS  Unit = "bytes/s"
	Cores      Unit = "cores"
	Share      Unit = "%"          // of one hundred
	Percentile Unit = "percentile" // 1/(1-p): 1 is the 0th, 10 the 90th, 100 the 99th
)

// An Axis is a direction of a figure.
type Axis struct {
	Label string
	Unit  Unit
	Log   bool
	// Labels are names at 0, 1, 2, ...; nil where the axis has numbers.
	Labels []string
	// Zero: the axis begins at zero though the numbers do not. Only where it
	// is not logarithmic.
	Zero bool
	// Min and Max are the range where it is not that of the numbers; equal:
	// it is.
	Min, Max float64
}

// A Series is one line. X rises; a Y that is not a number is a hole.
type Series struct {
	Name   string
	Tone   Tone
	Dash   Dash
	Style  Style
	X, Y   []float64
	Report int // of those given to Of
	// AtLeast marks points whose Y is a lower bound; nil: none is.
	AtLeast []bool
}

// A Tone is a color of a series, in both themes.
type Tone uint8

// The tones, in the order in which they are given to reports laid over each
// other.
const (
	Blue Tone = iota
	Orange
	Green
	Purple
	Red
	Sky
	Olive
	Grey // what was asked for, and other things to compare with
	tones
)

// A Dash is how a line is broken, so that color is never alone in telling
// series apart.
type Dash uint8

// The dashes.
const (
	Solid Dash = iota
	Dashed
	Dotted
	DashDot
	LongDash
	dashes
)

// A Style is how points are joined.
type Style uint8

// The styles.
const (
	Line  Style = iota
	Steps       // Y holds from its X on, to the next
	Bars        // from zero
	Dots
)

// A Mark is a stretch of X, or a moment where From is To.
type Mark struct {
	From, To float64
	Text     string
	Kind     MarkKind
}

// A MarkKind is what a stretch of time was: each has a color of its own, and those
// that need a word have one in the legend.
type MarkKind uint8

// The kinds, from back to front.
const (
	Apart  MarkKind = iota // a phase that is not the measurement, or where a step begins
	Stall                  // the system answered nothing
	Freeze                 // the generator did not run
	markKinds
)

// markNames are what stands in the legend.
var markNames = [markKinds]string{Stall: "stall", Freeze: "generator froze"}

// Name is what the legend says of a kind; "" where it says nothing.
func (k MarkKind) Name() string { return markNames[k%markKinds] }

// Class is the class of its stretches in style sheets.
func (k MarkKind) Class() string { return [markKinds]string{"band", "stall", "freeze"}[k%markKinds] }

// Tone is the color of the edge of its stretches: a stall's is at the top, a
// freeze's at the bottom, so that both are seen where one is within the other.
func (k MarkKind) Tone() Tone {
	if k == Freeze {
		return Orange
	}
	return Blue
}

// MarkKinds are the kinds that the legend names, of those that the figure has.
func (f *Figure) MarkKinds() []MarkKind {
	var out []MarkKind
	for k := range markKinds {
		if k.Name() != "" && slices.ContainsFunc(f.Marks, func(m Mark) bool { return m.Kind == k }) {
			out = append(out, k)
		}
	}
	return out
}

// A Heat is a map of counts over time and the logarithm of a time.
type Heat struct {
	// Edges bound the rows, in microseconds, rising: row i holds what is above
	// Edges[i] and at most Edges[i+1]. The first row holds what is below, too.
	Edges   []float64
	Columns []Column
	Most    uint64 // the largest count of a cell
	Count   uint64 // of all cells: of all observations
}

// A Column is a stretch of time. Rows rise, and Counts go with them; rows
// without a count are left out.
type Column struct {
	From, To float64 // seconds
	Rows     []int
	Counts   []uint64
}

// extent returns the least and the largest number of a series that can be
// drawn; false when there is none.
func (s *Series) extent(log bool) (lo, hi float64, ok bool) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, v := range s.Y {
		if !drawable(v, log) {
			continue
		}
		lo, hi = min(lo, v), max(hi, v)
	}
	return lo, hi, hi >= lo
}

func drawable(v float64, log bool) bool {
	return !math.IsNaN(v) && !math.IsInf(v, 0) && (!log || v > 0)
}

// empty reports whether there is nothing to draw.
func (f *Figure) empty() bool {
	if f.Heat != nil {
		return f.Heat.Count == 0
	}
	for i := range f.Series {
		if _, _, ok := f.Series[i].extent(false); ok {
			return false
		}
	}
	return true
}
