package judge

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"carronade/internal/store"
	"carronade/internal/verdict/stats"
	"carronade/units"
)

// VerificationSchema names the format of a verification's JSON.
const VerificationSchema = "carronade.verification/1"

// The verdicts of a gate, the worst last.
const (
	NotWorse   = "not worse"
	CannotTell = "cannot tell"
	Worse      = "worse"
)

// gateConfidence is the confidence of the intervals of a gate. Only their worse
// end counts, which is wrong half as often as both ends.
const gateConfidence = 0.90

// VerifyOptions say how to verify.
type VerifyOptions struct {
	Asked     string    // the filters, for people
	Since     time.Time // of the oldest report
	Effects   Effects
	Untrusted bool // judge untrustworthy runs too
	// SameSystem: all reports are of one system, whatever its address.
	SameSystem bool
	// Against: compare the newest with these reports, not with their history.
	Against *Baseline
}

// VerifyFields are the fields of rows that Verify reads.
func VerifyFields(f store.Filters) []string {
	out := append(slices.Clone(systemFields),
		store.AllIndependent, "op", "trusted", "trust_level", "mode", "elapsed", "freeze_total", "partial", "stopped", "repetition", "repetitions", "replaces",
		"branch", "revision", "revision_date", "unstaged_changes", throughput.field,
	)
	for _, t := range times {
		field := timeAt(t, "99").field
		out = append(out, field, lowerField(field))
	}
	return f.Fields(out)
}

// A Verification is the newest revision of every workload compared with earlier
// ones.
type Verification struct {
	Schema  string    `json:"schema"`
	Asked   string    `json:"asked"`
	Since   time.Time `json:"since"`
	Verdict string    `json:"verdict"` // the worst of all groups
	Groups  []Gate    `json:"groups"`
	LeftOut []LeftOut `json:"left_out"`
	// Against is the baseline, as requested; "": the history.
	Against string `json:"against,omitempty"`
	// Missing are workloads of the baseline without a newer report: they cannot be
	// judged.
	Missing []Unpaired `json:"missing,omitempty"`

	known map[string]bool // ids of all reports that existed before: see RegisterKnown
}

// A Gate is the verification of one workload on one branch.
type Gate struct {
	Op        string      `json:"op"`
	Target    string      `json:"target"`
	Branch    string      `json:"branch,omitempty"`
	Workload  []Setting   `json:"workload"`
	Revisions []Level     `json:"revisions"` // the newest last
	Older     int         `json:"older"`     // revisions beyond the limit, not examined
	LeftOut   []LeftOut   `json:"left_out"`  // reports of this workload that are not judged
	Survival  Survival    `json:"survival"`  // of the newest revision's runs, compared with those before it
	Noisy     int         `json:"noisy"`     // judged runs whose generators may have moved what was measured, within bounds
	From      time.Time   `json:"from"`      // when the first run began
	Rows      []GateRow   `json:"rows"`
	Steps     []DatedStep `json:"steps"`
	Verdict   string      `json:"verdict"`
	Confirmed *Confirmed  `json:"confirmed,omitempty"`
	// Behind is a later revision of the branch at which another workload was
	// run and this one was not: this one is judged by its own newest revision.
	Behind *Level `json:"behind,omitempty"`
	// OtherSystems have reports of the same workload, which are judged separately.
	OtherSystems []string `json:"other_systems,omitempty"`

	key      string
	like     store.Row // one of its reports
	baseline bool      // the newest is compared with a baseline, not with its history
}

// has is whether a report is of the workload. It may not know what others know of
// the servers.
func (g *Gate) has(r *store.Row) bool {
	return key(r, notHistory) == g.key || sameVariables(r, &g.like, notHistory)
}

// A Level is one revision of a history.
type Level struct {
	Revision string              `json:"revision"` // "" where it is not known
	Date     time.Time           `json:"date"`
	Reports  []string            `json:"reports"`
	LeftOut  []string            `json:"left_out,omitempty"` // reports that are not judged
	Medians  map[string]*float64 `json:"medians"`            // of the judged fields, by name
}

