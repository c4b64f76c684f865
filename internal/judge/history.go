package judge

import (
	"math"
	"slices"
	"strings"
	"time"

	"carronade/internal/store"
	"carronade/internal/verdict/stats"
)

// mostRevisions is the largest number of revisions examined, the newest ones.
const mostRevisions = 200

// A revision is the reports of one state of the system under test. If the state
// is not known (no --system-git), the repetitions of one run count as a
// revision, and so does a run without repetitions: the history is then one of
// times.
type revision struct {
	name string    // as in git, with "+changes" if there were some; "" if there is none
	date time.Time // of the revision if it is known, else of its first report
	rows []store.Row
	out  []store.Row // reports that cannot be judged
	// earlier are the reports of the revisions between this one and the one
	// before it in the history, none of which can be judged: their runs count
	// in Survival.
	earlier []store.Row
}

// historyOf are the revisions with at least one report that can be judged, and
// the newest revision in any case.
func historyOf(rows []store.Row, untrusted bool) []revision {
	var out []revision
	var skipped []store.Row
	all := revisionsOf(rows)
	for i, v := range all {
		var judged []store.Row
		for _, r := range v.rows {
			if unfit(&r, untrusted) == "" {
				judged = append(judged, r)
			} else {
				v.out = append(v.out, r)
			}
		}
		v.rows = judged
		if len(judged) == 0 && i < len(all)-1 {
			skipped = append(skipped, v.out...)
			continue
		}
		v.earlier, skipped = skipped, nil
		out = append(out, v)
	}
	return out
}

// revisionsOf groups reports by revision, the oldest first: by the dates of the
// revisions if all have one, so that an old one that was tested again today is
// not the newest; otherwise by when they were first tested. Rows must be in the
// order of time.
func revisionsOf(rows []store.Row) []revision {
	var out []revision
	at := map[string]int{}
	dated := true
	var last *store.Row // the last one without a revision
	lastAt := -1
	for i := range rows {
		r := &rows[i]
		name := revisionName(r)
		j, ok := at[name]
		if name == "" {
			if j, ok = lastAt, last != nil && repeats(last, r); !ok {
				j = len(out)
			}
			last, lastAt = r, j
		}
		if !ok {
			j = len(out)
			if name != "" {
				at[name] = j
			}
			v := revision{name: name, date: r.At}
			if d, ok := r.Num("revision_date"); ok && name != "" {
				v.date = time.Unix(0, int64(d*1e9)).UTC()
			} else {
				dated = false
			}
			out = append(out, v)
		}
		out[j].rows = append(out[j].rows, *r)
	}
	if !dated {
		for i := range out {
			out[i].date = out[i].rows[0].At
		}
	}
	slices.SortStableFunc(out, func(a, b revision) int {
		if c := a.date.Compare(b.date); c != 0 {
			return c
		}
		return a.rows[0].At.Compare(b.rows[0].At)
	})
	return out
}

// revisionName is the revision of a report, "" if it has none.
func revisionName(r *store.Row) string {
	name := r.Text("revision")
	if changed, _ := r.Num("unstaged_changes"); name != "" && changed != 0 {
		name += "+changes"
	}
	return name
}

// repeats is whether a report continues the repetitions of the one before. Those
// in place of others come last.
func repeats(before, r *store.Row) bool {
	n, _ := r.Num("repetition")
	of, _ := r.Num("repetitions")
	n0, _ := before.Num("repetition")
	of0, _ := before.Num("repetitions")
	return of > 1 && of == of0 && (n > n0 || r.Text("replaces") != "")
}

// levels are the samples of a quantity by revision, for the revisions that have
// it, and the indices of those revisions.
func levels(revisions []revision, field string) (samples [][]float64, at []int) {
	for i := range revisions {
		if s := sample(revisions[i].rows, field); len(s) > 0 {
			samples, at = append(samples, s), append(at, i)
		}
	}
	return samples, at
}

// A DatedStep is a lasting change in a history.
type DatedStep struct {
	Field    string    `json:"field"`
	Title    string    `json:"title"`
	Unit     string    `json:"unit"`
	Revision string    `json:"revision"` // the first of the new level; "" where it is not known
	Date     time.Time `json:"date"`
	Index    int       `json:"index"` // among the revisions
	Reports  []string  `json:"reports"`
	Before   float64   `json:"before"`
	After    float64   `json:"after"`
	Change   float64   `json:"change"` // a share of before, or an amount if before is 0
	Relative bool      `json:"relative"`
	P        float64   `json:"p"`
	Worse    bool      `json:"worse"`
	Stands   bool      `json:"stands"` // it is for the worse, and later revisions have not recovered
	// Doubtful: Stands would be true, but the level before the step is a lower
	// bound, which may have been as bad.
	Doubtful bool `json:"doubtful"`

	kind store.ValueKind
}

