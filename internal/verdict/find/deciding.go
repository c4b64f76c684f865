package find

import (
	"fmt"
	"strings"

	"carronade/measure"
	"carronade/units"
)

// Deciding counts the trials that an answer rests on, and those of them that the generator may have
// affected.
type Deciding struct {
	Trials     int `json:"trials"`
	Noisy      int `json:"noisy"`
	NotTrusted int `json:"not_trusted"`
}

// deciding counts the trials at the ends of the answer, of reading those that count, and of requests
// in flight those of the numbers that decide. Nil: there are none.
func (a *Answer) deciding() *Deciding {
	var d Deciding
	for i := range a.Trials {
		t := &a.Trials[i]
		if !a.decides(t) {
			continue
		}
		d.Trials++
		switch t.Trust {
		case measure.Noisy:
			d.Noisy++
		case measure.NotTrusted:
			d.NotTrusted++
		}
	}
	if d.Trials == 0 {
		return nil
	}
	return &d
}

func (a *Answer) decides(t *Tried) bool {
	if t.Verdict != nil && t.Verdict.Result == Invalid {
		return false
	}
	switch k := a.Knee; t.Role {
	case Probe, WarmUp, Again:
		return false
	case Read:
		return a.Holds > 0
	case Search, Confirm:
		if n := t.Concurrency; k != nil {
			return n == k.Enough || n == k.Below || n == k.Best
		}
	}
	return t.Rate > 0 && (t.Rate == a.Holds || t.Rate == a.Fails)
}

// text says how many of the trials the generator may have affected; "" if none.
func (d *Deciding) text() string {
	var parts []string
	for _, of := range []struct {
		n    int
		word measure.Level
	}{{d.NotTrusted, measure.NotTrusted}, {d.Noisy, measure.Noisy}} {
		switch {
		case of.n == 1:
			parts = append(parts, fmt.Sprintf("1 was %s", of.word))
		case of.n > 1:
			parts = append(parts, fmt.Sprintf("%d were %s", of.n, of.word))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("of %s that the answer rests on, %s: the generator may have affected it", units.Plural(d.Trials, "trial"), strings.Join(parts, " and "))
}
