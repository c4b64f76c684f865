package judge

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"carronade/internal/store"
	"carronade/internal/verdict/stats"
	"carronade/units"
)

// CollateSchema names the format of a collation's JSON.
const CollateSchema = "carronade.collation/1"

// CollateGroups is how many groups are shown by default.
const CollateGroups = 20

// CollateOptions say what to collate, and how to show it.
type CollateOptions struct {
	Var     string // the field whose values stand side by side
	Filters store.Filters
	Sort    string     // a field; with "-" before it in reverse order; "": by VAR, the newest group first
	Last    store.Last // the number of groups, or the age of the reports to start from
	All     bool       // include groups in which VAR has only one value
	Columns []string   // further columns: fields with numbers
	Now     time.Time
	// FilterStarts: all filters choose the reports to start from, and none those next to them.
	FilterStarts bool
	// SameSystem: all reports are of one system, whatever its address.
	SameSystem bool
}

// CollateFields are the fields of rows that Collate reads.
func CollateFields(o CollateOptions) []string {
	out := append(slices.Clone(systemFields), store.AllIndependent, "flag.", "trusted", "trust_level", "mode", "elapsed", "acked", "failed", "freeze_total", "partial", "started", "revision_date", "kind", o.Var, strings.TrimPrefix(o.Sort, "-"))
	for _, name := range o.Columns {
		out = append(out, columnField(name))
	}
	for _, c := range slices.Concat(columns, unshown) {
		out = append(out, c.field)
		if lower := lowerField(c.field); lower != "" {
			out = append(out, lower)
		}
	}
	return slices.DeleteFunc(o.Filters.Fields(out), func(s string) bool { return s == "" })
}

// CollateFilters are the filters that apply to every row, so that a store may
// apply them before Collate does. If no row is left, Collate of all rows
// explains why.
func CollateFilters(o CollateOptions) (out store.Filters) {
	if o.FilterStarts {
		return nil
	}
	name := store.Canonical(o.Var)
	var vs []*variable
	for _, n := range []string{name, flagPrefix + name, labelPrefix + name} {
		vs = append(vs, newVariable(n, true))
	}
	for _, f := range o.Filters {
		if !slices.ContainsFunc(vs, func(v *variable) bool { return v.chooses(f) }) {
			out = append(out, f)
		}
	}
	return out
}

// A Collation is reports side by side, in groups in which every independent
// variable but one is the same.
type Collation struct {
	Schema   string    `json:"schema"`
	Variable string    `json:"variable"`
	Reports  int       `json:"reports"` // those that match the filters
	Groups   []Group   `json:"groups"`
	Alone    int       `json:"alone"` // groups not shown: VAR has one value in them
	More     int       `json:"more"`  // groups not shown: beyond the limit
	Without  int       `json:"without_variable"`
	LeftOut  []LeftOut `json:"left_out"`
	Notes    []string  `json:"notes"`

	columns []quantity
	filters bool
}

// A Group is rows that differ only in VAR.
type Group struct {
	Equal   []Setting   `json:"equal"`   // the independent variables, except VAR and what goes with it
	Differs []string    `json:"differs"` // those of them that are not the same in all groups
	Follows []Differing `json:"follows"` // what else differs here, since it follows from VAR
	Rows    []Line      `json:"rows"`

	newest time.Time
}

// A Line is the joined repetitions of one value of VAR.
type Line struct {
	Value        any             `json:"value"`    // of VAR: store.Value.Any
	Text         string          `json:"text"`     // of VAR, as users see it: in full where others of the group look equal
	Settings     []Setting       `json:"settings"` // those that every row names: rowSettings
	Reports      []string        `json:"reports"`  // ids, newest first
	At           time.Time       `json:"at"`       // of the newest
	Revision     string          `json:"revision,omitempty"`
	RevisionDate *time.Time      `json:"revision_date,omitempty"`
	Flags        []Setting       `json:"flags,omitempty"` // of the system, where they may differ in a group
	Untrusted    int             `json:"untrusted"`       // of the reports
	Noisy        int             `json:"noisy"`           // of the reports
	Older        int             `json:"older"`           // reports of other revisions, left out
	Cells        map[string]Cell `json:"measured"`

	entries family
	value   store.Value
}

// A Cell is one quantity of a line: the median of the repetitions and its
// interval. Lo and Hi are null if there are too few repetitions.
type Cell struct {
	N       int      `json:"n"`
	Median  float64  `json:"median"`
	Lo      *float64 `json:"lo"`
	Hi      *float64 `json:"hi"`
	Spread  *float64 `json:"spread"` // half the interval, or half the range, over the median
	AtLeast bool     `json:"at_least"`
	AtMost  bool     `json:"at_most,omitempty"` // the generator may have lengthened it
	Best    bool     `json:"best"`              // better than every other row of the group, by the statistics
	Ahead   bool     `json:"ahead"`             // far better than every other row, with too few repetitions to prove it
	Unit    string   `json:"unit"`

	kind store.ValueKind
}

