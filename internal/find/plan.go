package find

import (
	"fmt"
	"time"

	"carronade/units"
)

// A Plan is what a search takes at its estimated capacity.
type Plan struct {
	Capacity float64 // events a second
	Wanted   float64 // the precision that was asked for
	Takes    time.Duration
	Budget   time.Duration
	Allows   float64 // the precision that the budget allows
}

// Planned returns the plan of the search with this history, nil before its capacity is known.
func (o *Options) Planned(history []Outcome) *Plan {
	s := search{Options: o, history: history}
	_ = s.run()
	if s.timing.precision == 0 {
		return nil
	}
	return &Plan{Capacity: s.estimate, Wanted: o.Precision, Takes: o.suffices(s.estimate, o.Precision), Budget: o.Budget, Allows: s.timing.precision}
}

func (p *Plan) String() string {
	text := fmt.Sprintf("at about %s, a precision of %s takes %s", units.FormatRate(p.Capacity), units.FormatPercent(p.Wanted), budgetText(p.Takes))
	if p.Allows > p.Wanted {
		text += fmt.Sprintf("; the budget of %s allows %s", units.FormatDuration(p.Budget), units.FormatPercent(p.Allows))
	}
	return text
}

// suffices is a budget that suffices for a precision, at most a twentieth more than is needed.
func (o *Options) suffices(capacity, precision float64) time.Duration {
	const least, most = time.Second, 10_000 * time.Hour
	with := *o
	for with.Budget = least; with.Budget < most; with.Budget += with.Budget / 20 {
		if t := with.timingFor(capacity, precision); with.whole(&t) <= with.Budget {
			break
		}
	}
	return with.Budget
}

// budgetText is a budget that suffices, rounded up: to a second, above ten minutes to a minute.
func budgetText(b time.Duration) string {
	step := time.Second
	if b > 10*time.Minute {
		step = time.Minute
	}
	return units.FormatDuration((b + step - 1).Truncate(step))
}
