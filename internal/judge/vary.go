package judge

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"carronade/internal/store"
	"carronade/internal/verdict/stats"
	"carronade/units"
)

// VariationSchema names the format of a variation's JSON.
const VariationSchema = "carronade.variation/1"

// The labels of the reports of a series: which series, a hash of what it runs, and the number
// of the cell, from 1.
const (
	SeriesLabel = "vary"
	PlanLabel   = "vary-plan"
	CellLabel   = "vary-cell"
)

// VaryOptions say what a series of runs was planned to be.
type VaryOptions struct {
	Series string
	Design *stats.Design
	Rounds int
	// Searches are those of a series in which each repetition is a search for a ceiling; nil if
	// each is a run.
	Searches []VariedSearch
}

// A Variation says what several settings change, by the reports of a series.
type Variation struct {
	Schema  string         `json:"schema"`
	Series  string         `json:"series"`
	Op      string         `json:"op"`
	Target  string         `json:"target"`
	Rounds  int            `json:"repeat"`
	Factors []VariedFactor `json:"factors"`
	Numbers []VariedNumber `json:"numbers"` // the first one decides
	Cells   []VariedCell   `json:"cells"`
	Best    *VariedBest    `json:"best"` // null if cells lack runs that count
	LeftOut []LeftOut      `json:"left_out"`
	Notes   []string       `json:"notes"`
	Machine string         `json:"machine,omitempty"` // what other programs took of it

	design   *stats.Design
	searched bool    // each repetition is a search
	least    float64 // the noise that the number that decides has at least
}

// A VariedFactor is a setting and its values.
type VariedFactor struct {
	Name   string   `json:"name"`
	Values []string `json:"values"`
}

// A VariedNumber is what the settings do to one number.
type VariedNumber struct {
	Field   string         `json:"field"`
	Title   string         `json:"title"`
	Decides bool           `json:"decides"`
	Better  string         `json:"better"`  // more or less
	Noise   float64        `json:"noise"`   // between repetitions of a cell, a share
	Degrees int            `json:"degrees"` // of freedom, of the noise
	AtLeast bool           `json:"at_least"`
	Effects []VariedEffect `json:"effects"` // main effects before interactions, the largest first

	kind   store.ValueKind
	column string
	better stats.Direction
}

// A VariedEffect is what one change does to a number, or how much larger that is with another
// change.
type VariedEffect struct {
	Of       []VariedChange      `json:"of"`     // one change, or two of different settings
	Effect   float64             `json:"effect"` // a share
	Lo       float64             `json:"lo"`
	Hi       float64             `json:"hi"`
	P        float64             `json:"p"`
	Adjusted float64             `json:"adjusted"`
	Verdict  stats.EffectVerdict `json:"verdict"`

	of []stats.FactorChange
}

// Main is whether it is the effect of one change.
func (e *VariedEffect) Main() bool { return len(e.Of) == 1 }

// A VariedChange is a setting that goes from one value to another.
type VariedChange struct {
	Name string `json:"name"`
	From string `json:"from"`
	To   string `json:"to"`
}

// A VariedCell is one combination of values. Numbers are the geometric means of its runs.
type VariedCell struct {
	Cell     int                `json:"cell"` // from 1
	Settings []VariedSetting    `json:"settings"`
	Reports  []string           `json:"reports"`            // those that count, by repetition
	Searches []VariedSearch     `json:"searches,omitempty"` // those that count, whose lower ends the reports are
	Died     int                `json:"died"`               // runs that the system did not survive; none of them counts
	Means    map[string]float64 `json:"measured"`
	AtMost   []string           `json:"at_most,omitempty"` // which of them are upper bounds: the generators may have lengthened the time
}

// A VariedSetting is a setting with the value of a cell.
type VariedSetting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// A VariedBest is the cell that is best by the number that decides.
type VariedBest struct {
	Cell   int   `json:"cell"`
	Rivals []int `json:"rivals"` // cells that may be as good or better
}

// variedQuantities are the numbers of a variation, the one that decides first: throughput, the
// first p99 that all runs have, and the processors that the generator and the system used.
func variedQuantities(rows []store.Row) []quantity {
	main := decider("", rows)
	out := []quantity{main}
	for _, q := range append(primaryOfRuns(rows),
		quantity{field: "generator_cpu_share", title: "generator CPU", column: "own cpu", better: stats.Less},
		quantity{field: cores.field, title: "system CPU", column: cores.column, better: cores.better}) {
		if q.field != main.field && haveAny(q.field, [][]store.Row{rows}) {
			out = append(out, q)
		}
	}
	return out
}

// VaryFields are the fields of rows that Vary reads.
func VaryFields() []string {
	return append(CompareFields(), "generator_cpu_share", "repetition", "replaces", "exit", labelPrefix+SeriesLabel, labelPrefix+PlanLabel, labelPrefix+CellLabel)
}

