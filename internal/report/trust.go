package report

import (
	"strings"

	"carronade/load"
	"carronade/measure"
	"carronade/units"
)

// Freezes are the times of 10 ms or longer in which the generator itself did not run.
type Freezes struct {
	Count   uint64   `json:"count"`
	TotalS  float64  `json:"total_s"`
	Share   float64  `json:"share"`
	Longest []Freeze `json:"longest"`
}

// A Freeze is one time in which the generator did not run.
type Freeze struct {
	AtS     float64 `json:"at_s"`
	LengthS float64 `json:"length_s"`
	Who     string  `json:"who"`
	Cause   string  `json:"cause"`
}

func freezes(r *load.Result) Freezes {
	f := &r.Freezes
	out := Freezes{Count: f.Count, TotalS: f.Total.Seconds(), Longest: []Freeze{}}
	if n := r.Measurement.Length(); n > 0 {
		out.Share = min(1, f.Total.Seconds()/n.Seconds())
	}
	for _, l := range f.Longest {
		out.Longest = append(out.Longest, Freeze{AtS: l.At.Seconds(), LengthS: l.Length.Seconds(), Who: l.Who, Cause: l.Cause})
	}
	return out
}

// Text describes the number and length of freezes; "" if there were none, or they were not
// measured.
func (f *Freezes) Text() string {
	if f.Count == 0 {
		return ""
	}
	text := units.FormatCount(f.Count) + ", " + seconds(f.TotalS) + " of the measurement"
	if len(f.Longest) > 0 {
		text += "; longest " + f.Longest[0].Text()
	}
	return text
}

// Text describes one freeze.
func (f *Freeze) Text() string {
	text := seconds(f.LengthS) + " (at " + seconds(f.AtS) + "): the " + f.Who
	if f.Cause != "" {
		text += ", " + f.Cause
	}
	return text
}

// TrustLevel is how far the generator may have affected the result.
func (d *Document) TrustLevel() measure.Level {
	switch {
	case !d.Trust.OK:
		return measure.NotTrusted
	case d.Trust.Level == measure.Noisy:
		return measure.Noisy
	}
	return measure.Trusted
}

// Bound returns how far the generator may have affected a percentile of a time of the
// measurement; nil if negligible.
func (d *Document) Bound(time string, p float64) *measure.Bound {
	for i := range d.Trust.Bounds {
		if b := &d.Trust.Bounds[i]; b.Time == time && b.P == p && b.Step == "" {
			return b
		}
	}
	return nil
}

// generatorParts describes how far the generator may have affected further
// percentiles; "" if negligibly.
func (d *Document) generatorParts() string {
	var out []string
	last := ""
	for i := range d.Trust.Bounds {
		b := &d.Trust.Bounds[i]
		if b.P <= 99 || b.Step != "" {
			continue
		}
		text := measure.PercentileName(b.P) + " up to " + Clock(b.Upper-b.Lower)
		if b.Time != last {
			last, text = b.Time, strings.ReplaceAll(b.Time, "_", " ")+" "+text
		}
		out = append(out, text)
	}
	if len(out) == 0 {
		return ""
	}
	return "of this the generator's own: " + strings.Join(out, ", ")
}
