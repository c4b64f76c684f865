package measure

import "time"

// A Figure is a number that a server or process reported about itself at one moment: a
// server its own rate, a process its memory.
type Figure struct {
	Name  string // as its source names it, such as "streams rate"
	Unit  string // "events/s", "ms", "bytes", ...; "" is a plain number
	Value float64
	// Counts marks a rate of incoming events, ours among others: if nothing is
	// acknowledged, it is shown next to what was sent. Those of one session with the
	// same unit add up.
	Counts bool
	// Total marks a number that only rises, counted since its source started: its mean
	// is meaningless.
	Total bool
	// Stage marks the count of the run's events at a Stage, since the run began.
	Stage bool
}

// A Stage is a part of the way of events behind their acknowledgement, as the system counts it: such as events that a
// receiver accepted, or that it passed on.
type Stage struct {
	Name    string // "exported"
	Metrics string // its counters in Prometheus's text format, whose sum it is; * matches any text
}

// A Gauge is one figure over a run, on the run's own time axis.
type Gauge struct {
	From   string   // the source: "server", "system", "host", "generator"
	Name   string   // Figure.Name
	Unit   string   // Figure.Unit
	Counts bool     // Figure.Counts
	Total  bool     // Figure.Total
	Stage  bool     // Figure.Stage
	Before *float64 // reported before anything was sent; nil: not reported then
	After  *float64 // reported when everything was completed; nil: not reported then
	Points []Point  // one per interval, in order of time; none for an interval without an answer
	Missed uint64   // how many requests for it failed during the run, since it was first reported
}

// A Point is a gauge's value at an offset from the start of the run: the value reported
// then, or, in a long run, the mean of several neighbours that end then.
type Point struct {
	At    time.Duration
	Value float64
}

// Within returns the mean and the maximum of the points from start to end, both
// included; false without any.
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
