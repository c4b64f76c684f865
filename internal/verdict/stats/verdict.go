package stats

import (
	"cmp"
	"fmt"
)

// A Verdict is the result of a comparison.
type Verdict string

// The verdicts.
const (
	Better  Verdict = "better"
	Worse   Verdict = "worse"
	Same    Verdict = "same"        // within the smallest effect worth naming
	Unknown Verdict = "cannot tell" // Doubt says why
)

// A Reason is why a comparison cannot tell.
type Reason string

// The reasons; "" goes with every other verdict.
const (
	Missing Reason = "missing"   // one side has no values
	TooFew  Reason = "too few"   // repetitions
	Noisy   Reason = "too noisy" // the interval includes both no difference and one worth naming
	Small   Reason = "small"     // they differ, but perhaps by less than is worth naming
	Crowded Reason = "crowded"   // alone it would differ; among this many rows it may be chance
	Apart   Reason = "apart"     // they differ, but groups of equal runs may differ as much
)

// A Doubt is a reason and its numbers.
type Doubt struct {
	Reason Reason
	// Need is how many repetitions per side would probably suffice, 0 if
	// unknown, and Many if at least that many.
	Need int
	// Few is how many would suffice if the difference is clear, 0 if none. Clear is the ratio that is,
	// if not ClearRatio.
	Few   int
	Clear float64
	// Between is how far groups of equal runs may be apart, a share; 0: unknown.
	Between float64
	// Detects is the smallest difference that these samples could show, a share
	// or an amount like the difference; 0: unknown.
	Detects float64
}

// Many stands for more repetitions than anyone will run.
const Many = 100

// String is the doubt in words, without numbers that have a unit.
func (d Doubt) String() string {
	need := ""
	switch {
	case d.Need >= Many:
		need = fmt.Sprintf(", more than %d repetitions would be enough", Many)
	case d.Need > 0:
		need = fmt.Sprintf(", about %d repetitions would be enough", d.Need)
	}
	switch d.Reason {
	case Missing:
		return "not measured on both sides"
	case TooFew:
		text := fmt.Sprintf("needs %d repetitions", d.Need)
		if d.Few > 0 {
			text += fmt.Sprintf(", or %d for a difference of %.0f%%", d.Few, 100*(cmp.Or(d.Clear, ClearRatio)-1))
		}
		return text
	case Noisy:
		return "too noisy" + need
	case Small:
		return "it differs, perhaps by less" + need
	case Crowded:
		return "may be chance" + need
	case Apart:
		text := "equal runs that were made at another time may differ by as much"
		if d.Between > 0 {
			text = fmt.Sprintf("equal runs that were made at another time may differ by %.0f%%", 100*d.Between)
		}
		return text + "; compare --run alternates between both sides"
	}
	return ""
}

// A Direction says which direction is better.
type Direction int8

// The directions.
const (
	Less Direction = -1
	More Direction = 1
)
