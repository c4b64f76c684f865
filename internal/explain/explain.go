package explain

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"
)

// The bounds of a search.
const (
	// Shifts is how many shifts of the incidents are tried. With the measured one, the smallest
	// chance that can be found is 1 in Shifts + 1.
	Shifts = 1999
	// MostChance is the largest chance of a finding, corrected for all that was tried. It is
	// below 5 %, so that at most 5 % of runs name a false cause, also where the assumption that
	// a shift changes nothing but the coincidences is not quite met.
	MostChance = 0.04
	// MostIncidents bounds the incidents of a kind that are compared: the largest.
	MostIncidents = 200
)

// A Run is what is known of a run. Times count from its start.
type Run struct {
	Start, End time.Duration // of the measurement
	Intervals  []Interval    // whole ones, in order of time
	Stalls     []Span        // times without an answer while answers were expected
	Usual      time.Duration // the usual time of an answer: see Stalls
	Causes     []Cause       // whatever was watched
}

// An Interval is one row of the series of a run.
type Interval struct {
	Start, End time.Duration
	P99        time.Duration // 0: not known
	Rate       float64       // events a second
	Due        float64       // events a second that the schedule made due; 0 without one
}

// A Span is a period of time, perhaps of no length.
type Span struct{ Start, End time.Duration }

// A Cause is something that was watched: moments, or a series of values.
type Cause struct {
	From, Name, Unit string
	// Sign is set if it shows that something went wrong rather than why, such as a timeout: it is
	// reported as what came with the incidents.
	Sign bool

	Moments []Span // with exact times; nil for a series
	Cells   []Cell // of a series, in order of time
	// Falls also looks for values that are too low; high ones always count.
	Falls bool
}

// A Cell is one value of a series, and the time that it is of.
type Cell struct {
	Start, End time.Duration
	Value      float64
}

// The kinds of incidents.
const (
	Stall = "stall"
	Spike = "spike"
	Step  = "step"
)

// An Incident is one thing to explain.
type Incident struct {
	At     time.Duration
	Length time.Duration // 0 of a step
	// Value and Usual are the 99th percentile of a spike and that of its neighbours, in seconds;
	// or the rates after and before a step, in events a second. 0 of a stall.
	Value, Usual float64
	// Scheduled is set of a step that the schedule makes: it is explained.
	Scheduled bool
	By        []int // the findings of its group that coincide with it

	near, over Span // what moments and cells must meet
}

// A Finding is a cause that coincides with incidents of a kind.
type Finding struct {
	Cause  int    // index into Run.Causes
	Change string // of a series: "peak", "dip" or "step"; "" of moments
	Hits   int    // incidents that coincide
	Of     int
	Within time.Duration // largest distance in time that counted
	// Chance is the share of shifts in which at least as clear a coincidence came about.
	// Corrected is that for the best of all causes and kinds of incidents.
	Chance, Corrected float64
	// Also is set if all that it explains is explained by a clearer finding, too.
	Also bool
}

// A Group is the incidents of one kind.
type Group struct {
	Kind      string
	Incidents []Incident // in order of time
	Left      int        // how many more there were: the smallest
	Findings  []Finding  // the clearest first
}

// Unexplained returns how many incidents no finding coincides with. Signs explain nothing.
func (g *Group) Unexplained(causes []Cause) int {
	n := 0
	for i := range g.Incidents {
		if !g.Explained(&g.Incidents[i], causes) {
			n++
		}
	}
	return n
}

// Explained reports whether an incident of the group coincides with a finding that is not a sign.
func (g *Group) Explained(in *Incident, causes []Cause) bool {
	return in.Scheduled || slices.ContainsFunc(in.By, func(f int) bool { return !causes[g.Findings[f].Cause].Sign })
}

// A Result is what was found.
type Result struct {
	Groups []Group // without those that have no incidents
	Tried  int     // causes with anything to compare
	Shifts int
	Least  float64 // the smallest chance that could be found
}

// Explain finds the incidents of a run and what coincided with them.
func Explain(r *Run) Result {
	res := Result{Shifts: Shifts, Least: 1.0 / (Shifts + 1)}
	length := r.End - r.Start
	if length <= 0 {
		return res
	}
	stalls := stalls(r)
	for _, g := range []Group{
		{Kind: Stall, Incidents: stalls},
		{Kind: Spike, Incidents: spikes(r, stalls)},
		{Kind: Step, Incidents: steps(r, stalls)},
	} {
		if len(g.Incidents) == 0 {
			continue
		}
		g.limit()
		res.Groups = append(res.Groups, g)
	}
	tau := make([]time.Duration, Shifts+1) // the first is not shifted
	rnd := rand.New(rand.NewPCG(0xe791a1, uint64(length)))
	for i := range tau[1:] {
		tau[i+1] = time.Duration(rnd.Int64N(int64(length)))
	}
	var pairs []pair
	tried := map[int]bool{}
	for g := range res.Groups {
		for c := range r.Causes {
			for _, s := range signals(&r.Causes[c], res.Groups[g].Kind, r) {
				if p, ok := compare(&res.Groups[g], s, r, tau); ok {
					p.group, p.cause = g, c
					pairs = append(pairs, p)
				}
				tried[c] = true
			}
		}
	}
	res.Tried = len(tried)
	correct(pairs)
	for i := range pairs {
		if p := &pairs[i]; p.corrected <= MostChance && p.count() > 0 {
			res.Groups[p.group].add(p)
		}
	}
	return res
}

// add adds a finding; the clearest come first.
func (g *Group) add(p *pair) {
	f := Finding{
		Cause: p.cause, Change: p.change, Hits: p.count(), Of: p.of, Within: p.within,
		Chance: p.chance, Corrected: p.corrected, Also: true,
	}
	for i, hit := range p.hit {
		in := &g.Incidents[p.index[i]]
		if hit {
			f.Also = f.Also && len(in.By) > 0
			in.By = append(in.By, len(g.Findings))
		}
	}
	g.Findings = append(g.Findings, f)
}

// limit keeps the largest incidents, in order of time.
func (g *Group) limit() {
	if len(g.Incidents) <= MostIncidents {
		return
	}
	g.Left = len(g.Incidents) - MostIncidents
	slices.SortStableFunc(g.Incidents, func(a, b Incident) int { return cmp.Compare(b.size(), a.size()) })
	g.Incidents = g.Incidents[:MostIncidents]
	slices.SortFunc(g.Incidents, func(a, b Incident) int { return cmp.Compare(a.At, b.At) })
}
