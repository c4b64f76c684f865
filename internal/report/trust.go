package report

import (
	"fmt"
	"strings"

	"carronade/load"
	"carronade/measure"
	"carronade/units"
)

// Freezes are the times in which the generator itself did not run for 10 ms or
// longer.
type Freezes struct {
	Count   uint64   `json:"count"`
	TotalS  float64  `json:"total_s"`
	Share   float64  `json:"share"`
	Longest []Freeze `json:"longest"`
}

// A Freeze is one of them.
type Freeze struct {
	AtS     float64 `json:"at_s"`
	LengthS float64 `json:"length_s"`
	Who     string  `json:"who"`
	Cause   string  `json:"cause"`
}

func freezes(r *load.Result) Freezes {
	f := &r.Freezes
	out := Freezes{Count: f.Count, TotalS: f.Total.Seconds(), Longest: []Freeze{}}
	if n := r.Hold.Length(); n > 0 {
		out.Share = min(1, f.Total.Seconds()/n.Seconds())
	}
	for _, l := range f.Longest {
		out.Longest = append(out.Longest, Freeze{AtS: l.At.Seconds(), LengthS: l.Length.Seconds(), Who: l.Who, Cause: l.Cause})
	}
	return out
}

// Text says how often and how long the generator did not run; "" where it always
// did, or nobody looked.
func (f *Freezes) Text() string {
	if f.Count == 0 {
		return ""
	}
	text := units.Plural(f.Count, "time") + ", " + seconds(f.TotalS) + " of the measurement in all"
	if len(f.Longest) > 0 {
		text += "; longest " + f.Longest[0].Text()
	}
	return text
}

// Text is one freeze in words.
func (f *Freeze) Text() string {
	text := seconds(f.LengthS) + " at " + seconds(f.AtS) + ", the " + f.Who
	if f.Cause != "" {
		text += " (" + f.Cause + ")"
	}
	return text
}

// TrustLevel is how far the generator may have moved what was measured.
func (d *Document) TrustLevel() measure.Level {
	switch {
	case !d.Trust.OK:
		return measure.NotTrusted
	case d.Trust.Level == measure.Noisy:
		return measure.Noisy
	}
	return measure.Trusted
}

// TrustTexts say why a run is trusted, noisy or not trusted.
func (d *Document) TrustTexts() []string {
	switch d.TrustLevel() {
	case measure.NotTrusted:
		return d.Trust.Reasons
	case measure.Noisy:
		return d.Trust.Doubts
	}
	return []string{"the generator kept up"}
}

// TrustText is TrustTexts in one line.
func (d *Document) TrustText() string { return strings.Join(d.TrustTexts(), "; ") }

// Bound returns how far the generator may have moved a percentile of a time of the
// whole measurement; nil where that is less than matters.
func (d *Document) Bound(time string, p float64) *measure.Bound {
	for i := range d.Trust.Bounds {
		if b := &d.Trust.Bounds[i]; b.Time == time && b.P == p && b.Step == "" {
			return b
		}
	}
	return nil
}

// marked says which percentiles beyond those that decide the generator moved.
func (d *Document) marked() []string {
	var out []string
	for i := range d.Trust.Bounds {
		b := &d.Trust.Bounds[i]
		if b.P <= 99 || b.Step != "" {
			continue
		}
		out = append(out, fmt.Sprintf("%s %s: up to %s of it is the generator's", strings.ReplaceAll(b.Time, "_", " "),
			measure.PercentileName(b.P), Clock(b.Upper-b.Lower)))
	}
	return out
}
