package judge

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"carronade/internal/store"
	"carronade/internal/verdict/stats"
	"carronade/measure"
)

// ComparisonSchema names the format of a comparison's JSON.
const ComparisonSchema = "carronade.comparison/1"

// Repetitions is the smallest number of runs on each side that allows a
// verdict.
const Repetitions = stats.Least

// Mixed is the verdict of a comparison whose rows contradict each other.
const Mixed = "mixed"

// CompareOptions say how to compare.
type CompareOptions struct {
	BaseName, CandidateName string // the names of the sides, as requested
	Effects                 Effects
	Metric                  string  // the field that decides; "": see decider
	Alpha                   float64 // the largest share of comparisons of equal sides with a verdict; 0: stats.Defaults
	Untrusted               bool    // judge untrustworthy runs too
	// Revisions judges all revisions of a side, not only the newest of each
	// workload and branch.
	Revisions bool
	// SameSystem: all reports are of one system, whatever its address.
	SameSystem bool
	// Earlier are reports that may be of the same workloads, made before or between those of the
	// sides: they show how far groups of equal runs are apart.
	Earlier []store.Row
}

// statistics are the options of tests and intervals.
func (o *CompareOptions) statistics() stats.Options {
	s := stats.Defaults
	if o.Alpha > 0 {
		s.Alpha, s.Confidence = o.Alpha, 1-o.Alpha
	}
	return s
}

// CompareFields are the fields of rows that Compare reads.
func CompareFields() []string {
	out := []string{
		store.AllIndependent, systemLabel, indexLabel, "slo", "target.", "host.", "system.", "flag.", store.AttachmentPrefix, store.OriginalPrefix, "version", "seed", "op", "target", "kind",
		"trusted", "trust_level", "machine", "mode", "elapsed", "freeze_total", "partial", "replaces", "stopped", "repetition", "repetitions", "branch", "revision", "revision_date", "unstaged_changes",
	}
	for _, t := range times {
		for _, at := range distributionPoints {
			field := timeField(t, at)
			if out = append(out, field); lowerField(field) != "" {
				out = append(out, lowerField(field))
			}
		}
	}
	return append(append(out, partFields()...), Judged()...)
}

// A Comparison is two sides of reports compared with each other, by workload.
type Comparison struct {
	Schema    string `json:"schema"`
	Base      Side   `json:"base"`
	Candidate Side   `json:"candidate"`
	Pairs     []Pair `json:"pairs"`
	// Unpaired are workloads that only one side has.
	Unpaired []Unpaired `json:"unpaired"`
	Verdict  string     `json:"verdict"`           // of all pairs: better, worse, Mixed, same, cannot tell
	Machine  string     `json:"machine,omitempty"` // what other programs took of it
}

// A Side is the reports of one side.
type Side struct {
	Name    string    `json:"name"`
	Reports []string  `json:"reports"`
	LeftOut []LeftOut `json:"left_out"`
	Older   int       `json:"older"` // reports of other revisions than the newest, not judged
}

// An Unpaired workload has no partner.
type Unpaired struct {
	Side     string    `json:"side"` // base, candidate
	System   string    `json:"system"`
	Workload []Setting `json:"workload"`
	Reports  []string  `json:"reports"`
}

// A Pair is one workload, or two that differ, on both sides.
type Pair struct {
	Op           string       `json:"op"`
	Target       string       `json:"target"`
	Workload     []Setting    `json:"workload"`
	Differs      []Differing  `json:"differs"`  // settings and revisions
	Findings     []Finding    `json:"findings"` // what speaks against comparing
	Base         []string     `json:"base"`     // ids
	Candidate    []string     `json:"candidate"`
	Survival     Survival     `json:"survival"`
	Verdict      string       `json:"verdict"` // better, worse, Mixed, same, cannot tell
	Reason       string       `json:"reason"`  // of the verdict
	Rows         []Judgement  `json:"rows"`
	Distribution []Percentile `json:"distribution"`
	Parts        []Part       `json:"parts,omitempty"` // of the response times

	replaced string   // why replaced runs allow no verdict
	guards   []string // see guards
}

