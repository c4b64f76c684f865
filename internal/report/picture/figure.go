package picture

import (
	"cmp"
	"math"
	"slices"
)

// A Figure is one picture as data.
type Figure struct {
	Name  string // of files and in the page: "throughput"; letters, digits and dashes
	Title string
	Note  string // what it shows and how to read it, in sentences; may be empty

	X, Y   Axis
	Series []Series
	Heat   *Heat  // nil in all but heat maps, which have no series
	Marks  []Mark // stretches and points of X
	Limits []Limit

	// Shared figures have the time of the run as X and share one zoom and one
	// cross-hair.
	Shared bool
	// Middles: X are the middles of the intervals over which Y was measured.
	// Otherwise they are points in time.
	Middles bool
}

// A Limit is a line across the plot at a value of Y, or of X.
type Limit struct {
	Value float64
	Text  string
	OnX   bool
}

// A Unit is the unit of numbers and determines how they are printed.
type Unit string

// The units. Any other text is an external unit, printed after plain numbers.
const (
	Plain      Unit = ""
	Seconds    Unit = "s"
	Micros     Unit = "us"
	PerSecond  Unit = "/s"
	Events     Unit = "events"
	Bytes      Unit = "bytes"
	BytesPerS  Unit = "bytes/s"
	Cores      Unit = "cores"
	Share      Unit = "%"          // from 0 to 100
	Percentile Unit = "percentile" // 1/(1-p): 1 is the 0th, 10 the 90th, 100 the 99th
)

// An Axis is a direction of a figure.
type Axis struct {
	Label string
	Unit  Unit
	Log   bool
	// Labels are names at 0, 1, 2, ...; nil if the axis has numbers.
	Labels []string
	// Zero: the axis begins at zero even if the numbers do not. Only for linear
	// axes.
	Zero bool
	// Min and Max are the range; if they are equal, it is that of the numbers.
	Min, Max float64
}

// A Series is one line. X rises; a Y of NaN is a gap.
type Series struct {
	Name   string
	Tone   Tone
	Dash   Dash
	Style  Style
	X, Y   []float64
	Report int // index of the report given to Of
	// AtLeast marks points whose Y is a lower bound; nil: none.
	AtLeast []bool
	// Lo and Hi are the ends of the interval of each point: of X for Intervals, of Y for Ranges.
	Lo, Hi []float64
	Symbol Symbol // only for Ranges
	Filled bool   // of Steps: the area down to zero, too
}

// A Tone is a color of a series, in both themes.
type Tone uint8

// The tones, in the order in which overlaid reports get them.
const (
	Blue Tone = iota
	Orange
	Green
	Purple
	Red
	Sky
	Olive
	Grey // for targets and other references
	tones
)

// A Dash is a line's dash pattern, so that series do not differ by color alone.
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

// A Style is the way points are joined.
type Style uint8

// The styles.
const (
	Line  Style = iota
	Steps       // Y applies from its X to the next
	Bars        // from zero
	Dots
	Intervals // dots that are not joined, each on its interval of X; Y has names
	Ranges    // symbols that are not joined, each on its interval of Y
)

// A Mark is a stretch of X, or a point if From is To.
type Mark struct {
	From, To float64
	Text     string
	Kind     MarkKind
}

// A MarkKind is the kind of a stretch of time. Each has a different color, and
// those that need a name have one in the legend.
type MarkKind uint8

// The kinds.
const (
	OtherPhase MarkKind = iota // a phase other than the measurement, the start of a step, or a ceiling
	Stall                      // the system answered nothing
	Freeze                     // the generator did not run
	Fault                      // something was broken
	markKinds
)

// markNames are the names in the legend.
var markNames = [markKinds]string{OtherPhase: "warm-up or drain", Stall: "stall", Freeze: "generator froze", Fault: "fault"}

// Name is a kind's name in the legend.
func (k MarkKind) Name() string { return markNames[k%markKinds] }

// Class is the style sheet class of the kind's stretches.
func (k MarkKind) Class() string {
	return [markKinds]string{"band", "stall", "freeze", "fault"}[k%markKinds]
}

// Tone is the color of the edge of the kind's stretches: a stall's edge is at the
// top, a freeze's at the bottom, a fault's below that of a stall, so that all are
// visible if one is within the other.
func (k MarkKind) Tone() Tone {
	switch k {
	case Freeze:
		return Orange
	case Fault:
		return Red
	}
	return Blue
}

// EachMarkKind are all kinds of marks.
var EachMarkKind = []MarkKind{OtherPhase, Stall, Freeze, Fault}

// MarkKinds are the figure's mark kinds that the legend names.
func (f *Figure) MarkKinds() []MarkKind {
	var out []MarkKind
	for k := range markKinds {
		if f.Shared && slices.ContainsFunc(f.Marks, func(m Mark) bool { return m.Kind == k && m.To > m.From }) {
			out = append(out, k)
		}
	}
	return out
}

// Numbered are the points of time with a text, in order. The plot has only their numbers, from 1: texts
// would overlap.
func (f *Figure) Numbered() []Mark {
	if !f.Shared {
		return nil
	}
	out := slices.DeleteFunc(slices.Clone(f.Marks), func(m Mark) bool { return m.Text == "" || m.From != m.To })
	slices.SortStableFunc(out, func(a, b Mark) int { return cmp.Compare(a.From, b.From) })
	return out
}

// Explain says what a shaded stretch of this kind is, in a sentence.
func (k MarkKind) Explain() string {
	return [markKinds]string{
		OtherPhase: "not measured",
		Stall:      "the system answered nothing",
		Freeze:     "this machine did not run: these delays are its own, not the system's",
		Fault:      "something was broken on purpose",
	}[k%markKinds]
}

// A Heat is a map of counts over time and the logarithm of a duration.
type Heat struct {
	// Edges are the rising bounds of the rows, in microseconds: row i contains
	// values above Edges[i] and at most Edges[i+1]. The first row also contains
	// values below it.
	Edges   []float64
	Columns []Column
	Most    uint64 // the largest count of a cell
	Count   uint64 // of all cells, that is, of all observations
}

// A Column is a stretch of time. Rows rise, and Counts has one count for each; rows
// without a count are left out.
type Column struct {
	From, To float64 // seconds
	Rows     []int
	Counts   []uint64
}

// extent returns the smallest and the largest drawable number of a series; false if
// there is none.
func (s *Series) extent(log bool) (lo, hi float64, ok bool) {
	lo, hi = math.Inf(1), math.Inf(-1)
	of := [][]float64{s.Y}
	if s.Style == Ranges {
		of = append(of, s.Lo, s.Hi)
	}
	for _, v := range slices.Concat(of...) {
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