// A GateRow is one quantity of a gate.
type GateRow struct {
	Judgement
	Against int    `json:"against_revisions"` // the number of revisions that the newest was compared with
	Gate    string `json:"gate"`
	Reason  string `json:"reason,omitempty"`

	baseline bool // it is compared with a baseline
}

// Verify compares the newest revision of every workload, and branch, with
// earlier ones. Rows are all that match the filters. Reports that cannot be
// judged do not enter any numbers, but they may be of the newest revision. If
// all runs of that revision failed, no earlier revision is judged instead.
func Verify(rows []store.Row, o VerifyOptions) (*Verification, error) {
	v := &Verification{Schema: VerificationSchema, Asked: o.Asked, Since: o.Since, Groups: []Gate{}, known: map[string]bool{}}
	v.RegisterKnown(rows)
	if o.SameSystem {
		rows = asOneSystem(rows)
	}
	fit, out := fit(rows, o.Untrusted)
	v.LeftOut = orEmpty(out)
	if len(fit) == 0 && count(rows, died) == 0 {
		switch n := len(out); n {
		case 0:
			return nil, errors.New("no reports")
		case 1:
			return nil, fmt.Errorf("no report %w: %s is %s", noneFit(out), out[0].ID, out[0].Why)
		default:
			return nil, fmt.Errorf("none of the %d reports %w: %s is %s", n, noneFit(out), out[0].ID, out[0].Why)
		}
	}
	if o.Against != nil {
		if err := v.against(rows, o); err != nil {
			return nil, err
		}
		v.Verdict = v.worst()
		return v, nil
	}
	for _, b := range bundlesWithUnfit(rows, notHistory, o.Untrusted) {
		if g, ok := gate(b, nil, o); ok {
			v.Groups = append(v.Groups, g)
		}
	}
	for i := range v.Groups {
		v.Groups[i].Behind = v.later(&v.Groups[i])
	}
	v.nameOtherSystems()
	v.Verdict = v.worst()
	return v, nil
}

// later is the newest revision that is later than a workload's own, of another
// workload of the same branch and system: those have a revision in common.
func (v *Verification) later(g *Gate) (found *Level) {
	own := g.newest()
	if own.Revision == "" {
		return nil
	}
	common := func(h *Gate) bool {
		return slices.ContainsFunc(h.Revisions, func(l Level) bool {
			return l.Revision != "" && slices.ContainsFunc(g.Revisions, func(o Level) bool { return o.Revision == l.Revision })
		})
	}
	for i := range v.Groups {
		h := &v.Groups[i]
		n := h.newest()
		if h.Branch != g.Branch || n.Revision == "" || n.Revision == own.Revision || !n.Date.After(own.Date) || found != nil && !n.Date.After(found.Date) {
			continue
		}
		if common(h) {
			found = n
		}
	}
	return found
}

func (g *Gate) newest() *Level { return &g.Revisions[len(g.Revisions)-1] }

// notHistory is whether a field may differ within a history: the revision, on
// one branch.
func notHistory(name string) bool { return name != "branch" && store.OfRevision(name) }

// worst is the worst verdict of all groups.
func (v *Verification) worst() string {
	out := NotWorse
	if len(v.Missing) > 0 {
		out = CannotTell
	}
	for i := range v.Groups {
		out = worse(out, v.Groups[i].Verdict)
	}
	return out
}

// gateOrder is the order of verdicts, the worst last.
var gateOrder = []string{NotWorse, CannotTell, Worse}

// worse is the worse of two verdicts.
func worse(a, b string) string {
	if slices.Index(gateOrder, b) > slices.Index(gateOrder, a) {
		return b
	}
	return a
}

