package find

import (
	"time"

	"carronade/units"
)

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