// Collate groups reports. Rows may be all reports of a store, before filtering:
// a filter on VAR selects the reports to start from, and the rows next to them
// come from all reports that match the other filters.
func Collate(rows []store.Row, o CollateOptions) (*Collation, error) {
	if err := checkVar(o.Var); err != nil {
		return nil, err
	}
	c := &Collation{Schema: CollateSchema, Groups: []Group{}, LeftOut: []LeftOut{}, Notes: []string{}, filters: len(o.Filters) > 0}
	v, err := variableOf(rows, o.Var)
	if err != nil {
		return nil, err
	}
	c.Variable = v.name
	s, err := sorterOf(rows, o.Sort, v.name)
	if err != nil {
		return nil, err
	}
	starts, others := v.split(o.Filters)
	if o.FilterStarts {
		starts, others = o.Filters, nil
	}
	chosen, err := applyFilters(rows, others)
	if err != nil {
		return nil, err
	}
	c.Reports = len(chosen)
	chosen, c.LeftOut = fit(chosen, true)
	if c.LeftOut == nil {
		c.LeftOut = []LeftOut{}
	}
	if o.SameSystem {
		chosen = asOneSystem(chosen)
	}
	with := v.entries(withKnown(chosen, v.mayDiffer))
	c.Without = len(chosen) - len(with)
	if err := markStarts(with, starts, o); err != nil {
		return nil, err
	}
	var groups []Group
	for _, f := range families(with) {
		groups = append(groups, v.groups(f)...)
	}
	if len(groups) == 0 {
		return nil, c.emptyError(o)
	}
	for i := range groups {
		groups[i].sort(s, v)
	}
	s.groups(groups)
	c.selectGroups(groups, o)
	if len(c.Groups) == 0 {
		c.Notes = []string{c.nothing(v, with, groups)}
		return c, nil
	}
	if c.columns, err = columnsOf(c.Groups, o.Columns); err != nil {
		return nil, err
	}
	for i := range c.Groups {
		c.Groups[i].describe(v)
		c.Groups[i].fillCells(slices.Concat(c.columns, unshown))
	}
	markDifferences(c.Groups)
	markBest(c.Groups)
	c.addNotes(v)
	return c, nil
}

// checkVar checks that VAR is the name of a field.
func checkVar(name string) error {
	if name == "" || strings.ContainsAny(name, "=<>!~") {
		return hintedError("choose the field that differs", fmt.Errorf("%q is not the name of a field", name), "VAR comes first and is only a name, such as concurrency, branch or a flag of the system; filters follow it")
	}
	return nil
}

// applyFilters returns the rows that match all filters. If none does, the error
// says how many match each filter.
func applyFilters(rows []store.Row, filters store.Filters) ([]store.Row, error) {
	m := store.NewMatcher(filters)
	var out []store.Row
	for i := range rows {
		if m.Match(&rows[i]) {
			out = append(out, rows[i])
		}
	}
	if err := m.Err(); err != nil {
		return nil, err
	}
	if len(out) > 0 {
		return out, nil
	}
	if len(rows) == 0 {
		return nil, hintedError("collate", errors.New("there are no reports"), "carronade run stores a report of every run")
	}
	return nil, noMatch(rows, filters)
}

// noMatch is the error of filters that no report matches.
func noMatch(rows []store.Row, filters store.Filters) error {
	var parts []string
	for _, f := range filters {
		n := 0
		for i := range rows {
			if (store.Filters{f}).Match(&rows[i]) {
				n++
			}
		}
		parts = append(parts, fmt.Sprintf("%s alone matches %d", f, n))
	}
	return hintedError("choose reports", fmt.Errorf("no report of %d matches all filters", len(rows)), strings.Join(parts, ", "))
}

// markStarts marks the reports to start from: those that match the filters on
// VAR and are recent enough.
func markStarts(all []*entry, filters store.Filters, o CollateOptions) error {
	m := store.NewMatcher(filters)
	since := o.Last.Since(o.Now)
	n := 0
	for _, e := range all {
		if e.start = m.Match(&e.Row) && !e.At.Before(since); e.start {
			n++
		}
	}
	switch {
	case len(all) == 0 || n > 0:
		return nil
	case m.Err() != nil:
		return m.Err()
	case since.IsZero():
		rows := make([]store.Row, len(all))
		for i, e := range all {
			rows[i] = e.Row
		}
		return noMatch(rows, filters)
	}
	return hintedError("choose reports", fmt.Errorf("none of %s is recent enough", units.Plural(len(all), "report")), "-n takes an age such as 168h, or a number of groups")
}

// emptyError says why there are no groups.
func (c *Collation) emptyError(o CollateOptions) error {
	switch {
	case c.Without > 0:
		return hintedError("collate "+o.Var, fmt.Errorf("none of %s has %s", units.Plural(c.Without, "report"), c.Variable), "other filters may match reports that have it")
	case len(c.LeftOut) > 0:
		return hintedError("collate "+o.Var, fmt.Errorf("none of %s can be used: %s", units.Plural(len(c.LeftOut), "report"), c.LeftOut[0].Why), "")
	}
	return hintedError("collate "+o.Var, errors.New("there are no reports"), "carronade run stores a report of every run")
}

