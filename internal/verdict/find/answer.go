package find

import (
	"time"

	"carronade/internal/host"
	"carronade/measure"
)

// Options say what to search for, and how.
type Options struct {
	Times []TimeLimit // none where nothing is acknowledged, for reading, and over the number of requests in flight
	// Over is what varies: OverConcurrency, or "" for the rate.
	Over string
	// From is the rate at which the search begins. 0: a closed loop estimates the capacity first.
	From float64
	// To is a rate that is never exceeded, or 0.
	To float64
	// Precision is the wanted width of the answer: 0.02 for 2 %. It is widened to what the budget
	// can confirm.
	Precision float64
	// Budget is the time for the whole search. It is exceeded by one trial at most.
	Budget time.Duration
	// Soak is the length of a last trial at the lower end, beyond the budget. 0: none.
	Soak time.Duration
	// Interrupted ends the search with what is known.
	Interrupted bool
	// Reading searches for the highest rate of reading, which has no schedule.
	Reading bool
}

// An Ending is how a search ended.
type Ending string

// The endings.
const (
	Found     Ending = "found"
	AtLeast   Ending = "at least"  // the generator was the limit
	Highest   Ending = "highest"   // the highest rate that is allowed holds
	None      Ending = "none"      // no rate holds
	NoTop     Ending = "no top"    // no rate failed
	Irregular Ending = "irregular" // the trials contradict each other, or a limit cannot be checked
	Stopped   Ending = "stopped"   // budget or trials spent before both ends were confirmed
	Died      Ending = "died"
	Busy      Ending = "busy" // trial after trial was not trusted
)

// An Answer is the result of a search.
type Answer struct {
	Ending Ending `json:"ending"`
	// Holds is the highest rate at which the limits hold, Fails the lowest above it at which they
	// do not, in events a second. 0: none is known. Of reading, they are the interval of the median
	// of its trials.
	Holds          float64 `json:"holds"`
	HoldsConfirmed bool    `json:"holds_confirmed"`
	Fails          float64 `json:"fails"`
	FailsConfirmed bool    `json:"fails_confirmed"`
	// Precision is Fails/Holds-1, and Wanted the requested one.
	Precision  float64  `json:"precision"`
	Wanted     float64  `json:"wanted_precision"`
	Why        string   `json:"why"`                  // why Fails failed, or why the search ended
	Inversions []string `json:"inversions,omitempty"` // passes above a failure, and ends that changed
	// AfterOverload is the verdict of the lower end after an overload, nil if it was not tried.
	AfterOverload *Verdict      `json:"after_overload,omitempty"`
	Soak          *Soaked       `json:"soak,omitempty"`       // nil: not requested, or it did not end
	Deciding      *Deciding     `json:"deciding,omitempty"`   // nil: no trial decides
	Knee          *Knee         `json:"knee,omitempty"`       // of a search over the number of requests in flight
	Bottleneck    *Bottleneck   `json:"bottleneck,omitempty"` // nil: no rate fails
	Trials        []Tried       `json:"trials"`
	Elapsed       time.Duration `json:"elapsed_ns"`
}

// A Tried is a trial that was run.
type Tried struct {
	Trial
	Report   string        `json:"report,omitempty"`
	Achieved float64       `json:"achieved"` // events a second
	Elapsed  time.Duration `json:"elapsed_ns"`
	Times    []Quantile    `json:"times,omitempty"`   // of the limited times
	Trust    measure.Level `json:"trust,omitempty"`   // noisy or not trusted; empty: trusted
	Verdict  *Verdict      `json:"verdict,omitempty"` // nil: it was not judged
}

// CutShort reports whether the search was interrupted before it had an answer.
func (a *Answer) CutShort() bool { return a.Ending == Stopped && a.Why == interrupted }

// ExitCode is the exit code of an answer. atLeast is the rate that must hold, or 0.
func (a *Answer) ExitCode(atLeast float64) int {
	holds := a.HoldsConfirmed && a.Holds >= atLeast
	switch {
	case a.Ending == Died:
		return host.ExitFailed
	case a.Ending == Found && a.Knee != nil:
		return host.ExitOK
	case a.Soak != nil && a.Soak.Result == Fail:
		return host.ExitBroken
	case atLeast > 0 && holds:
		return host.ExitOK
	case a.Ending == None, a.Ending == Found && !holds, atLeast > 0 && a.FailsConfirmed && a.Fails <= atLeast:
		return host.ExitBroken
	case a.Ending == AtLeast, a.Ending == Busy:
		return host.ExitUntrusted
	case a.Soak != nil && a.Soak.Result == Invalid:
		return host.ExitCannotTell
	case a.Ending == Found, a.Ending == Highest && atLeast == 0:
		return host.ExitOK
	}
	return host.ExitCannotTell
}
