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
	// shiftCount is how many shifts of the incidents are tried. With the measured one, the smallest
	// chance that can be found is 1 in shiftCount + 1.
	shiftCount = 1999
	least      = 1.0 / (shiftCount + 1)
	// mostChance is the largest chance of a finding, corrected for all that was tried. It is
	// below 5 %, so that at most 5 % of runs name a false cause, also where the assumption that
	// a shift changes nothing but the coincidences is not quite met.
	mostChance = 0.04
	// mostIncidents bounds the incidents of a kind that are compared: the largest.
	mostIncidents = 200
)

// An input is what is known of a run. Times count from its start.
type input struct {
	Start, End time.Duration // of the measurement
	Intervals  []interval    // whole ones, in order of time
	Stalls     []span        // times without an answer while answers were expected
	Usual      time.Duration // the usual time of an answer: see Stalls
	Causes     []cause       // whatever was watched
}

// An interval is one row of the series of a run.
type interval struct {
	Start, End time.Duration
	P99        time.Duration // 0: not known
	Rate       float64       // events a second
	Due        float64       // events a second that the schedule made due; 0 without one
}

// A span is a period of time, perhaps of no length.
type span struct{ Start, End time.Duration }

// A cause is something that was watched: moments, or a series of values.
type cause struct {
	From, Name, Unit string
	// Sign is set if it shows that something went wrong rather than why, such as a timeout: it is
	// reported as what came with the incidents.
	Sign bool

	Moments []span // with exact times; nil for a series
	Cells   []cell // of a series, in order of time
	// Mean is set if each value is the mean over its cell, such as a rate by a counter: then a value
	// between two levels shows when in its cell the level changed. Others are readings at its end.
	Mean bool
	// Falls also looks for values that are too low; high ones always count.
	Falls bool
}

// A cell is one value of a series, and the time that it is of.
type cell struct {
	Start, End time.Duration
	Value      float64
}

// The kinds of incidents.
const (
	stall = "stall"
	spike = "spike"
	step  = "step"
)

// An incident is one thing to explain.
type incident struct {
	At     time.Duration
	Length time.Duration // 0 of a step
	// Value and Usual are the 99th percentile of a spike and that of its neighbours, in seconds;
	// or the rates after and before a step, in events a second. 0 of a stall.
	Value, Usual float64
	// Scheduled is set of a step that the schedule makes: it is explained.
	Scheduled bool
	By        []int // the findings of its group that coincide with it

	near, over span          // what moments and cells must meet
	off        time.Duration // of a step: the error of At
}

// A finding is a cause that coincides with incidents of a kind.
type finding struct {
	Cause  int    // index into the causes of the input
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

// A group is the incidents of one kind.
type group struct {
	Kind      string
	Incidents []incident // in order of time
	Left      int        // how many more there were: the smallest
	Findings  []finding  // the clearest first
	// Needed is set if the run was too short: how long it must be, about, so that a series of
	// readings can be named that changes once with each incident. It assumes that nothing else
	// changes in the longer run.
	Needed time.Duration

	among span          // the part of the measurement in which such incidents are found
	lasts time.Duration // the shortest level next to a step
}

// Unexplained returns how many incidents no finding coincides with. Signs explain nothing.
func (g *group) Unexplained(causes []cause) int {
	n := 0
	for i := range g.Incidents {
		if !g.Explained(&g.Incidents[i], causes) {
			n++
		}
	}
	return n
}

// Explained reports whether an incident of the group coincides with a finding that is not a sign.
func (g *group) Explained(in *incident, causes []cause) bool {
	return in.Scheduled || slices.ContainsFunc(in.By, func(f int) bool { return !causes[g.Findings[f].Cause].Sign })
}

// A result is what was found.
type result struct {
	Groups []group // without those that have no incidents
	Tried  int     // causes with anything to compare
	Shifts int
	Least  float64 // the smallest corrected chance that could be found
}

// coincidences finds the incidents of a run and what coincided with them.
func coincidences(r *input) result {
	res := result{Shifts: shiftCount, Least: least}
	length := r.End - r.Start
	if length <= 0 {
		return res
	}
	stalls, whole := stalls(r), span{r.Start, r.End}
	steps, lasts := steps(r, stalls)
	for _, g := range []group{
		{Kind: stall, Incidents: stalls, among: whole},
		{Kind: spike, Incidents: spikes(r, stalls), among: whole},
		{Kind: step, Incidents: steps, among: inside(r), lasts: lasts},
	} {
		if len(g.Incidents) == 0 {
			continue
		}
		g.limit()
		res.Groups = append(res.Groups, g)
	}
	shares := make([]float64, shiftCount+1) // of the time around; the first is not shifted
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
			if p := &pairs[i][k]; p.corrected <= mostChance && p.count() > 0 {
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
func (g *group) add(p *pair) {
	f := finding{
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
func (g *group) needed(most []float64, kinds int, r *input) time.Duration {
	if len(r.Intervals) == 0 || !slices.ContainsFunc(r.Causes, func(c cause) bool { return len(c.Cells) > 0 }) {
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
	if chance <= mostChance {
		return 0
	}
	return time.Duration(float64(length)*chance/mostChance) + r.End - r.Start - length
}

// limit keeps the largest incidents, in order of time.
func (g *group) limit() {
	if len(g.Incidents) <= mostIncidents {
		return
	}
	g.Left = len(g.Incidents) - mostIncidents
	slices.SortStableFunc(g.Incidents, func(a, b incident) int { return cmp.Compare(b.size(), a.size()) })
	g.Incidents = g.Incidents[:mostIncidents]
	slices.SortFunc(g.Incidents, func(a, b incident) int { return cmp.Compare(a.At, b.At) })
}