// A Judgement is one row of a comparison.
type Judgement struct {
	Field      string    `json:"field"`
	Title      string    `json:"title"`
	Unit       string    `json:"unit"`
	Better     string    `json:"better"` // more, less
	Primary    bool      `json:"primary"`
	Base       Estimated `json:"base"`
	Candidate  Estimated `json:"candidate"`
	Difference *Shift    `json:"difference"`
	P          *float64  `json:"p"`
	Adjusted   *float64  `json:"p_adjusted"`
	Confidence float64   `json:"confidence"` // of the difference's interval
	// Effect is the smallest difference worth naming: a share where the
	// difference is relative, else in the row's unit.
	Effect float64 `json:"effect"`
	// AnyChange: the base is 0, so shares are undefined, and any significant
	// change counts.
	AnyChange bool `json:"any_change,omitempty"`
	// Between is how far equal runs that were made at different times may be apart, in the scale of
	// Effect: only a difference beyond it counts. 0: the runs of both sides alternated, or a history
	// shows it.
	Between float64       `json:"between,omitempty"`
	Verdict stats.Verdict `json:"verdict"`
	Why     string        `json:"why,omitempty"`
	// LowerBounds: one of the medians is only a lower bound.
	LowerBounds bool `json:"lower_bounds,omitempty"`
	// Widened: the generators of noisy runs may have moved values. The
	// difference's interval includes the values without that, and the verdict
	// is true for both.
	Widened bool `json:"widened,omitempty"`

	kind  store.ValueKind
	raw   stats.Comparison
	asked float64 // the requested effect, a share
	worst float64 // upper limit of how much worse it is, in the scale of Effect, with lower bounds as bad as possible
}

// Estimated is a median with its interval. Null: it does not exist.
type Estimated struct {
	N      int      `json:"n"`
	Median *float64 `json:"median"`
	Lo     *float64 `json:"lo"`
	Hi     *float64 `json:"hi"`
	Min    *float64 `json:"min"`
	Max    *float64 `json:"max"`
	// AtLeast: the median is a lower bound, since the percentile fell among
	// events that were never answered.
	AtLeast bool `json:"at_least,omitempty"`
	// AtMost: the median is an upper bound, since the generators may have lengthened the time.
	AtMost bool `json:"at_most,omitempty"`
}

// Shift is a difference with its interval; relative ones are shares of the
// base, others are in the row's unit.
type Shift struct {
	Center   float64  `json:"center"`
	Lo       *float64 `json:"lo"`
	Hi       *float64 `json:"hi"`
	Relative bool     `json:"relative"`
}

// A Percentile is the median of the values that the runs of each side have at
// one percentile of a time.
type Percentile struct {
	Time      string   `json:"time"`
	At        string   `json:"at"` // min, p50, p99.9, max
	Base      *float64 `json:"base_s"`
	Candidate *float64 `json:"candidate_s"`
	// Which of them are lower bounds.
	BaseAtLeast      bool `json:"base_at_least,omitempty"`
	CandidateAtLeast bool `json:"candidate_at_least,omitempty"`
	// Which of them are upper bounds.
	BaseAtMost      bool `json:"base_at_most,omitempty"`
	CandidateAtMost bool `json:"candidate_at_most,omitempty"`
}

