package measure

import "time"

// A Level rates how far the generator may have influenced the results.
type Level string

// The levels, from best to worst.
const (
	Trusted    Level = "trusted"
	Noisy      Level = "noisy"       // the possible influence is within a bound that the report states
	NotTrusted Level = "not trusted" // beyond that bound, or not known
)

// The allowed distance between the lower and the upper value of a percentile: a share
// of the lower value or an absolute time, whichever is more. A trusted value is within a tenth
// of the true one. The lower value may itself be above that by almost 1 %: the width of a
// histogram's cell, and the way from the system to this process.
const (
	trustedShare = 0.09
	trustedTime  = 200 * time.Microsecond
	noisyShare   = 0.30
	noisyTime    = 2 * time.Millisecond
)

// LevelOf returns the level of a percentile that lies between two values.
func LevelOf(lower, upper time.Duration) Level {
	switch d := upper - lower; {
	case d <= max(trustedTime, time.Duration(trustedShare*float64(lower))):
		return Trusted
	case d <= max(noisyTime, time.Duration(noisyShare*float64(lower))):
		return Noisy
	}
	return NotTrusted
}

// Worse returns the worse of two levels.
func (l Level) Worse(o Level) Level {
	if l == NotTrusted || o == NotTrusted {
		return NotTrusted
	}
	if l == Noisy || o == Noisy {
		return Noisy
	}
	return Trusted
}
