package find

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"carronade/internal/verdict/stats"
	"carronade/units"
)

// A Use is how much of a resource a trial used, as the mean of its measurement.
type Use struct {
	Resource string  `json:"resource"`
	Used     float64 `json:"used"`
	Bound    float64 `json:"bound"` // the most that there is
	Unit     string  `json:"unit"`  // processors, bytes, bytes/s; "": a share of the time
}

const (
	// Window is the resource that counts only while answers do not get slower.
	Window = "in-flight window"
	// Busiest is the window of the connection on which it was full longest. It counts only if
	// the connections are unequal: then one of them, or what it leads to, is the limit.
	Busiest = "in-flight window of the busiest connection"
)

// A Bottleneck says which resources were at their limit at the upper end of the answer.
type Bottleneck struct {
	// Limits are the resources at their limit, the fullest first. Use was Least at the lowest
	// rate of the trials, LeastRate.
	Limits []AtLimit `json:"limits"`
	// Watched are the other resources at the upper end, the fullest first.
	Watched []Use `json:"watched"`
	// Why says why nothing can be said.
	Why string `json:"why,omitempty"`
}

// An AtLimit is a resource that was at its limit.
type AtLimit struct {
	Use
	Least     float64 `json:"least"`
	LeastRate float64 `json:"least_rate"`
}

// The rules of a bottleneck.
const (
	nearBound = 0.95 // of its bound: the resource is at its limit
	// leastRise is how much of the use must come from the load, against a use in proportion to
	// it. A machine that is busy with something else is busy at each rate.
	leastRise = 0.25
	// mostSlower is how much longer an answer may take than at the lowest rate if the window is
	// to be the limit. Where answers take longer, they wait in the system, and the window is
	// full for that reason.
	mostSlower = 1.5
	// leastUneven is how much longer the window of the busiest connection must be full than the
	// mean of all.
	leastUneven = 2
)

// loaded is what a trial used of a resource at the rate that it answered.
type loaded struct {
	rate, used float64
	service    time.Duration
}

// bottleneck finds the resources whose use rises with the load and that were at their limit
// where the limits of the search fail. It returns nil if no rate fails.
func bottleneck(history []Outcome, fails float64) *Bottleneck {
	if fails <= 0 {
		return nil
	}
	b := &Bottleneck{Limits: []AtLimit{}, Watched: []Use{}}
	trials := make([]*Outcome, 0, len(history))
	rates := map[float64]bool{}
	for i := range history {
		o := &history[i]
		switch o.Trial.Role {
		case Search, Confirm, Again, Typical:
			if o.Trial.Rate <= fails && len(o.Uses) > 0 {
				trials = append(trials, o)
				rates[o.Trial.Rate] = true
			}
		}
	}
	if len(trials) < 4 || len(rates) < 3 || !rates[fails] {
		b.Why = "too few trials to tell"
		return b
	}
	for _, name := range resources(trials) {
		points, top := pointsOf(trials, name, fails)
		if top.Bound <= 0 {
			continue
		}
		low := slices.MinFunc(points, func(a, b loaded) int { return cmp.Compare(a.rate, b.rate) })
		switch {
		case name == Busiest && !uneven(trials, &top, fails): // it says no more than the mean of all
		case top.Used < nearBound*top.Bound, !rises(points), name == Window && slower(points):
			b.Watched = append(b.Watched, top)
		default:
			b.Limits = append(b.Limits, AtLimit{Use: top, Least: low.used, LeastRate: low.rate})
		}
	}
	slices.SortStableFunc(b.Watched, func(a, b Use) int { return cmp.Compare(b.share(), a.share()) })
	slices.SortStableFunc(b.Limits, func(a, b AtLimit) int { return cmp.Compare(b.share(), a.share()) })
	return b
}

func (u *Use) share() float64 { return u.Used / u.Bound }

// resources are the names of all resources, in the order of their first use.
func resources(trials []*Outcome) (names []string) {
	for _, o := range trials {
		for i := range o.Uses {
			if name := o.Uses[i].Resource; !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// pointsOf are the uses of a resource by the rate answered, and the use at the rate that fails:
// the mean of its trials by their length.
func pointsOf(trials []*Outcome, name string, fails float64) (points []loaded, top Use) {
	var used, weight float64
	for _, o := range trials {
		i := slices.IndexFunc(o.Uses, func(u Use) bool { return u.Resource == name })
		if i < 0 {
			continue
		}
		u := &o.Uses[i]
		points = append(points, loaded{rate: o.Achieved, used: u.Used, service: o.Service})
		if o.Trial.Rate == fails {
			w := o.Trial.Measure.Seconds()
			used, weight = used+w*u.Used, weight+w
			top = *u
		}
	}
	if weight > 0 {
		top.Used = used / weight
	}
	return points, top
}

// rises reports whether the use of a resource follows the load: by least squares, the slope is
// three times its error, and large enough.
func rises(points []loaded) bool {
	if len(points) < 4 {
		return false
	}
	line, ok := stats.FitLine(len(points), func(i int) (x, y float64) { return points[i].rate, points[i].used })
	var rate, used float64
	for _, p := range points {
		rate, used = rate+p.rate, used+p.used
	}
	return ok && line.Slope > 3*line.Error && line.Slope >= leastRise*used/rate
}

// uneven reports whether the busiest connection's window was full much longer than the mean.
func uneven(trials []*Outcome, busiest *Use, fails float64) bool {
	_, mean := pointsOf(trials, Window, fails)
	return busiest.share() > leastUneven*mean.Used // its bound is 1
}

// slower reports whether answers took much longer at the highest rate than at the lowest.
func slower(points []loaded) bool {
	by := func(a, b loaded) int { return cmp.Compare(a.rate, b.rate) }
	low, high := slices.MinFunc(points, by), slices.MaxFunc(points, by)
	return low.service <= 0 || float64(high.service) > mostSlower*float64(low.service)
}

// Text is the bottleneck in words.
func (b *Bottleneck) Text() string {
	if b.Why != "" {
		return b.Why
	}
	var parts []string
	for i := range b.Limits {
		l := &b.Limits[i]
		least := Use{Used: l.Least, Bound: l.Bound}
		parts = append(parts, fmt.Sprintf("%s, %s at %s", l.text(), units.FormatPercent(least.share()), units.FormatRate(l.LeastRate)))
	}
	if len(parts) > 0 {
		return strings.Join(parts, "; ")
	}
	if len(b.Watched) == 0 {
		return "nothing was watched"
	}
	const most = 3
	for i := range b.Watched[:min(most, len(b.Watched))] {
		parts = append(parts, b.Watched[i].text())
	}
	return "nothing that was watched was at its limit because of the load; the fullest: " + strings.Join(parts, "; ")
}

// text is a use in words: "processors of the system 98% of 2".
func (u *Use) text() string {
	text := u.Resource + " " + units.FormatPercent(u.share())
	switch u.Unit {
	case "processors":
		text += " of " + strconv.FormatFloat(u.Bound, 'g', 3, 64)
	case "bytes":
		text += " of " + units.FormatSize(int64(u.Bound))
	case "bytes/s":
		text += " of " + units.FormatSize(int64(u.Bound)) + "/s"
	}
	return text
}