// gate verifies one history, or its newest revision against a baseline; false if
// users ended all of its runs.
func gate(b bundle, baseline []store.Row, o VerifyOptions) (Gate, bool) {
	judgeable := func(r store.Row) bool { return unfit(&r, true) == "" }
	// Without a revision, a run that a user ended or that is still running is
	// not one.
	rows := slices.DeleteFunc(slices.Clone(b.rows), func(r store.Row) bool { return aborted(&r) && revisionName(&r) == "" })
	if len(rows) == 0 {
		return Gate{}, false
	}
	revisions := historyOf(rows, o.Untrusted)
	before := "before it"
	if baseline != nil {
		before = ofBaseline
		revisions, rows = newestAgainst(baseline, revisions[len(revisions)-1], o.Untrusted)
	}
	g := Gate{
		Op: rows[0].Text("op"), Target: rows[0].Text("target"), Branch: rows[0].Text("branch"),
		Workload: orEmpty(b.settings), Steps: []DatedStep{}, From: rows[0].At, key: b.key, like: b.rows[max(0, slices.IndexFunc(b.rows, judgeable))],
		baseline: baseline != nil,
	}
	_, g.LeftOut = fit(rows, o.Untrusted)
	g.LeftOut = orEmpty(g.LeftOut)
	g.Noisy = count(rows, func(r *store.Row) bool { return noisy(r) && unfit(r, o.Untrusted) == "" })
	if n := len(revisions) - mostRevisions; n > 0 {
		g.Older, revisions = n, revisions[n:]
	}
	newest := revisions[len(revisions)-1]
	var base []store.Row // those that can be judged
	earlier := slices.Clone(newest.earlier)
	for _, r := range revisions[:len(revisions)-1] {
		base = append(base, r.rows...)
		earlier = append(append(append(earlier, r.earlier...), r.rows...), r.out...)
	}
	g.Survival = survival(earlier, slices.Concat(newest.rows, newest.out), o.Untrusted, "of the newest revision", before)
	g.Verdict = g.Survival.Gate
	qs := primary(measured(base, newest.rows)...)
	all := make([]contest, len(qs))
	for i, q := range qs {
		samples, at := levels(revisions, q.field)
		all[i] = contest{quantity: q, history: true, effect: o.Effects.of(q)}
		if len(at) == 0 {
			continue
		}
		found := steps(revisions, samples, at, q, max(o.Effects.of(q), leastStepEffect))
		if _, inARow := measuredInARow(rowsAt(revisions, at)); inARow && newest.name == "" {
			found = nil // they are not independent, and say what happened on the machine at that time
		}
		g.Steps = append(g.Steps, found...)
		if at[len(at)-1] != len(revisions)-1 { // the newest lacks the quantity
			samples, at = append(samples, nil), append(at, len(revisions)-1)
		}
		for _, k := range at[baselineStart(samples, at, found) : len(at)-1] {
			all[i].base = append(all[i].base, revisions[k].rows)
		}
		all[i].candidate = newest.rows
		if all[i].pooled = muchLater(all[i].base, newest.rows); all[i].pooled || len(all[i].base) < stats.Levels { // else they show how they differ
			all[i].between = betweenGroups(&q, slices.Concat(all[i].base...), newest.rows, all[i].base)
		}
	}
	slices.SortStableFunc(g.Steps, func(a, b DatedStep) int { return a.Index - b.Index })
	for i, j := range judgeContests(all, stats.Options{Alpha: newAlpha, Confidence: gateConfidence}) {
		r := GateRow{Judgement: j, Against: len(all[i].base), baseline: baseline != nil}
		r.Primary = true
		r.decide(&all[i], g.Steps)
		g.Rows = append(g.Rows, r)
		g.Verdict = worse(g.Verdict, r.Gate)
	}
	for _, r := range revisions {
		l := Level{Revision: r.name, Date: r.date, Reports: ids(r.rows), LeftOut: ids(r.out), Medians: map[string]*float64{}}
		for _, q := range qs {
			l.Medians[q.field] = finite(stats.Median(sample(r.rows, q.field), stats.Confidence).Median)
		}
		g.Revisions = append(g.Revisions, l)
	}
	return g, true
}

