package compat

import (
	"context"

	"carronade/internal/system"
)

// NoReport returns the exit code and the error of a run without a report: the given ones,
// unless an interrupt ended it, which is not an error.
func NoReport(ctx context.Context, code int, err error) (int, error) {
	if ctx.Err() != nil {
		return system.ExitInterrupted, nil //nolint:nilerr // see above
	}
	return code, err
}

// WithLost returns the exit code of a run that lost a number of events: the given one, or a
// worse one if there are any.
func WithLost(code int, lost uint64) int {
	if lost > 0 {
		return system.WorseExit(code, system.ExitBroken)
	}
	return code
}
