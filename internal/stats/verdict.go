package stats

import "fmt"

// A Verdict is what a comparison says.
type Verdict string

// The verdicts.
const (
	Better  Verdict = "better"
	Worse   Verdict = "worse"
	Same    Verdict = "same"        // within the smallest effect worth naming
	Unknown Verdict = "cannot tell" // and why is said
)

// A Reason is why a comparison cannot tell.
type Reason string

// The reasons; "" goes with every other verdict.
const (
	Missing Reason = "missing"   // one side has no values
	TooFew  Reason = "too few"   // repetitions
	Noisy   Reason = "too noisy" // the interval holds both no difference and one that is worth naming
	Small   Reason = "small"     // there is a difference, which may be below what is worth naming
	Crowded Reason = "crowded"   // alone it would differ; with so many rows judged, one such is chance
)

// A Doubt is a reason and the numbers that go with it.
type Doubt struct {
	Reason Reason
	// Need is how many repetitions a side would probably do, 0 where it is not
	// known, and Many where it is a great many.
	Need int
	// Sees is the smallest difference that these samples could tell, a share
	// or an amount as the difference is; 0: unknown.
	Sees float64
}

// Many stands for more repetitions than anybody will make.
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
		return fmt.Sprintf("needs %d repetitions", d.Need)
	case Noisy:
		return "too noisy" + need
	case Small:
		return "it differs, perhaps by less" + need
	case Crowded:
		return "may be chance" + need
	}
	return ""
}

// A Direction says which way is better.
type Direction int8

// The directions.
const (
	Less Direction = -1
	More Direction = 1
)
