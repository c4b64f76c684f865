package explain

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// The bounds of a search.
const (
	// Shifts is how many shifts of the incidents are tried. With the measured one, the smallest
	// chance that can be found is 1 in Shifts + 1.
	Shifts = 1999
	least  = 1.0 / (Shifts + 1)
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
	// Mean is set if each value is the mean over its cell, such as a rate by a counter: then a value
	// between two levels shows when in its cell the level changed. Others are readings at its end.
	Mean bool
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

	near, over Span          // what moments and cells must meet
	off        time.Duration // of a step: the error of At
}

// A Finding is a cause that coincides with incidents of a kind.
type Finding struct {
	Cause  int    // index into Run.Causes
	Change string // of a series: "peak", "dip" or "step"; "" of moments
	Hits   int    // incidents that coincide
	Of     int
	Within time.Duration // largest distance in time that counted
	// Chance is the share of shifts in which at least as clear a coincidence came about.
	// Corrected is that for the best of all causes, times the number of kinds of incidents.
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
	// Needed is set if the run was too short: how long it must be, about, so that a series of
	// readings can be named that changes once with each incident. It assumes that nothing else
	// changes in the longer run.
	Needed time.Duration

	among Span          // the part of the measurement in which such incidents are found
	lasts time.Duration // the shortest level beside a step
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
	Least  float64 // the smallest corrected chance that could be found
}

// Explain finds the incidents of a run and what coincided with them.
func Explain(r *Run) Result {
	res := Result{Shifts: Shifts, Least: least}
	length := r.End - r.Start
	if length <= 0 {
		return res
	}
	stalls, whole := stalls(r), Span{r.Start, r.End}
	steps, lasts := steps(r, stalls)
	for _, g := range []Group{
		{Kind: Stall, Incidents: stalls, among: whole},
		{Kind: Spike, Incidents: spikes(r, stalls), among: whole},
		{Kind: Step, Incidents: steps, among: inside(r), lasts: lasts},
	} {
		if len(g.Incidents) == 0 {
			continue
		}
		g.limit()
		res.Groups = append(res.Groups, g)
	}
	shares := make([]float64, Shifts+1) // of the time around; the first is not shifted
	rnd := rand.New(rand.NewPCG(0xe791a1, uint64(length)))
	for i := range shares[1:] {
		shares[i+1] = float64(rnd.Int64N(int64(length))) / float64(length)
	}
	slices.Sort(shares)
	pairs := make([][]pair, len(res.Groups))
	tried := map[int]bool{}
	kinds := 0
	for i := range res.Groups {
		g := &res.Groups[i]
		tau := make([]time.Duration, len(shares))
		for k, x := range shares {
			tau[k] = time.Duration(x * float64(g.among.End-g.among.Start))
		}
		for c := range r.Causes {
			for _, s := range signals(&r.Causes[c], g, r) {
				if p, ok := compare(g, s, tau); ok {
					p.cause = c
					pairs[i] = append(pairs[i], p)
				}
				tried[c] = true
			}
		}
		if len(pairs[i]) > 0 {
			kinds++
		}
	}
	res.Tried = len(tried)
	res.Least = least * float64(max(1, kinds))
	for i := range res.Groups {
		g := &res.Groups[i]
		most := correct(pairs[i], kinds)
		for k := range pairs[i] {
			if p := &pairs[i][k]; p.corrected <= MostChance && p.count() > 0 {
				g.add(p)
			}
		}
		if g.Unexplained(r.Causes) > 0 {
			g.Needed = g.needed(most, max(1, kinds), r)
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

// needed returns how long a run must be so that a series can be named which changes once within an
// interval for each incident, and coincides with all; 0 if this run is long enough, or no series was
// watched. By chance some signal is as clear at some shifts (most has the best scores), and that series itself at
// others. Both shares fall at least as fast as a run gets longer in which nothing else changes.
func (g *Group) needed(most []float64, kinds int, r *Run) time.Duration {
	if len(r.Intervals) == 0 || !slices.ContainsFunc(r.Causes, func(c Cause) bool { return len(c.Cells) > 0 }) {
		return 0
	}
	of, near := 0, time.Duration(0)
	for i := range g.Incidents {
		if in := &g.Incidents[i]; !in.Scheduled {
			of++
			near += in.over.End - in.over.Start
		}
	}
	length, width := g.among.End-g.among.Start, r.Intervals[0].End-r.Intervals[0].Start
	ideal := tails(of, min(1, float64(width+near/time.Duration(of))/float64(length)))[of]
	n := 1
	for i := 1; i < len(most); i++ {
		if most[i] >= ideal-same {
			n++
		}
	}
	chance := float64(kinds) * (float64(n)*least + math.Exp(-ideal))
	if chance <= MostChance {
		return 0
	}
	return time.Duration(float64(length)*chance/MostChance) + r.End - r.Start - length
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