// Words tell a step in few words.
func (s *DatedStep) Words() string { return s.by() + " at " + s.at() }

// by is the size of a step.
func (s *DatedStep) by() string { return amount(s.Change, s.Relative, s.kind) }

// How a gate's share of false alarms is divided: half for the newest revision
// against earlier ones, both rows together, and half for steps, each row
// separately.
const (
	gateAlpha = 0.05
	newAlpha  = gateAlpha / 2
	stepAlpha = gateAlpha / 4
	leastStep = 3 // revisions on either side: two odd ones are not a step
	// leastStepEffect is the smallest step that counts: machines have steps of their own.
	leastStepEffect = 0.04
)

// rowsAt are the reports of some revisions.
func rowsAt(revisions []revision, at []int) (out [][]store.Row) {
	for _, i := range at {
		out = append(out, revisions[i].rows)
	}
	return out
}

// steps finds the steps of a quantity in a history.
func steps(revisions []revision, samples [][]float64, at []int, q quantity, effect float64) []DatedStep {
	series := make([]float64, len(samples))
	for i, s := range samples {
		series[i] = stats.Median(s, stats.Confidence).Median
	}
	found := stats.Steps(series, stats.StepOptions{Alpha: stepAlpha, Effect: effect, Least: leastStep})
	out := make([]DatedStep, 0, len(found))
	for i, f := range found {
		v := revisions[at[f.At]]
		s := DatedStep{
			Field: q.field, Title: q.title, Revision: v.name, Date: v.date, Index: at[f.At], Reports: ids(v.rows),
			Before: f.Before, After: f.After, Change: f.Change, Relative: f.Relative, P: f.P, Worse: (f.Change > 0) == (q.better == stats.Less),
			kind: kindOf(q.field, v.rows),
		}
		s.Unit = unitOf(s.kind)
		// A step is lasting unless the level before it has been reached again.
		now := found[len(found)-1].After
		from := 0
		if i > 0 {
			from = found[i-1].At
		}
		var before []store.Row
		for _, k := range at[from:f.At] {
			before = append(before, revisions[k].rows...)
		}
		s.Stands = s.Worse && worseBy(f.Before, now, q.better) >= effect
		s.Doubtful = s.Stands && lowerBounds(q.field, before)
		s.Stands = s.Stands && !s.Doubtful
		out = append(out, s)
	}
	return out
}

// worseBy is how much worse a level is than an earlier one, as an effect:
// negative if it is better.
func worseBy(before, now float64, better stats.Direction) float64 {
	over, under := before, now
	if better == stats.Less {
		over, under = now, before
	}
	switch {
	case !(over >= 0 && under >= 0):
		return math.NaN()
	case under == 0 && over == 0:
		return 0
	case under == 0:
		return math.Inf(1) // an outage
	}
	return over/under - 1
}

// baselineStart chooses what the newest revision is compared with, and returns
// the index of the first of them among the samples: the revisions since the
// last step, since older ones were on another level. If these are too few for a
// verdict and the step was for the better, the level before it counts too. That
// cannot make a revision at the new level worse.
func baselineStart(samples [][]float64, at []int, found []DatedStep) (from int) {
	newest := len(samples) - 1
	place := func(s DatedStep) int { return slices.Index(at, s.Index) }
	if n := len(found); n > 0 {
		from = place(found[n-1])
		if !enoughHistory(samples[from:newest], samples[newest]) && !found[n-1].Worse {
			from = 0
			if n > 1 {
				from = place(found[n-2])
			}
		}
	}
	return from
}

// enoughHistory is whether a history suffices to judge a new level.
func enoughHistory(history [][]float64, candidate []float64) bool {
	n := 0
	for _, s := range history {
		n += len(s)
	}
	return len(history) >= stats.Levels || n >= stats.Least && len(candidate) >= stats.Least
}

// shortRevision is a revision's name as people write it.
func shortRevision(name string) string {
	hash, changes, dirty := strings.Cut(name, "+")
	if len(hash) > 10 && strings.Trim(hash, "0123456789abcdef") == "" {
		hash = hash[:10]
	}
	if dirty {
		return hash + "+" + changes
	}
	return hash
}