// CellOf returns which run of a series a row is: its cell and its round, both from 0. It is
// false for a row without them.
func CellOf(r *store.Row) (cell, round int, ok bool) {
	cell, err := strconv.Atoi(r.Text(labelPrefix + CellLabel))
	n, has := r.Num("repetition")
	return cell - 1, int(n) - 1, err == nil && has && cell > 0 && n >= 1
}

// Counts is whether a run is judged, and if not, why.
func Counts(r *store.Row) (why string, ok bool) {
	why = unfit(r, false)
	return why, why == ""
}

// ErrNoRuns is the error of a series without any run that can be judged.
var ErrNoRuns = errors.New("no run of the series can be judged")

// Vary analyses the reports of a series.
func Vary(rows []store.Row, o VaryOptions) (*Variation, error) {
	d := o.Design
	v := &Variation{Schema: VariationSchema, Series: o.Series, Rounds: o.Rounds, Numbers: []VariedNumber{}, LeftOut: []LeftOut{}, Notes: []string{}, Machine: machineText(rows), design: d}
	for _, f := range d.Factors {
		v.Factors = append(v.Factors, VariedFactor(f))
	}
	at := make([][]*store.Row, len(d.Cells))
	for i := range d.Cells {
		at[i] = make([]*store.Row, o.Rounds)
		c := VariedCell{Cell: i + 1, Reports: []string{}, Means: map[string]float64{}}
		for k, f := range d.Factors {
			c.Settings = append(c.Settings, VariedSetting{f.Name, f.Values[d.Cells[i][k]]})
		}
		v.Cells = append(v.Cells, c)
	}
	var good []store.Row
	if v.searched = o.Searches != nil; v.searched {
		good = v.fitSearches(rows, o.Searches, at)
	} else {
		good = v.fitRuns(rows, at)
	}
	if len(good) == 0 {
		err := ErrNoRuns
		if v.searched && len(v.LeftOut) > 0 {
			err = fmt.Errorf("%w: no search found a ceiling (%s)", ErrNoRuns, v.LeftOut[0].Why)
		}
		return nil, hintedError("vary", err, "carronade report list label."+SeriesLabel+"="+o.Series+" shows them")
	}
	v.Op, v.Target = good[0].Text("op"), good[0].Text("target")
	for i := range at {
		for _, r := range at[i] {
			if r != nil {
				v.Cells[i].Reports = append(v.Cells[i].Reports, r.ID)
			}
		}
	}
	quantities := variedQuantities(good)
	if v.searched {
		quantities = searchedQuantities(good)
	}
	v.analyze(quantities, good, at)
	v.addNotes()
	return v, nil
}

// fitRuns are the rows of runs that can be judged. at gets them by cell and round.
func (v *Variation) fitRuns(rows []store.Row, at [][]*store.Row) []store.Row {
	good, bad := fit(rows, false)
	v.LeftOut = append(v.LeftOut, bad...)
	for i := range good {
		cell, round, ok := CellOf(&good[i])
		if ok && cell < len(at) && round < v.Rounds && at[cell][round] == nil {
			at[cell][round] = &good[i]
		}
	}
	for i := range rows {
		if cell, _, ok := CellOf(&rows[i]); ok && cell < len(at) && died(&rows[i]) {
			v.Cells[cell].Died++
		}
	}
	return good
}

// analyze estimates the effects on each number. The means of the cells do not depend on that: what was
// measured is shown, also if cells are missing.
func (v *Variation) analyze(quantities []quantity, good []store.Row, at [][]*store.Row) {
	var fits []*stats.Analysis // nil: no effects
	decided := true
	for i, q := range quantities {
		values := make([][]float64, len(at))
		n := VariedNumber{
			Field: q.field, Title: q.title, Decides: i == 0, Better: "more", kind: kindOf(q.field, good), column: cmp.Or(q.column, q.title), better: q.better,
			AtLeast: lowerBounds(q.field, good), Effects: []VariedEffect{},
		}
		if q.better == stats.Less {
			n.Better = "less"
		}
		for c := range at {
			values[c] = make([]float64, len(at[c]))
			for r, row := range at[c] {
				values[c][r] = math.NaN()
				if row != nil {
					if x, ok := row.Num(q.field); ok {
						values[c][r] = x
					}
				}
			}
		}
		for c := range values {
			if mean, ok := stats.GeometricMean(values[c]); ok {
				v.Cells[c].Means[q.field] = mean
			}
			if upperBounds(q.field, present(at[c])) {
				v.Cells[c].AtMost = append(v.Cells[c].AtMost, q.field)
			}
		}
		least := 0.0
		if i == 0 {
			least = v.least
		}
		var f *stats.Analysis
		if decided { // otherwise the others would not be corrected as promised
			var err error
			if f, err = v.design.Analyze(values, least); err != nil {
				v.Notes = append(v.Notes, fmt.Sprintf("%s: no effects, since %s", q.title, v.noEffects(err)))
				decided = i > 0
			} else {
				n.Noise, n.Degrees = f.Noise, f.Degrees
				for c, mean := range f.Means {
					v.Cells[c].Means[q.field] = mean
				}
			}
		}
		fits, v.Numbers = append(fits, f), append(v.Numbers, n)
	}
	if !decided {
		return
	}
	stats.JudgeEffects(slices.DeleteFunc(slices.Clone(fits), func(f *stats.Analysis) bool { return f == nil })...)
	for i, f := range fits {
		if f != nil {
			v.Numbers[i].Effects = v.effects(f)
		}
	}
	best, rivals := fits[0].Best(v.Numbers[0].better)
	v.Best = &VariedBest{Cell: best + 1, Rivals: []int{}}
	for _, r := range rivals {
		v.Best.Rivals = append(v.Best.Rivals, r+1)
	}
}

