package explain

import (
	"fmt"
	"math"
	"slices"

	"carronade/internal/report"
)

// Schema is the version of the document. New fields keep the number; changed or removed ones
// increase it.
const Schema = "carronade.explain/1"

// An Explanation says what coincided with the incidents of a report. Times are seconds from the
// start of the run, chances parts of one.
type Explanation struct {
	Schema string  `json:"schema"`
	ID     string  `json:"id"`
	Target string  `json:"target"`
	Op     string  `json:"op"`
	StartS float64 `json:"start_s"` // of the measurement
	EndS   float64 `json:"end_s"`
	// Nothing says why there is nothing to explain; "" if there is.
	Nothing    string     `json:"nothing,omitempty"`
	Groups     []Group    `json:"groups"`
	Watched    []Watched  `json:"watched"`
	NotWatched []Missing  `json:"not_watched"`
	Indexing   *Diagnosis `json:"indexing,omitempty"` // of documents that are missing in the store behind
	Method     Method     `json:"method"`

	intervalS float64 // usual distance of two values
}

// A Group has the incidents of one kind.
type Group struct {
	Kind        string     `json:"kind"` // stall, spike, step
	Incidents   []Incident `json:"incidents"`
	Left        int        `json:"left"` // smaller ones that were not compared
	Findings    []Finding  `json:"findings"`
	Unexplained int        `json:"unexplained"`
	// NeededS is how long a run must be, about, so that a series that changes once with each of
	// these incidents can be named; absent if this run is long enough.
	NeededS float64 `json:"needed_s,omitempty"`
}

// An Incident is one stall, spike or step.
type Incident struct {
	AtS         float64  `json:"at_s"`
	LengthS     float64  `json:"length_s"`
	P99US       *float64 `json:"p99_us,omitempty"`       // of a spike
	UsualUS     *float64 `json:"usual_us,omitempty"`     // of its neighbours
	BeforePerS  *float64 `json:"before_per_s,omitempty"` // of a step: events/s
	AfterPerS   *float64 `json:"after_per_s,omitempty"`
	Scheduled   bool     `json:"scheduled"` // the schedule makes it
	Explained   bool     `json:"explained"`
	AloneS      float64  `json:"unconnected_s,omitempty"` // of a stall: how long a client had no connection in it
	FrozenS     float64  `json:"frozen_s,omitempty"`      // of a stall: how long the generator was frozen in it
	Coincidence []int    `json:"findings"`                // of its group, by their place

	freezes int // that overlap it
}

// A Finding is something that was watched and that coincided.
type Finding struct {
	From      string  `json:"from"`
	Name      string  `json:"name"`
	Change    string  `json:"change"` // of a series: peak, dip, step
	Sign      bool    `json:"sign"`   // it came with the incidents, rather than from them
	Hits      int     `json:"hits"`
	Of        int     `json:"of"`
	WithinS   float64 `json:"within_s"`
	Chance    float64 `json:"chance"`
	Corrected float64 `json:"corrected_chance"`
	Also      bool    `json:"also"` // a clearer finding coincides with the same incidents
	Text      string  `json:"text"`
}

// A Watched is something that the report has over time.
type Watched struct {
	From     string `json:"from"`
	Name     string `json:"name"`
	Unit     string `json:"unit"`
	Moments  int    `json:"moments"` // how many, with exact times
	Values   int    `json:"values"`  // of a series
	NotTried string `json:"not_compared,omitempty"`
}

// A Missing is something that would help and that the report does not have.
type Missing struct {
	What string `json:"what"`
	Way  string `json:"way"` // the flag that would watch it, or why it cannot be
}

// A Method says how chances were found.
type Method struct {
	Shifts      int     `json:"shifts"`
	LeastChance float64 `json:"least_chance"` // that can be found
	MostChance  float64 `json:"most_chance"`  // of a finding
	Compared    int     `json:"compared"`
}

// Explain explains a report of a run.
func Explain(d *report.Document) *Explanation {
	r, watched := inputOf(d)
	res := coincidences(&r)
	x := &Explanation{
		Schema: Schema, ID: d.ID, Target: d.Target, Op: d.Op, StartS: r.Start.Seconds(), EndS: r.End.Seconds(),
		Groups: []Group{}, Watched: append([]Watched{}, watched...), NotWatched: missing(d), Indexing: indexing(d),
		Method: Method{Shifts: res.Shifts, LeastChance: res.Least, MostChance: mostChance, Compared: len(r.Causes)},
	}
	if n := len(r.Intervals); n > 0 {
		x.intervalS = (r.Intervals[0].End - r.Intervals[0].Start).Seconds()
	}
	for i := range res.Groups {
		g := groupOf(&res.Groups[i], &r)
		if n := len(d.Stall.Spans); g.Kind == stall && len(g.Incidents)+g.Left == n && d.Stall.Count > uint64(n) {
			g.Left += int(d.Stall.Count) - n // a report has the longest only
		}
		x.Groups = append(x.Groups, g)
	}
	switch {
	case len(d.Intervals) == 0:
		x.Nothing = "the report has no series: nothing shows when anything happened"
	case len(r.Intervals) == 0:
		x.Nothing = "the report has no interval of a measurement"
	case len(x.Groups) == 0:
		x.Nothing = "the run had no stall, no spike of p99 and no step in throughput"
		if !slices.ContainsFunc(r.Intervals, func(iv interval) bool { return iv.P99 > 0 }) {
			x.Nothing = "the run had no stall and no step in throughput; its intervals have no p99, so spikes are not known"
		}
		if len(r.Intervals) < leastValues {
			x.Nothing = fmt.Sprintf("the run had no stall, and is too short to show spikes or steps (%d intervals, at least %d are needed)", len(r.Intervals), leastValues)
		}
	}
	return x
}

