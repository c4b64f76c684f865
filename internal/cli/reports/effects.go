package reports

import (
	"fmt"
	"slices"
	"strings"

	"carronade/internal/advice"
	"carronade/internal/judge"
	"carronade/internal/store"
	"carronade/protocol"
	"carronade/units"
)

const effectHelp = "the smallest `DIFFERENCE` of interest, such as 10% (default: 5%, of a rate 2%), or for one field: response_p99=10% (repeatable)"

// effects parses the values of --min-effect.
func effects(texts []string) (judge.Effects, error) {
	e := judge.Effects{Of: map[string]float64{}}
	fail := func(text, why, hint string) (judge.Effects, error) {
		return e, &protocol.Error{Err: fmt.Errorf("--min-effect %s: %s", text, why), Hint: hint}
	}
	for _, text := range texts {
		name, share, one := strings.Cut(text, "=")
		if !one {
			name, share = "", text
		}
		x, err := units.ParseShare(share)
		if err != nil {
			return fail(text, err.Error(), "give a share, such as 3% or 0.03")
		}
		if x <= 0 || x >= judge.MostEffect {
			return fail(text, "must be between 0 and 100%", "with 3%, smaller differences count as the same")
		}
		if !one {
			e.All = x
			continue
		}
		if name, err = judgedField("--min-effect "+text, name); err != nil {
			return e, err
		}
		e.Of[name] = x
	}
	return e, nil
}

// judgedField returns the name of a field that comparisons judge, given by a flag.
func judgedField(flag, name string) (string, error) {
	name = store.Canonical(name)
	if !slices.Contains(judge.Judged(), name) {
		return "", &protocol.Error{
			Err:  fmt.Errorf("%s: %q is not compared", flag, name),
			Hint: advice.DidYouMean(name, judge.Judged(), "%s", "it is one of "+strings.Join(judge.Judged(), ", ")),
		}
	}
	return name, nil
}