// noEffects is the reason why a number has no effects. Cells without a run that counts are named.
func (v *Variation) noEffects(err error) string {
	var missing []string
	for i := range v.Cells {
		if c := &v.Cells[i]; len(c.Reports) == 0 {
			missing = append(missing, fmt.Sprintf("%d (%s)", c.Cell, c.settings()))
		}
	}
	switch n := len(missing); {
	case n == 0 || !errors.Is(err, stats.ErrEmptyCell):
		return err.Error()
	case n == 1:
		return "cell " + missing[0] + " has no " + v.each() + " that counts"
	default:
		return "cells " + commas(missing, 4) + " have no " + v.each() + " that counts"
	}
}

// effects are those of a fit, main effects first and the largest first.
func (v *Variation) effects(f *stats.Analysis) []VariedEffect {
	var out []VariedEffect
	for _, e := range f.Effects {
		x := VariedEffect{Effect: e.Share, Lo: e.Lo, Hi: e.Hi, P: e.P, Adjusted: e.Adjusted, Verdict: e.Verdict, of: e.Term.Of}
		for _, c := range e.Term.Of {
			factor := v.design.Factors[c.Factor]
			x.Of = append(x.Of, VariedChange{factor.Name, factor.Values[c.From], factor.Values[c.To]})
		}
		out = append(out, x)
	}
	slices.SortStableFunc(out, func(a, b VariedEffect) int {
		if a.Main() != b.Main() {
			return cmp.Compare(len(a.Of), len(b.Of))
		}
		return cmp.Compare(math.Abs(math.Log1p(b.Effect)), math.Abs(math.Log1p(a.Effect)))
	})
	return out
}

// addNotes says how to read the tables.
func (v *Variation) addNotes() {
	add := func(format string, args ...any) { v.Notes = append(v.Notes, fmt.Sprintf(format, args...)) }
	if missing := v.missing(); missing > 0 {
		again := "the same command with --resume " + v.Series + " runs them again"
		if v.searched {
			again = "the same command with --resume " + v.Series + " searches again where the generator was the limit"
		}
		add("%s without a %s that counts: %s", units.Plural(missing, "repetition"), v.each(), again)
	}
	for i := range v.Cells {
		if c := &v.Cells[i]; c.Died > 0 {
			add("the system ended in %s of cell %d: its numbers are of the others", units.Plural(c.Died, v.each()), c.Cell)
		}
	}
	if slices.ContainsFunc(v.Cells, func(c VariedCell) bool { return c.AtMost != nil }) {
		add("%s", atMostWords)
	}
	if v.Best == nil { // there are no effects
		return
	}
	add("an effect is an average over the values of the other settings; %s intervals from the noise between repetitions of a cell", units.FormatPercent(stats.Confidence))
	if v.searched {
		add("the ceiling is the middle between the rate that holds and the one that fails; the noise is at least what these intervals give, %s", units.FormatPercent(v.least))
	}
	if slices.ContainsFunc(v.Numbers[0].Effects, func(e VariedEffect) bool { return !e.Main() }) {
		add("A x B: the ratio of the effect of A with the second value of B to that with the first")
	}
	more := ""
	if len(v.Numbers) > 1 {
		more = "; the other numbers are exploratory, and corrected together"
	}
	add("%s decides: all its effects are corrected for their number (Holm, %s)%s", v.Numbers[0].Title, units.FormatPercent(stats.Defaults.Alpha), more)
	var bounds []string
	for i := range v.Numbers {
		if v.Numbers[i].AtLeast {
			bounds = append(bounds, v.Numbers[i].Title)
		}
	}
	if len(bounds) > 0 {
		add("some values of %s are lower bounds, since events were never answered: effects on it may be larger", strings.Join(bounds, " and "))
	}
}

// present are the rows that are there.
func present(rows []*store.Row) (out []store.Row) {
	for _, r := range rows {
		if r != nil {
			out = append(out, *r)
		}
	}
	return out
}

// each is what a repetition is.
func (v *Variation) each() string {
	if v.searched {
		return "search"
	}
	return "run"
}

// many are several of each.
func (v *Variation) many() string { return strings.TrimPrefix(units.Plural(2, v.each()), "2 ") }

// missing is how many planned runs do not count.
func (v *Variation) missing() int {
	n := 0
	for i := range v.Cells {
		n += v.Rounds - len(v.Cells[i].Reports)
	}
	return n
}
