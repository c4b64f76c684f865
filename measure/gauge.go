package measure

import "time"

// A Figure is a number that somebody told of himself at one moment: a server of
// its own rate, a process of its memory.
type Figure struct {
	Name  string // as its owner calls it, such as "streams rate"
	Unit  string // "events/s", "ms", "bytes", ...; "" is a plain number
	Value float64
}

// A Gauge is one figure over a run, on the run's own time axis.
type Gauge struct {
	From   string   // who told it: "server", "system", "host", "generator"
	Name   string   // Figure.Name
	Unit   string   // Figure.Unit
	Before *float64 // told before anything was fired; nil: it was not told then
	After  *float64 // told when everything was settled; nil likewise
	Points []Point  // once an interval, in order of time; an interval without an answer has none
}

// A Point is a gauge's value at an offset from the start of the run.
type Point struct {
	At    time.Duration
	Value float64
}