// nothing says in one sentence why there is nothing to compare, and what to do.
func (c *Collation) nothing(v *variable, all []*entry, groups []Group) string {
	var first *entry // the newest report to start from
	for _, e := range all {
		if e.start {
			first = e
			break
		}
	}
	var other *entry // the one with another value that differs least from it
	var differs []string
	for _, e := range all {
		if e.valueKey == first.valueKey {
			continue
		}
		if d := v.alsoDiffers(first, e); other == nil || len(d) < len(differs) {
			other, differs = e, d
		}
	}
	if other == nil {
		in := "the only report"
		if len(all) > 1 {
			in = "all " + units.Plural(len(all), "report")
		}
		return fmt.Sprintf("%s does not vary: it is %s in %s; run the load with another value, or --all shows what is there", v.shown(), groups[0].Rows[0].Text, in)
	}
	same := "" // if only their addresses tell the systems apart
	if slices.Contains(differs, "target") && systemOf(&first.Row) != systemOf(&other.Row) {
		same = ", give --same-system if both addresses are one system"
	}
	return fmt.Sprintf("no two of %s differ only in %s: the closest, %s and %s, also differ in %s; repeat one of them with another %s%s, or --all shows each alone",
		units.Plural(len(all), "report"), v.shown(), first.ID, other.ID, commas(differs, 4), v.shown(), same)
}

// alsoDiffers names what, besides VAR, keeps two reports out of one group. What
// targets report about themselves follows from their addresses.
func (v *variable) alsoDiffers(a, b *entry) []string {
	var out []string
	for _, d := range differing([]store.Row{a.Row}, []store.Row{b.Row}, func(f store.Field) bool {
		return f.Value.Independent && !v.mayDiffer(f.Name) && !(v.flags && strings.HasPrefix(f.Name, flagPrefix))
	}) {
		if !strings.HasPrefix(d.Name, targetFacts) || !slices.Contains(out, "target") {
			out = append(out, shownField(d.Name))
		}
	}
	return out
}

// selectGroups keeps the groups to show: those with rows to compare, unless all
// are wanted.
func (c *Collation) selectGroups(groups []Group, o CollateOptions) {
	most := CollateGroups
	if o.Last.N > 0 {
		most = o.Last.N
	}
	for _, g := range groups {
		switch {
		case len(g.Rows) == 1 && !o.All:
			c.Alone++
		case len(c.Groups) == most:
			c.More++
		default:
			c.Groups = append(c.Groups, g)
		}
	}
}

// addNotes adds notes on the whole collation.
func (c *Collation) addNotes(v *variable) {
	add := func(format string, args ...any) { c.Notes = append(c.Notes, fmt.Sprintf(format, args...)) }
	values := map[string]bool{}
	fewest, most, best, ahead, atMost, untrusted, noisy := 0, 0, false, false, false, 0, 0
	for _, g := range c.Groups {
		for i := range g.Rows {
			l := &g.Rows[i]
			values[valueKey(l.value)] = true
			n := len(l.Reports)
			if fewest == 0 || n < fewest {
				fewest = n
			}
			most = max(most, n)
			untrusted += l.Untrusted
			noisy += l.Noisy
			for _, cell := range l.Cells {
				best, ahead, atMost = best || cell.Best, ahead || cell.Ahead, atMost || cell.AtMost
			}
		}
	}
	switch {
	case len(values) == 1 && len(c.Groups) > 0:
		add("%s does not vary: it is %s in all matching reports", v.shown(), c.Groups[0].Rows[0].Text)
	case !slices.ContainsFunc(c.Groups, func(g Group) bool { return len(g.Rows) > 1 }):
		add("no two reports differ only in %s: each group has one row", v.shown())
	case most == 1:
		add("one repetition of each is too few to tell a difference from noise, so no row is marked as the best; run with --repeat %d", stats.Least)
	case fewest < stats.Least:
		add("a row is marked as the best only among rows of at least %d repetitions", stats.Least)
	}
	if ahead {
		add("^ ahead, unproven: more than twice every other row of its group (of times: less than half), but with too few repetitions to tell that from noise")
	}
	if best {
		add("* better than every other row of its group (U-test, all comparisons of a group together at %g)", stats.Defaults.Alpha)
	}
	if untrusted > 0 {
		add("! not trustworthy: the generator was the limit of that run (!3: of three runs of the row); such runs count in the row's numbers, but the row is never the best, and compare and verify leave them out")
	}
	if noisy > 0 {
		add("~ noisy: the generator of that run may have affected its times, within the bounds that its report states (~3: of three runs of the row); no row is the best where that might decide it")
	}
	if atMost {
		add("%s", atMostWords)
	}
	if c.Without > 0 {
		add("%s without %s", units.Plural(c.Without, "report"), v.shown())
	}
	if c.Alone > 0 {
		add("%s in which %s has one value: --all shows them", units.Plural(c.Alone, "more group"), v.shown())
	}
	if c.More > 0 {
		add("%s: -n shows more", units.Plural(c.More, "more group"))
	}
}