func groupOf(g *group, r *input) Group {
	out := Group{Kind: g.Kind, Left: g.Left, Incidents: []Incident{}, Findings: []Finding{}, Unexplained: g.Unexplained(r.Causes), NeededS: rounded(g.Needed.Seconds())}
	for i := range g.Incidents {
		in := &g.Incidents[i]
		o := Incident{
			AtS: in.At.Seconds(), LengthS: in.Length.Seconds(), Scheduled: in.Scheduled,
			Explained: g.Explained(in, r.Causes), Coincidence: append([]int{}, in.By...),
		}
		switch value, usual := in.Value, in.Usual; g.Kind {
		case stall:
			o.AloneS, _ = overlap(in.over, r.Causes, "client", noConnection)
			o.FrozenS, o.freezes = overlap(in.over, r.Causes, "generator", "freeze")
		case spike:
			value, usual = value*1e6, usual*1e6
			o.P99US, o.UsualUS = &value, &usual
		case step:
			o.BeforePerS, o.AfterPerS = &usual, &value
		}
		out.Incidents = append(out.Incidents, o)
	}
	for _, f := range g.Findings {
		c := &r.Causes[f.Cause]
		o := Finding{
			From: c.From, Name: c.Name, Change: f.Change, Sign: c.Sign, Hits: f.Hits, Of: f.Of,
			WithinS: f.Within.Seconds(), Chance: f.Chance, Corrected: f.Corrected, Also: f.Also,
		}
		o.Text = o.sentence(g.Kind)
		out.Findings = append(out.Findings, o)
	}
	return out
}

// noConnection is the name of the times without a connection.
const noConnection = "no connection"

// overlap returns for how long moments of a name overlap a stall, and how many do. One overlap may be chance, so it is
// no finding. But without a connection, or while it was frozen, the generator received no answer.
func overlap(s span, causes []cause, from, name string) (sum float64, n int) {
	i := slices.IndexFunc(causes, func(c cause) bool { return c.From == from && c.Name == name })
	if i < 0 {
		return 0, 0
	}
	until := s.Start // those of several machines or clients may overlap
	for _, f := range within(inOrder(causes[i].Moments), s) {
		if f.End > f.Start {
			n++
		}
		sum += max(0, f.End-max(f.Start, until)).Seconds()
		until = max(until, f.End)
	}
	return sum, n
}

// rounded rounds a length up to five seconds.
func rounded(s float64) float64 { return 5 * math.Ceil(s/5) }

// missing lists what the report does not have, with the flag that would watch it.
func missing(d *report.Document) []Missing {
	out := []Missing{}
	has := func(from, name string) bool {
		for i := range d.Gauges {
			if g := &d.Gauges[i]; g.From == from && (name == "" || g.Name == name) {
				return true
			}
		}
		return false
	}
	add := func(absent bool, what, way string) {
		if absent {
			out = append(out, Missing{what, way})
		}
	}
	system := has("system", "CPU") || has("system", "RSS")
	add(!system, "the system's processes and their page faults", "--system-pid PID, --system-container NAME or --system-cmd COMMAND")
	add(!has("system", "GC pauses"), "the pauses of a JVM's collector", "--system-gc-log FILE, or --system-jvm-gc with --system-cmd")
	own := false
	for i := range d.Gauges {
		g := &d.Gauges[i]
		own = own || g.From == "server" || g.From == "system" && !processGauges[g.Name]
	}
	add(!own, "the system's own metrics", "--system-metrics URL (Prometheus) or --system-vars URL (expvar)")
	switch {
	case !has("host", ""):
		add(true, "this machine: processors, steal, pressure, page-outs, disks", "only on Linux")
	default:
		add(!has("host", "I/O pressure"), "pressure (PSI) of this machine", "its kernel does not have it")
		add(!has("host", "page faults"), "page faults and page-outs of this machine", "the report is of an older version, or its kernel does not show them")
		add(!has("host", "throttled"), "throttling of this program", "its control group has no processor limit")
	}
	add(d.Faults == nil, "faults that you make", "--marks, and carronade mark RUN fault NAME")
	add(true, "machines other than this one", "run carronade on them, or read their metrics with --system-metrics")
	return out
}

// processGauges are the gauges of the system that describe its processes and its collector.
var processGauges = map[string]bool{
	"RSS": true, "PSS": true, "CPU": true, "processes": true, "threads": true, "open files": true, "disk read": true, "disk written": true,
	"read": true, "written": true, "received": true, "sent": true, "page faults": true,
	"GC pauses": true, "GC pause time": true, "GC pause longest": true, "heap after GC": true,
}
