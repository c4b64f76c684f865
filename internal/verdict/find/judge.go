package find

import (
	"fmt"
	"math"
	"time"

	"github.com/aclements/go-moremath/mathx"

	"carronade/internal/verdict/stats"
	"carronade/measure"
	"carronade/units"
)

// A Result is what a trial says of its rate.
type Result string

// The results.
const (
	Pass      Result = "holds"
	Fail      Result = "fails"
	Undecided Result = "undecided"
	Invalid   Result = "invalid" // it says nothing of the system
)

// A Verdict is a result with its reason.
type Verdict struct {
	Result Result `json:"result"`
	Why    string `json:"why"`
	// Growing means that the backlog grew: the rate is above what the system can do at all.
	Growing bool `json:"growing,omitempty"`
	// Share is the part of the events that were late for the limit that decided, with its
	// interval, and what the limit allows.
	Share   float64 `json:"share"`
	Least   float64 `json:"least"`
	Most    float64 `json:"most"`
	Allowed float64 `json:"allowed"`
}

// near reports whether a trial of the same length again is likely to decide.
func (v *Verdict) near() bool {
	const part = 1.4 // the interval narrows by the square root of two
	return v.Most <= part*v.Allowed || v.Least*part >= v.Allowed
}

// The confidence of the ends of the interval of a share, one-sided. Only what confirms must be
// sure; other trials need only be right more often than not. A confirmation looks at its whole time
// and, if that does not decide, once more: the two looks share 5 %. A rate that failed gets the
// smaller part.
const (
	likely    = 0.6
	confident = 0.97
	surer     = 0.98
)

// wholeTime is the number of trials in which a confirmation takes its whole time (see parts).
const wholeTime = 2

func confidence(outcomes []Outcome, again bool) float64 {
	switch r := outcomes[0].Trial.Role; {
	case r != Confirm && r != Soak:
		return likely
	case again || len(outcomes) > wholeTime:
		return surer
	}
	return confident
}

// Judge judges trials of one rate together.
func (o *Options) Judge(outcomes ...Outcome) Verdict { return o.judge(outcomes, false) }

// Late is the share of the events of a trial that were late for limit k, with its interval.
func (o *Options) Late(k int, outcome Outcome) (share, least, most float64) {
	v := o.lateShare([]Outcome{outcome}, k, outcome.Trial.Relax, false, false)
	return v.Share, v.Least, v.Most
}

// judge judges trials of one rate together. again: an earlier confirmation of the rate failed.
func (o *Options) judge(outcomes []Outcome, again bool) Verdict {
	relax := outcomes[0].Trial.Relax
	for i := range outcomes {
		switch one := &outcomes[i]; {
		case one.Dead != "":
			return Verdict{Result: Fail, Why: one.Dead}
		case one.Generator != "":
			return Verdict{Result: Invalid, Why: one.Generator}
		case one.Trust == measure.NotTrusted:
			return Verdict{Result: Invalid, Why: notTrusted(one)}
		case one.Broken != "":
			return Verdict{Result: Fail, Why: one.Broken}
		case one.Unclear != "":
			return Verdict{Result: Undecided, Why: one.Unclear}
		case one.events() == 0:
			return Verdict{Result: Undecided, Why: "nothing was due"}
		}
	}
	last := &outcomes[len(outcomes)-1]
	if why := o.growing(last); why != "" && last.Doubt != "" {
		return Verdict{Result: Invalid, Why: why + ", and the generator may be the cause: " + last.Doubt}
	} else if why != "" {
		return Verdict{Result: Fail, Why: why, Growing: true}
	}
	worst := Verdict{Result: Pass, Why: "all limits hold"}
	for k := range o.Times {
		v := o.lateShare(outcomes, k, relax, again, false)
		if least := o.lateShare(outcomes, k, relax, again, true); least.Result != v.Result {
			v = Verdict{Result: Invalid, Why: fmt.Sprintf("%s is decided by what the generator may have added", o.Times[k].Name)}
		}
		if rank(v.Result) > rank(worst.Result) || k == 0 && v.Result == worst.Result {
			worst = v
		}
	}
	return worst
}

// rank orders results: one that fails decides, then one that says nothing.
func rank(r Result) int {
	switch r {
	case Fail:
		return 3
	case Invalid:
		return 2
	case Undecided:
		return 1
	}
	return 0
}

// growing says how the backlog grew during a trial, or nothing.
//
// A slope alone is not sufficient, because the length of a queue changes slowly: the growth must
// also be large, a hundredth of what was sent, or a backlog of more than the limit at the end.
func (o *Options) growing(t *Outcome) string {
	n := len(t.Slots)
	if n < 4 {
		return ""
	}
	width := t.Trial.Slot.Seconds()
	line, _ := stats.FitLine(n, func(i int) (x, y float64) { return (float64(i) + 1) * width, float64(t.Slots[i].Waiting) })
	if line.Slope <= 3*line.Error || line.Slope <= 0 {
		return ""
	}
	if !o.large(float64(t.Slots[n-1].Waiting), t.Achieved, 0) && !o.large(line.Slope*float64(n)*width, 0, t.events()) {
		return ""
	}
	if t.Slowest != "" {
		return "the backlog of group " + t.Slowest + " grows by " + units.FormatRate(line.Slope)
	}
	return "the backlog grows by " + units.FormatRate(line.Slope)
}

