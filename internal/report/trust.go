package report

import (
	"slices"
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
func (d *Document) Bound(time string, p float64) *measure.Bound { return d.boundIn("", time, p) }

// boundIn is Bound in a step.
func (d *Document) boundIn(step, time string, p float64) *measure.Bound {
	for i := range d.Trust.Bounds {
		if b := &d.Trust.Bounds[i]; b.Time == time && b.P == p && b.Step == step {
			return b
		}
	}
	return nil
}

// boundText is a percentile as what is known of it: "5.52 to 11.2 ms".
func boundText(b *measure.Bound) string { return units.FormatDurations(micro(b.Lower), micro(b.Upper)) }

// rangeOf prints a percentile of a time of the measurement or of a step: as a range if the generator may have
// lengthened it, with the reason if nothing else in the report says it.
func (d *Document) rangeOf(t *Time, step string, p float64) (string, bool) {
	text, ok := d.known(t, step, p)
	if !ok {
		return "", false
	}
	if d.boundIn(step, t.Name, p) != nil && d.TrustLevel() == measure.Noisy && !strings.HasPrefix(text, ">") {
		text += " (" + d.lengthenedBy() + ")"
	}
	return t.Title + " " + measure.PercentileName(p) + " " + text, true
}

// known is a percentile as what is known of it: a range if the generator may have lengthened it.
func (d *Document) known(t *Time, step string, p float64) (string, bool) {
	v, ok := t.Sum.At(p)
	if !ok {
		return "", false
	}
	if b := d.boundIn(step, t.Name, p); b != nil && !v.AtLeast {
		return boundText(b), true
	}
	return Percentile(v), true
}

// lengthenedBy says why times may be longer than those of the system.
func (d *Document) lengthenedBy() string {
	if d.MachineCause() != "" {
		return "this machine was busy"
	}
	return "the generator was late"
}

// ranges are the percentiles of these times that the generator may have lengthened. The brief ones are those of its
// table, without the one that is in the line of numbers.
func (d *Document) ranges(cols []Time, brief bool) []string {
	var out []string
	ps, main := briefOf(cols), d.MainTime().Name
	for _, c := range cols {
		before := c.Title + " "
		for _, v := range c.Sum.Percentiles {
			if b := d.Bound(c.Name, v.P); b != nil && !(brief && (!slices.Contains(ps, v.P) || v.P == 99 && c.Name == main)) {
				out = append(out, before+measure.PercentileName(v.P)+" "+boundText(b))
				before = ""
			}
		}
	}
	return out
}
