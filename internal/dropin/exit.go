package dropin

import (
	"context"

	"carronade/internal/host"
)

// NoReport returns the exit code and the error of a run without a report: the given ones,
// unless an interrupt ended it, which is not an error.
func NoReport(ctx context.Context, code int, err error) (int, error) {
	if ctx.Err() != nil {
		return host.ExitInterrupted, nil //nolint:nilerr // see above
	}
	return code, err
}

// WithLost returns the exit code of a run that lost a number of events: the given one, or a
// worse one if there are any.
func WithLost(code int, lost uint64) int {
	if lost > 0 {
		return host.WorseExit(code, host.ExitBroken)
	}
	return code
}

// ExitCode is the exit code of carronade for a tool's: a run that is only not trusted ends as in the tool,
// which does not know that, unless --exit-on-distrust is given. A line on stderr says it.
func (o *Common) ExitCode(code int, err error) int {
	if code == host.ExitUntrusted && err == nil && !o.ExitOnDistrust {
		return host.ExitOK
	}
	return code
}
