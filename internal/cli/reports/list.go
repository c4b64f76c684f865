package reports

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/host"
	"carronade/internal/layout"
	"carronade/internal/report"
	"carronade/internal/store"
	"carronade/load"
	"carronade/measure"
	"carronade/protocol"
	"carronade/units"
)

const listLong = `Lists reports, newest first. Filters choose among them, and --columns selects
other fields. It is for finding the report of a run, and for scripts (--json).
Times are UTC. "service" after a p99: the run has no schedule, so no response
times.`

const listExample = `
  carronade report list
  carronade report list -n 168h branch=main 'rate>=50k/s'
  carronade report list --columns rate,acks,linger,throughput,response_p99
  carronade report list --all --json > reports.json`

// listLength is the default length of a list.
const listLength = 20

// listing holds the flags of list.
type listing struct {
	last    string
	all     bool
	columns []string
	json    bool
	must    bool // list at least one
}

func (c *commands) list() *cobra.Command {
	var l listing
	cmd := &cobra.Command{
		Use: "list [FILTER...]", Short: "list stored reports, newest first",
		Long: listLong, Example: listExample,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	fs := cmd.Flags()
	fs.StringVarP(&l.last, "last", "n", fmt.Sprint(listLength), "the newest `N`, or those up to an age, such as 168h")
	fs.BoolVar(&l.all, "all", false, "all of them")
	fs.StringSliceVarP(&l.columns, "columns", "c", nil, "show these `FIELDS`, separated by commas")
	fs.BoolVar(&l.json, "json", false, "as JSON, with all fields or those of --columns")
	fs.BoolVar(&l.must, "fail-if-none", false, "exit with 1 if no report is listed")
	c.on(cmd, func(ctx context.Context, s store.Store, args []string) error {
		if cmd.Flags().Changed("last") && l.all {
			return &protocol.Error{Err: fmt.Errorf("--all and --last cannot be combined"), Hint: "give one of them"}
		}
		return c.doList(ctx, s, &l, args)
	})
	return cmd
}

func (c *commands) doList(ctx context.Context, s store.Store, l *listing, words []string) error {
	now := time.Now()
	var q store.Query
	if !l.all {
		last, err := store.ParseLast(l.last)
		if err != nil {
			return &protocol.Error{Err: fmt.Errorf("--last: %w", err), Hint: "-n 20 is the newest 20, -n 168h those of the last week"}
		}
		q.Since = last.Since(now)
		if last.N > 0 {
			q.Limit = last.N + 1 // to know whether there are more
		}
	}
	var err error
	if q.Filters, err = store.ParseFilters(words, now); err != nil {
		return err
	}
	switch {
	case len(l.columns) > 0:
		q.Fields = l.columns
	case !l.json:
		q.Fields = usualFields
	}
	rows, err := s.Rows(ctx, q)
	if err != nil {
		return err
	}
	more := q.Limit > 0 && len(rows) == q.Limit
	if more {
		rows = rows[:q.Limit-1]
	}
	if len(l.columns) > 0 {
		if err := known(ctx, s, l.columns, rows); err != nil {
			return err
		}
	}
	if len(rows) == 0 {
		return c.none(s, l, words)
	}
	switch {
	case l.json:
		return writeRows(c.Out, s.Place(), rows)
	case len(l.columns) > 0:
		err = c.chosenTable(rows, l.columns)
	default:
		err = c.usualTable(rows, now)
	}
	if more {
		c.Note("there are more: -n 100 or --all lists them")
	}
	return err
}

// none ends a list without reports.
func (c *commands) none(s store.Store, l *listing, words []string) error {
	if l.json {
		if err := writeRows(c.Out, s.Place(), nil); err != nil {
			return err
		}
	}
	switch {
	case l.must && len(words) > 0:
		return cmdutil.Exit{Code: host.ExitBroken, Err: noMatch(words)}
	case l.must:
		return cmdutil.Exit{Code: host.ExitBroken, Err: &protocol.Error{Err: fmt.Errorf("%s holds no report%s", s.Place(), ofAge(l)), Hint: "carronade run makes one"}}
	case l.json:
	case len(words) > 0:
		c.Note("no report matches %s", join(words))
	default:
		c.Note("%s holds no report%s; carronade run makes one", s.Place(), ofAge(l))
	}
	return nil
}

// known returns an error for a field that no report of the store has. Reports outside the list
// count.
func known(ctx context.Context, s store.Store, names []string, rows []store.Row) error {
	for _, name := range names {
		if slices.ContainsFunc(rows, func(r store.Row) bool { _, ok := r.Get(name); return ok }) {
			continue
		}
		f, err := store.ParseFilters([]string{name + "~."}, time.Now())
		if err != nil {
			return err
		}
		if _, err := s.Rows(ctx, store.Query{Filters: f, Limit: 1, Fields: []string{}}); err != nil {
			return err // with a suggestion
		}
	}
	return nil
}

// ofAge describes the age limit of a list.
func ofAge(l *listing) string {
	if last, err := store.ParseLast(l.last); err == nil && last.Age > 0 && !l.all {
		return " of the last " + l.last
	}
	return ""
}

// usualFields are the fields of usualTable.
var usualFields = []string{
	"target", "kind", "op", "rate", "shape", "concurrency", "mode", "slo", "ceiling", "throughput", "response_p99", "service_p99", "end_to_end_p99",
	"response_lower_p99", "service_lower_p99", "end_to_end_lower_p99",
	"exit", "partial", "stopped", "died", "trusted", "trust_level", "label.", "note",
}

// leastTarget is the minimum width of a target: the kind and a name.
const leastTarget = 12

// Columns of the default list that a narrow terminal can drop.
const (
	listStarted, listLoad, listThroughput, listAbout = 1, 3, 4, 8
)

// usualTable prints the default list. On a narrow terminal it drops columns: first what users
// wrote, then what the target or the report repeats. The id, the target, the p99 and the
// outcome always stay.
func (c *commands) usualTable(rows []store.Row, now time.Time) error {
	var without []int
	for _, next := range []int{listAbout, listLoad, listStarted, listThroughput} {
		lines := usual(rows, now, without).Lines(c.Columns, layout.Style{})
		if c.Columns <= 0 || !slices.ContainsFunc(lines, func(l string) bool { return layout.Width(l) > c.Columns }) {
			break
		}
		without = append(without, next)
	}
	return c.print(usual(rows, now, without))
}

func usual(rows []store.Row, now time.Time, without []int) *layout.Table {
	t := &layout.Table{Headings: 1, Left: []int{1, 2, 3, 6, 7, 8}, Elastic: []int{8, 2}, Keep: []int{4, leastTarget}, Sparse: true}
	add := func(cells ...string) {
		for _, k := range without {
			cells[k] = "" // columns that are empty in all rows are left out
		}
		t.Row(cells...)
	}
	add("id", "started", "target", "load", "throughput", "p99", "", "", "")
	for i := range rows {
		r := &rows[i]
		text, of := p99(r)
		add(r.ID, started(r.At, now), shortTarget(r), pace(r), cmp.Or(r.Text("throughput"), r.Text("ceiling")), text, of, outcome(r), about(r))
	}
	return t
}

// chosenTable prints the requested fields, each once. The id comes first, unless a place was
// requested for it. A field that no report has keeps its column, and "-" stands for a missing
// value, so that scripts find each field where they expect it.
func (c *commands) chosenTable(rows []store.Row, columns []string) error {
	isID := func(name string) bool { return store.Canonical(name) == "id" }
	var names []string
	for _, name := range columns {
		if !slices.ContainsFunc(names, func(n string) bool { return store.Canonical(n) == store.Canonical(name) }) {
			names = append(names, name)
		}
	}
	if !slices.ContainsFunc(names, isID) {
		names = slices.Insert(names, 0, "id")
	}
	t := &layout.Table{Headings: 1}
	t.Row(names...)
	for i := range rows {
		cells := make([]string, len(names))
		for k, name := range names {
			if cells[k] = cmp.Or(rows[i].Text(name), "-"); isID(name) {
				cells[k] = rows[i].ID
			}
		}
		t.Row(cells...)
	}
	for k, name := range names {
		switch {
		case isID(name): // never cut
			t.Left = append(t.Left, k)
		case slices.ContainsFunc(rows, func(r store.Row) bool { v, ok := r.Get(name); return ok && v.Kind == store.KindText }):
			t.Left, t.Elastic = append(t.Left, k), append(t.Elastic, k)
		}
	}
	return c.print(t)
}

// print writes a table, fitted to the width of the terminal if there is one.
func (c *commands) print(t *layout.Table) error {
	for _, line := range t.Lines(c.Columns, c.Style) {
		if _, err := fmt.Fprintln(c.Out, line); err != nil {
			return err
		}
	}
	return nil
}

// started formats the start of a run in UTC, without the year if it is the current one.
func started(at, now time.Time) string {
	if at.UTC().Year() == now.UTC().Year() {
		return at.UTC().Format("01-02 15:04")
	}
	return at.UTC().Format("2006-01-02")
}

// shortTarget abbreviates a target: the kind, the path or the host, and the operation if it is
// not the default.
func shortTarget(r *store.Row) string {
	full := r.Text("target")
	_, rest, ok := strings.Cut(full, "://")
	if !ok {
		return full
	}
	host, path, _ := strings.Cut(rest, "/")
	if path = strings.Trim(path, "/"); path == "" {
		path = host
	}
	name := r.Text("kind")
	if path != "" {
		name += " " + path
	}
	if op := r.Text("op"); op != "" && op != "produce" {
		name += " " + op // last, so that a long line loses it first
	}
	return name
}

// pace describes the schedule of a run.
func pace(r *store.Row) string {
	switch load.Mode(r.Text("mode")) {
	case load.OpenLoop:
		if rate := r.Text("rate"); rate != "" {
			if n, ok := r.Num("rate"); ok && len(rate) > len("1000.5k/s") { // a search divided it
				return units.FormatRate(n)
			}
			return rate
		}
		return r.Text("shape")
	case load.ClosedLoop:
		if n := r.Text("concurrency"); n != "" {
			return n + " in flight"
		}
	case load.Consuming:
		return "reading"
	case report.InScenario:
		return "scenario"
	case report.Searching:
		return "find " + strings.ReplaceAll(r.Text("slo"), " ", "")
	}
	return "full speed"
}

// p99 is the p99 of a row, as a range if its generator may have lengthened it, and which time it is of unless that is
// response time.
func p99(r *store.Row) (text, of string) {
	for _, t := range []struct{ name, of string }{{"response", ""}, {"service", "service"}, {"end_to_end", "end to end"}} {
		if text = r.Text(t.name + "_p99"); text == "" {
			continue
		}
		lower, known := r.Num(t.name + "_lower_p99")
		upper, _ := r.Num(t.name + "_p99")
		if low, high := units.Seconds(lower), units.Seconds(upper); known && text[0] != '>' && measure.LevelOf(low, high) != measure.Trusted {
			text = units.FormatDurations(low, high)
		}
		return text, t.of
	}
	return "", ""
}

// outcome is a word for how a run ended, "" if normally.
func outcome(r *store.Row) string {
	if r.Running {
		return "running"
	}
	if r.Text("stopped") == string(load.Killed) {
		return "killed"
	}
	if v, _ := r.Num("died"); v != 0 {
		return "system died"
	}
	switch code, _ := r.Num("exit"); int(code) {
	case host.ExitInterrupted:
		return "interrupted"
	case host.ExitFailed:
		return "failed"
	}
	if v, _ := r.Num("partial"); v != 0 {
		return "partial" // for a partial run, trust matters little
	}
	switch code, _ := r.Num("exit"); int(code) {
	case host.ExitUntrusted:
		return "untrusted"
	case host.ExitBroken:
		if v, known := r.Num("trusted"); known && v == 0 {
			return "broken limit, untrusted"
		}
		return "broken limit"
	case host.ExitCannotTell:
		return "cannot tell"
	}
	if r.Text("trust_level") == string(measure.Noisy) {
		return "noisy"
	}
	return ""
}

// about is what users wrote about a run.
func about(r *store.Row) string {
	var parts []string
	for _, f := range r.Under("label.") {
		parts = append(parts, strings.TrimPrefix(f.Name, "label.")+"="+f.Value.String())
	}
	if note := r.Text("note"); note != "" {
		parts = append(parts, note)
	}
	return strings.Join(parts, " ")
}

// listSchema names the form of a list.
const listSchema = "carronade.reports/1"

// writeRows writes rows as one JSON document.
func writeRows(w io.Writer, place string, rows []store.Row) error {
	type entry struct {
		ID      string         `json:"id"`
		Started time.Time      `json:"started_at"`
		Running bool           `json:"running"`
		Fields  map[string]any `json:"fields"`
		// AtLeast names the fields that are lower bounds.
		AtLeast []string `json:"at_least,omitempty"`
	}
	list := struct {
		Schema  string  `json:"schema"`
		Store   string  `json:"store"`
		Reports []entry `json:"reports"`
	}{listSchema, place, make([]entry, len(rows))}
	for i := range rows {
		r := &rows[i]
		list.Reports[i] = entry{ID: r.ID, Started: r.At, Running: r.Running, Fields: make(map[string]any, len(r.Fields))}
		for _, f := range r.Fields {
			if f.Value.AtLeast() {
				list.Reports[i].AtLeast = append(list.Reports[i].AtLeast, f.Name)
			}
			list.Reports[i].Fields[f.Name] = f.Value.Any()
		}
	}
	return cmdutil.WriteJSON(w, list)
}