// Compare compares the candidate's reports with the base's. Reports of one workload on one system are
// repetitions of each other. Each workload that both sides have is compared separately, on each system
// that both have; if each side has one workload, these are compared even if they differ, but not if their
// operations do. The error explains why nothing can be compared.
func Compare(base, candidate []store.Row, o CompareOptions) (*Comparison, error) {
	for i := range base {
		if slices.ContainsFunc(candidate, func(r store.Row) bool { return r.ID == base[i].ID }) {
			return nil, fmt.Errorf("report %s is %w", base[i].ID, ErrBothSides)
		}
	}
	c := &Comparison{
		Schema: ComparisonSchema, Pairs: []Pair{}, Unpaired: []Unpaired{},
		Base: Side{Name: o.BaseName}, Candidate: Side{Name: o.CandidateName},
		Machine: machineText(base, candidate),
	}
	if o.SameSystem {
		base, candidate, o.Earlier = asOneSystem(base), asOneSystem(candidate), asOneSystem(o.Earlier)
	}
	o.Earlier, _ = fit(o.Earlier, o.Untrusted)
	if !o.Revisions { // before leaving reports out: if all runs of a revision failed, the one before must not replace it
		base, c.Base.Older = newestRevisions(base)
		candidate, c.Candidate.Older = newestRevisions(candidate)
	}
	for side, rows := range map[*Side][]store.Row{&c.Base: base, &c.Candidate: candidate} {
		var judged []store.Row
		judged, side.LeftOut = fit(rows, o.Untrusted)
		side.Reports, side.LeftOut = ids(judged), orEmpty(side.LeftOut)
	}
	if len(c.Base.Reports) == 0 || len(c.Candidate.Reports) == 0 && count(candidate, died) == 0 {
		if c.Machine != "" {
			return nil, fmt.Errorf("%w; %s", nothingFit(c), c.Machine)
		}
		return nil, nothingFit(c)
	}
	left, right := bySystem(bundlesWithUnfit(base, comparedOver, o.Untrusted)), bySystem(bundlesWithUnfit(candidate, comparedOver, o.Untrusted))
	pairs, a, b := partners(left, right)
	var deciding []contest // of each pair
	for _, both := range pairs {
		if base, candidate := both[0].rows[0].Text("op"), both[1].rows[0].Text("op"); base != candidate {
			return nil, fmt.Errorf("the sides are of %w: the base's reports are of %s and the candidate's of %s", ErrOperations, base, candidate)
		}
		p, main := pair(both[0], both[1], o)
		c.Pairs, deciding = append(c.Pairs, p), append(deciding, main)
	}
	for _, u := range a {
		c.Unpaired = append(c.Unpaired, Unpaired{"base", u.system, u.settings, ids(u.rows)})
	}
	for _, u := range b {
		c.Unpaired = append(c.Unpaired, Unpaired{"candidate", u.system, u.settings, ids(u.rows)})
	}
	if len(c.Pairs) == 0 {
		if sameWorkload(a, b) {
			return nil, fmt.Errorf("no system is on both sides: the base's reports are of %s and the candidate's of %s", systemsOf(a), systemsOf(b))
		}
		return nil, fmt.Errorf("no workload is on both sides: the base has %d, the candidate %d, all different", len(left), len(right))
	}
	for i, main := range judgeContests(deciding, o.statistics()) {
		c.Pairs[i].decide(main)
	}
	c.Verdict = c.verdict()
	return c, nil
}

// newestRevisions keeps, for each workload and branch, the reports of the
// newest revision: older ones are of another system. Reports without a revision
// are kept.
func newestRevisions(rows []store.Row) (kept []store.Row, older int) {
	for _, b := range bundlesWithUnfit(rows, notHistory, true) {
		var described []store.Row
		for _, r := range b.rows {
			if revisionName(&r) == "" {
				kept = append(kept, r)
			} else {
				described = append(described, r)
			}
		}
		if all := revisionsOf(described); len(all) > 0 {
			newest := all[len(all)-1].rows
			kept = append(kept, newest...)
			older += len(described) - len(newest)
		}
	}
	slices.SortStableFunc(kept, byTime)
	return kept, older
}

// Reasons why nothing can be compared.
var (
	ErrBothSides = errors.New("on both sides")
	ErrNoneFit   = errors.New("can be judged")
	// ErrUntrusted is an ErrNoneFit: some could be judged if untrusted runs were accepted.
	ErrUntrusted = fmt.Errorf("%w", ErrNoneFit)
	// ErrOperations: what one operation takes says nothing about another.
	ErrOperations = errors.New("different operations")
)