// decide sets the gate's verdict on a row.
func (r *GateRow) decide(c *contest, found []DatedStep) {
	unbounded := r.raw.Difference.Worst(c.better)
	switch {
	case r.Verdict == stats.Worse:
		r.Gate = Worse
	case r.Verdict == stats.Better, r.Verdict == stats.Same:
		r.Gate = NotWorse
	case r.raw.Verdict == stats.Worse: // than a base that may have been as bad
		r.Gate, r.Reason = CannotTell, r.Why
	case len(c.candidate) == 0:
		r.Gate, r.Reason = CannotTell, "no report of the newest revision can be judged"
	case math.IsNaN(r.raw.P):
		r.Gate, r.Reason = CannotTell, c.littleHistory(r.baseline)
	case r.worst < r.Effect, r.worst == 0:
		r.Gate = NotWorse
	case unbounded < r.Effect || r.raw.Verdict != stats.Unknown: // its numbers are lower bounds, or its generators moved them
		r.Gate, r.Reason = CannotTell, r.boundWords()
		if !anyBound(c.field, c.base...) && !anyBound(c.field, c.candidate) {
			r.Reason = movedWords
		}
	case r.Widened && !anyBound(c.field, c.base...) && !anyBound(c.field, c.candidate): // the end of the interval that is shown
		r.Gate, r.Reason = CannotTell, r.noiseReason(r.worst)
	default:
		r.Gate, r.Reason = CannotTell, r.noiseReason(unbounded)
	}
	// A step for the worse before the newest revision still counts.
	for _, s := range found {
		switch {
		case s.Field != c.field:
		case s.Stands:
			r.Gate = Worse
			r.Reason = fmt.Sprintf("%s since %s, and not recovered", s.by(), s.at())
		case s.Doubtful && r.Gate == NotWorse:
			r.Gate = CannotTell
			r.Reason = fmt.Sprintf("%s since %s; some events before that were never answered, so it may have been as bad then", s.by(), s.at())
		}
	}
}

// noiseReason says how much worse a row may be, and which effect would accept
// that.
func (r *GateRow) noiseReason(worst float64) string {
	relative := r.raw.Difference.Relative
	text := "too noisy: it may be " + plainAmount(worst, relative, r.kind) + " worse; "
	if !relative { // an effect is a share of the base, which does not exist if the base is 0
		if r.AnyChange {
			return text + "the earlier value is 0, so any change counts; more repetitions of this revision would decide it"
		}
		worst /= math.Abs(r.raw.Base.Median)
	}
	effect := math.Ceil(worst*100+0.5) / 100
	if !(effect < MostEffect) {
		return text + "more repetitions of this revision would decide it"
	}
	return fmt.Sprintf("%s--min-effect %s would decide it, or more repetitions of this revision", text, percent(effect))
}

// littleHistory says how much history exists and how much is needed.
func (c *contest) littleHistory(baseline bool) string {
	row := c.row(raiseNone)
	n := 0
	for _, s := range row.History {
		n += len(s)
	}
	if baseline {
		return fmt.Sprintf("too few reports: %d of the baseline and %d of the newest; needed: %d on both sides", n, len(row.Candidate), stats.Least)
	}
	if n == 0 {
		return "too little history: no earlier revision"
	}
	if c.pooled && len(c.base) >= stats.Levels {
		return fmt.Sprintf("too little history: the %s before it were measured in a row and it was measured much later, so it needs %d reports of its own, and has %d",
			units.Plural(len(c.base), "revision"), stats.Least, len(row.Candidate))
	}
	return fmt.Sprintf("too little history: %s of %s before it and %d of its own; needed: %d revisions, or %d reports on both sides",
		units.Plural(n, "report"), units.Plural(len(c.base), "revision"), len(row.Candidate), stats.Levels, stats.Least)
}

// at is the revision and date of a step.
func (s *DatedStep) at() string { return dated(s.Revision, s.Date) }

func dated(revision string, date time.Time) string {
	day := date.UTC().Format("2006-01-02 15:04")
	if revision == "" {
		return day
	}
	return shortRevision(revision) + " of " + day
}