// large reports whether a backlog matters: it is more than the shortest limit of work at the rate
// that is answered, or more than a hundredth of the events that were sent. A rate or a number of
// events of 0 leaves that part out.
func (o *Options) large(backlog, answered float64, sent uint64) bool {
	limit := math.Inf(1)
	for _, l := range o.Times {
		limit = min(limit, l.Within.Seconds())
	}
	return answered > 0 && backlog > limit*answered || sent > 0 && backlog > 0.01*float64(sent)
}

// lateShare judges the share of events that were late for limit k.
func (o *Options) lateShare(outcomes []Outcome, k int, relax time.Duration, again, least bool) Verdict {
	limit := o.Times[k]
	c := clusters{}
	for i := range outcomes {
		c.add(&outcomes[i], k, relax, least)
	}
	b := limit.allowed()
	v := Verdict{Share: c.share(), Allowed: b}
	v.Least, v.Most = c.bounds(relax, confidence(outcomes, again))
	switch {
	case b == 0 && c.late > 0:
		v.Result, v.Why = Fail, fmt.Sprintf("%s events took longer than %s", units.FormatCount(uint64(c.late)), units.FormatDuration(limit.Within))
	case b == 0:
		v.Result, v.Why = Pass, "no event took longer than "+units.FormatDuration(limit.Within)
	case v.Most <= b:
		v.Result, v.Why = Pass, longerText(v.Share, limit)
	case v.Least > b:
		v.Result, v.Why = Fail, longerText(v.Share, limit)
	default:
		v.Result, v.Why = Undecided, fmt.Sprintf("%s (%.3g %% to %.3g %% with its error)", longerText(v.Share, limit), 100*v.Least, 100*v.Most)
	}
	return v
}

func longerText(share float64, l TimeLimit) string {
	return fmt.Sprintf("%.3g %% took longer than %s", 100*share, units.FormatDuration(l.Within))
}

// clusters sums late events over blocks of time. Blocks are as long as the system remembers,
// so that they are nearly independent, and a share's error comes from the blocks.
type clusters struct {
	events, late, squares float64
	rate                  float64
}

func (c *clusters) add(o *Outcome, k int, relax time.Duration, least bool) {
	per := max(1, int(math.Ceil(relax.Seconds()/o.Trial.Slot.Seconds())))
	block := 0.0
	for i := range o.Slots {
		s := &o.Slots[i]
		over := s.Over
		if least && s.OverLeast != nil {
			over = s.OverLeast
		}
		c.events += float64(s.Events)
		block += float64(over[k])
		if (i+1)%per == 0 || i+1 == len(o.Slots) {
			c.late += block
			c.squares += block * block
			block = 0
		}
	}
	c.rate = max(c.rate, o.Trial.Rate)
}

// bounds is the interval of the share. The number of clusters is taken as Poisson distributed:
// n clusters of a mean size say as much as the blocks with their different sizes when
// n = late^2/squares. A trial that confirms sees few clusters, and small ones are the most frequent,
// so what it saw of their sizes is too small more often than not. Clusters of theory are added to it.
// A trial of the search adds none, because it is too short for them.
func (c *clusters) bounds(relax time.Duration, confidence float64) (least, most float64) {
	late, squares, none := 1.0, 1.0, 1.0
	if confidence > likely {
		mean := min(max(c.rate*relax.Seconds()/4, 1), c.events)
		late, squares, none = addedClusters*mean, addedClusters*sizesVary*mean*mean, noneLate
	}
	size := (c.squares + squares) / (c.late + late)
	if c.late > 0 {
		least = gammaQuantile(c.late/size, 1-confidence) * size / c.events
	}
	most = gammaQuantile(c.late/size+none, confidence) * size / c.events
	return min(least, 1), min(most, 1)
}

// What theory says of the sizes of clusters. A long queue is like a Brownian motion with a drift
// down. The time t that it spends above a level has the transform 2/(1+sqrt(1+4s)) of s times its
// mean, so its mean square is four squared means.
const (
	sizesVary     = 4
	addedClusters = 2
	// noneLate is the shape with which a trial without late events has the bound of a number of
	// clusters that is 0: three and a half clusters of the mean size.
	noneLate = 0.1015
)

// share is the part of the events that were late, and spread its standard error.
func (c *clusters) share() float64  { return c.late / max(c.events, 1) }
func (c *clusters) spread() float64 { return math.Sqrt(c.squares) / max(c.events, 1) }

// gammaQuantile is the value that a gamma distributed number with this shape and scale 1 stays
// below with probability p. It bounds the mean of a Poisson distributed number.
func gammaQuantile(shape, p float64) float64 {
	if shape > 50 { // Wilson and Hilferty, exact to a thousandth there
		z := math.Sqrt2 * math.Erfinv(2*p-1)
		return shape * math.Pow(1-1/(9*shape)+z/(3*math.Sqrt(shape)), 3)
	}
	lo, hi := 0.0, shape+10*math.Sqrt(shape)+20
	for range 60 {
		mid := (lo + hi) / 2
		if mathx.GammaInc(shape, mid) < p {
			lo = mid
		} else {
			hi = mid
		}
	}
	return (lo + hi) / 2
}