// nothingFit is the error of a side whose reports are all left out.
func nothingFit(c *Comparison) error {
	for _, s := range []struct {
		name string
		side *Side
	}{{"base", &c.Base}, {"candidate", &c.Candidate}} {
		if len(s.side.Reports) > 0 {
			continue
		}
		out := s.side.LeftOut
		switch len(out) {
		case 0:
			return fmt.Errorf("the %s has no reports", s.name)
		case 1:
			return fmt.Errorf("no report of the %s %w: %s is %s", s.name, noneFit(out), out[0].ID, out[0].Why)
		}
		return fmt.Errorf("none of the %s's %d reports %w: %s is %s", s.name, len(out), noneFit(out), out[0].ID, out[0].Why)
	}
	return errors.New("nothing to compare")
}

func ids(rows []store.Row) []string {
	out := make([]string, len(rows))
	for i := range rows {
		out[i] = rows[i].ID
	}
	return out
}

// pair compares the rows of two bundles that can be judged. It leaves the row
// that decides, which is judged together with those of other pairs.
func pair(l, r bundle, o CompareOptions) (Pair, contest) {
	base, _ := fit(l.rows, o.Untrusted)
	candidate, _ := fit(r.rows, o.Untrusted)
	p := Pair{
		Op: l.rows[0].Text("op"), Target: l.rows[0].Text("target"),
		Base: ids(base), Candidate: ids(candidate),
		Survival: survival(l.rows, r.rows, o.Untrusted, "of the candidate", "of the base"),
		replaced: replacedWords(l.rows, r.rows),
	}
	p.Findings = p.Survival.findings()
	if p.replaced != "" {
		p.Findings = append(p.Findings, Finding{true, "runs", p.replaced})
	}
	if len(base) > 0 && len(candidate) > 0 {
		p.Findings = append(p.Findings, findings(base, candidate)...)
		p.Differs = settingsDiffer(base, candidate)
	} else {
		p.Differs = settingsDiffer(l.rows, r.rows)
	}
	p.Findings = append(p.Findings, timeFindings(l.rows, r.rows)...)
	slices.SortStableFunc(p.Findings, severeFirst)
	p.Workload = []Setting{}
	for _, s := range l.settings {
		if slices.Contains(r.settings, s) {
			p.Workload = append(p.Workload, s)
		}
	}
	sides := measured(base, candidate)
	earlier := [][][]store.Row{o.earlier(&l, candidate), o.earlier(&r, base)}
	contests := func(qs ...quantity) []contest {
		out := make([]contest, len(qs))
		for i, q := range qs {
			out[i] = contest{
				quantity: q, base: [][]store.Row{base}, candidate: candidate,
				effect: o.Effects.of(q), between: betweenGroups(&q, base, candidate, earlier...),
			}
		}
		return out
	}
	main := decider(o.Metric, sides...)
	p.Rows = judgeContests(contests(exploratory(main, sides...)...), o.statistics())
	p.guards = guards(o.Metric, sides...)
	p.Distribution, p.Parts = distribution(base, candidate), parts(base, candidate)
	p.Differs, p.Findings, p.Distribution = orEmpty(p.Differs), orEmpty(p.Findings), orEmpty(p.Distribution)
	return p, contests(main)[0]
}

// earlier are the groups of earlier runs of a side's workload, without those of the other side.
func (o *CompareOptions) earlier(side *bundle, other []store.Row) [][]store.Row {
	var rows []store.Row
	for i := range o.Earlier {
		r := &o.Earlier[i]
		if key(r, comparedOver) == side.key && !slices.ContainsFunc(other, func(o store.Row) bool { return o.ID == r.ID }) {
			rows = append(rows, *r)
		}
	}
	return groupsOf(rows)
}

// comparedOver is whether a variable may differ between the reports of a side.
func comparedOver(name string) bool { return environment(name) || store.OfRevision(name) }