// Confirmed is what a confirming run showed.
type Confirmed struct {
	Reports []string `json:"reports"`
	Again   bool     `json:"again"`   // it was as bad again
	Unknown bool     `json:"unknown"` // it may have been: the new times are lower bounds
	Died    int      `json:"died"`    // the number of these runs whose system died, which is as bad
}

// RegisterKnown registers reports that exist before a confirming run, so
// Confirm does not count them as new. The reports passed to Verify are known,
// including those that are left out or too old to be examined.
func (v *Verification) RegisterKnown(rows []store.Row) {
	for i := range rows {
		v.known[rows[i].ID] = true
	}
}

// Confirm judges the worse workloads again, after more runs of the newest
// revisions: rows are all reports, old and new. Only the new ones decide
// whether the result is as bad again, because the old ones were selected by the
// alarm. If it is not, the verdict is that of all reports together, and cannot
// tell if that is still worse. A run whose system died is as bad as any, even
// if systems died before. A workload without a new report is an error.
func (v *Verification) Confirm(rows []store.Row, o VerifyOptions) (*Verification, error) {
	again, err := Verify(rows, o)
	if err != nil {
		return nil, err
	}
	if o.SameSystem {
		rows = asOneSystem(rows)
	}
	for _, old := range v.Groups {
		if old.Verdict != Worse {
			continue
		}
		i := slices.IndexFunc(again.Groups, func(g Gate) bool { return g.has(&old.like) })
		newest := old.Revisions[len(old.Revisions)-1]
		var made []store.Row
		for _, r := range rows {
			if !v.known[r.ID] && old.has(&r) && (newest.Revision == "" || revisionName(&r) == newest.Revision) {
				made = append(made, r)
			}
		}
		fresh, out := fit(made, o.Untrusted)
		if i >= 0 && count(made, died) > 0 {
			usable := func(r store.Row) bool { return died(&r) || unfit(&r, o.Untrusted) == "" }
			made = slices.DeleteFunc(made, func(r store.Row) bool { return !usable(r) })
			again.Groups[i].Confirmed = &Confirmed{Reports: ids(made), Again: true, Died: count(made, died)}
			again.Groups[i].Verdict = Worse
			continue
		}
		if len(fresh) == 0 || i < 0 {
			err := fmt.Errorf("the confirming command made no new usable report of %s", workloadWords(old.Workload))
			if len(out) > 0 {
				err = fmt.Errorf("%w: %s is %s", err, out[0].ID, out[0].Why)
			}
			return nil, err
		}
		g := &again.Groups[i]
		g.Confirmed = &Confirmed{Reports: ids(fresh)}
		g.Confirmed.Again, g.Confirmed.Unknown = old.again(fresh)
		switch {
		case g.Confirmed.Again:
			g.Verdict = Worse
		case g.Verdict == Worse:
			g.Verdict = CannotTell
		}
	}
	again.Verdict = again.worst()
	return again, nil
}

// again is whether new runs are as bad as what raised the alarm: on any row
// that was worse, by at least the effect. unknown: they are not as far as is
// known, but some events were never answered.
func (g *Gate) again(fresh []store.Row) (again, unknown bool) {
	for _, r := range g.Rows {
		s := sample(fresh, r.Field)
		if r.Gate != Worse || len(s) == 0 {
			continue
		}
		better := stats.More
		if r.Better == "less" {
			better = stats.Less
		}
		level := math.NaN() // what it should be
		if r.Verdict == stats.Worse && r.Base.Median != nil {
			level = *r.Base.Median
		}
		for _, step := range g.Steps {
			if step.Field == r.Field && step.Stands {
				level = step.Before
				break
			}
		}
		if worseBy(level, stats.Median(s, stats.Confidence).Median, better) >= r.asked {
			return true, false
		}
		unknown = unknown || better == stats.Less && lowerBounds(r.Field, fresh)
	}
	return false, unknown
}
