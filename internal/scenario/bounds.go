package scenario

import (
	"fmt"
	"slices"
	"time"

	"carronade/units"
)

// Bounds limit what a script may ask for. What a report keeps is limited for the whole scenario,
// all else until the next step starts, so that a scenario may run for weeks.
type Bounds struct {
	Checks int // limits that are checked
	Marks  int
	AtOnce int // steps in progress

	Requests int // without starting a step
	Printed  int // bytes, without starting a step

	// Sleeps and Slept limit how often and for how long a dry run sleeps without starting a step.
	Sleeps int
	Slept  time.Duration
}

// DefaultBounds are the bounds of scenarios.
func DefaultBounds() Bounds {
	return Bounds{
		Checks: 50_000, Marks: 10_000, AtOnce: 256,
		Requests: 1_000_000, Printed: 4 << 20,
		Sleeps: 10_000, Slept: 30 * 24 * time.Hour,
	}
}

// The bounds of single requests, in bytes, and of warnings.
const (
	mostName     = 200     // of a step
	mostOptions  = 1 << 20 // of a step
	mostText     = 1 << 10 // of a mark or a limit
	mostWarnings = 100
)

// A use is what a script has asked for.
type use struct {
	checks, marks     int
	requests, printed int
	sleeps            int
	sleeping          time.Duration
}

// exceed counts a request, and returns the fault of one beyond the bounds.
func (u *use) exceed(r *request, b *Bounds, inProgress func() int) *Fault {
	fail := func(hint, format string, args ...any) *Fault {
		return &Fault{At: r.At, Text: fmt.Sprintf(format, args...), Hint: hint}
	}
	if u.requests++; u.requests > b.Requests {
		return fail("a script composes steps", "the script asks for more than %s things without starting a step", units.FormatCount(uint64(b.Requests)))
	}
	switch r.Do {
	case doStart:
		u.requests, u.printed, u.sleeps, u.sleeping = 0, 0, 0, 0
		switch s := r.Step; {
		case s == nil:
		case len(s.Name) > mostName:
			return fail("give a short name", "the name of a step has more than %d bytes", mostName)
		case s.size() > mostOptions:
			return fail("data belongs to the target, or to a file", "the options of a step have more than %s", units.FormatSize(mostOptions))
		case inProgress() >= b.AtOnce:
			return fail("await some before you start others", "%d steps are in progress, and no more run at once", b.AtOnce)
		}
	case doPrint:
		if u.printed += len(r.Text); u.printed > b.Printed {
			return fail("print less", "the script prints more than %s without starting a step", units.FormatSize(int64(b.Printed)))
		}
	case doCheck:
		if slices.ContainsFunc(r.Limits, func(text string) bool { return len(text) > mostText }) {
			return fail("such as p99<50ms", "a limit has more than %d bytes", mostText)
		}
		if u.checks += len(r.Limits); u.checks > b.Checks {
			return fail("check fewer steps", "the script checks more than %s limits", units.FormatCount(uint64(b.Checks)))
		}
	case doMark:
		if len(r.Text) > mostText {
			return fail("console.log prints longer texts", "a mark has more than %d bytes", mostText)
		}
		if u.marks++; u.marks > b.Marks {
			return fail("console.log prints what the report need not keep", "the script makes more than %s marks", units.FormatCount(uint64(b.Marks)))
		}
	}
	return nil
}

// sleep counts a sleep of a dry run, and reports whether it is beyond the bounds.
func (u *use) sleep(d time.Duration, b *Bounds) bool {
	u.sleeps++
	u.sleeping += max(0, min(d, b.Slept)) // does not overflow
	return u.sleeps > b.Sleeps || u.sleeping > b.Slept
}

// size is how many bytes the texts of a step have.
func (s *Step) size() int {
	sum := len(s.Target)
	add := func(options []Option) {
		for _, o := range options {
			sum += len(o.Name)
			for _, v := range o.Values {
				sum += len(v)
			}
		}
	}
	add(s.Options)
	for i := range s.Parts {
		sum += len(s.Parts[i].Target)
		add(s.Parts[i].Options)
	}
	return sum
}