// settingsDiffer are the settings and revisions that differ.
func settingsDiffer(base, candidate []store.Row) []Differing {
	return differing(base, candidate, func(f store.Field) bool {
		if environment(f.Name) {
			return false
		}
		return f.Value.Independent || store.OfRevision(f.Name) && f.Name != "revision_date"
	})
}

// measured are the sides with at least one report that can be judged.
func measured(sides ...[]store.Row) [][]store.Row {
	return slices.DeleteFunc(sides, func(rows []store.Row) bool { return len(rows) == 0 })
}

// judgement turns a comparison of a quantity into a row of a document.
func judgement(q quantity, c stats.Comparison, kind store.ValueKind) Judgement {
	j := Judgement{
		Field: q.field, Title: q.title, Unit: unitOf(kind), Better: "more", Confidence: stats.Confidence, Effect: c.Effect, AnyChange: c.AnyChange, Between: c.Between, Verdict: c.Verdict,
		Base: estimated(c.Base), Candidate: estimated(c.Candidate), P: finite(c.P), Adjusted: finite(c.Adjusted),
		Why: c.Doubt.String(), kind: kind, raw: c,
	}
	if q.better == stats.Less {
		j.Better = "less"
	}
	if center := finite(c.Difference.Center); center != nil {
		j.Difference = &Shift{Center: *center, Relative: c.Difference.Relative}
		if c.Difference.Bounded() {
			j.Difference.Lo, j.Difference.Hi = finite(c.Difference.Lo), finite(c.Difference.Hi)
		}
	}
	return j
}

func estimated(e stats.Estimate) Estimated {
	out := Estimated{N: e.N, Median: finite(e.Median), Min: finite(e.Min), Max: finite(e.Max)}
	if e.Bounded() {
		out.Lo, out.Hi = finite(e.Lo), finite(e.Hi)
	}
	return out
}

// finite is a number for JSON, nil if JSON cannot represent it.
func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// orEmpty replaces nil by an empty list, so that JSON has no null.
func orEmpty[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// unitOf names the unit that values of a kind have in documents.
func unitOf(k store.ValueKind) string {
	switch k {
	case store.KindRate:
		return "/s"
	case store.KindDuration:
		return "s"
	case store.KindSize:
		return "bytes"
	case store.KindSpeed:
		return "bytes/s"
	case store.KindShare:
		return "share"
	}
	return ""
}

// distributionPoints are the percentiles that describe a distribution.
var distributionPoints = func() []string {
	out := []string{"min"}
	for _, p := range measure.StandardPercentiles() {
		out = append(out, measure.PercentileName(p))
	}
	return append(out, "max")
}()

// Share is the share of events whose time was at most this long. It is false
// for the maximum: its share depends on the number of events.
func (p *Percentile) Share() (float64, bool) {
	switch digits, ok := strings.CutPrefix(p.At, "p"); {
	case ok:
		v, err := strconv.ParseFloat(digits, 64)
		return v / 100, err == nil
	case p.At == "min":
		return 0, true
	}
	return 0, false
}

// timeField is the field of a percentile of a time.
func timeField(name, at string) string { return name + "_" + strings.ReplaceAll(at, ".", "") }

// distribution is the percentiles of every time that both sides have.
func distribution(base, candidate []store.Row) []Percentile {
	var out []Percentile
	for _, t := range times {
		for _, at := range distributionPoints {
			field := timeField(t, at)
			a, b := sample(base, field), sample(candidate, field)
			if len(a) == 0 || len(b) == 0 {
				continue
			}
			out = append(out, Percentile{
				Time: t, At: at,
				Base: finite(stats.Median(a, stats.Confidence).Median), Candidate: finite(stats.Median(b, stats.Confidence).Median),
				BaseAtLeast: lowerBounds(field, base), CandidateAtLeast: lowerBounds(field, candidate),
				BaseAtMost: upperBounds(field, base), CandidateAtMost: upperBounds(field, candidate),
			})
		}
	}
	return out
}
