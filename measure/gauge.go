package measure

import "time"

// A Figure is a number that somebody told of himself at one moment: a server of
// its own rate, a process of its memory.
type Figure struct {
	Name  string // as its owner calls it, such as "streams rate"
	Unit  string // "events/s", "ms", "bytes", ...; "" is a plain number
	Value float64
	// Counts marks a rate of what came in from us among others: it stands
	// beside what was sent where nothing is acknowledged. Those of one session
	// with the same unit add up.
	Counts bool
	// Total marks a number that only rises, of all since its owner began: its
	// mean says nothing.
	Total bool
}

// A Gauge is one figure over a run, on the run's own time axis.
type Gauge struct {
	From   string   // the source: "server", "system", "host", "generator"
	Name   string   // Figure.Name
	Unit   string   // Figure.Unit
	Counts bool     // Figure.Counts
	Total  bool     // Figure.Total
	Before *float64 // told before anything was fired; nil: it was not told then
	After  *float64 // told when everything was completed; nil likewise
	Points []Point  // once an interval, in order of time; an interval without an answer has none
	Missed uint64   // how often it was asked for during the run, since it was first told, in vain
}

// A Point is a gauge's value at an offset from the start of the run: what was
// told then, or, in a long run, the mean of neighbours up to then.
type Point struct {
	At    time.Duration
	Value float64
}

// Within returns the mean and the largest of the points from start to end,
// both included; false where there are none.
func (g *Gauge) Within(start, end time.Duration) (mean, most float64, ok bool) {
	n := 0
	for _, p := range g.Points {
		if p.At < start || p.At > end {
			continue
		}
		if n == 0 || p.Value > most {
			most = p.Value
		}
		mean += p.Value
		n++
	}
	if n == 0 {
		return 0, 0, false
	}
	return mean / float64(n), most, true
}
