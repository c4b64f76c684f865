package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"carronade/internal/advice"
	"carronade/internal/cli/cmdutil"
	"carronade/internal/cli/reports"

	"carronade/internal/dropin"
	"carronade/internal/host"
	"carronade/internal/judge"
	"carronade/internal/report"
	"carronade/internal/run"
	"carronade/internal/store"
	"carronade/internal/verdict/stats"
	"carronade/internal/workload"
	"carronade/protocol"
	"carronade/units"
)

// varying holds the flags of --vary, of run and of find.
type varying struct {
	settings []string
	resume   string
	result   reports.Variation
}

func (v *varying) bind(fs *pflag.FlagSet) {
	fs.StringArrayVar(&v.settings, "vary", nil, "run these values of a setting (`NAME=A,B`), and say what it changes (repeatable)")
	v.result.Bind(fs)
}

// check checks the flags against each other. It returns whether settings are varied.
func (v *varying) check() (bool, error) {
	varies := len(v.settings) > 0
	return varies, v.result.Check(varies)
}

const varyHint = "give the settings to vary, such as --vary acks=1,all"

// A variedSetting is a setting to vary. Its values are of the setting, or of a key in a list
// of NAME=VALUE, such as a flag of the system.
type variedSetting struct {
	stats.Factor
	setting, key string
	where        string
}

// parseVaried parses the values of --vary.
func (s *session) parseVaried(texts []string) ([]variedSetting, error) {
	known := cmdutil.AllSettings(s.Kinds)
	var (
		out    []variedSetting
		faults []error
	)
	for _, text := range texts {
		one, err := parseVariedOne(text, known)
		if err == nil && slices.ContainsFunc(out, func(o variedSetting) bool { return o.Name == one.Name }) {
			err = &protocol.Error{Err: fmt.Errorf("--vary %s: is varied twice", one.Name), Hint: "give all its values together"}
		}
		out, faults = append(out, one), append(faults, err)
	}
	return out, errors.Join(faults...)
}

func parseVariedOne(text string, known []workload.Setting) (variedSetting, error) {
	name, list, ok := strings.Cut(text, "=")
	name = strings.TrimPrefix(strings.TrimSpace(name), "--")
	v := variedSetting{Factor: stats.Factor{Name: name}, setting: name, where: "--vary " + name}
	fail := func(hint, format string, args ...any) (variedSetting, error) {
		return v, &protocol.Error{Err: fmt.Errorf("%s: %w", v.where, fmt.Errorf(format, args...)), Hint: hint}
	}
	if !ok || name == "" {
		return fail("such as --vary acks=1,all", "must be NAME=VALUE,VALUE")
	}
	for _, value := range splitValues(list) {
		switch {
		case value == "":
			return fail("such as --vary acks=1,all", "has an empty value")
		case slices.Contains(v.Values, value):
			return fail("leave one of them out", "has the value %s twice", value)
		}
		v.Values = append(v.Values, value)
	}
	if len(v.Values) < 2 {
		return fail(fmt.Sprintf("to run one value, give it as --%s", name), "has one value, so nothing varies")
	}
	find := func(name string) *workload.Setting {
		i := slices.IndexFunc(known, func(s workload.Setting) bool { return s.Name == name })
		if i < 0 {
			return nil
		}
		return &known[i]
	}
	if name == "target" {
		return v, nil
	}
	set := find(name)
	if set == nil {
		if list, key, ok := strings.Cut(name, "."); ok && key != "" {
			if set = find(list); set != nil && strings.Contains(set.Word, "=") {
				v.setting, v.key = list, key
			} else {
				set = nil
			}
		}
	}
	switch {
	case set == nil:
		names := []string{"target"}
		for _, s := range known {
			names = append(names, s.Name)
		}
		return fail(advice.DidYouMean(name, names, "%s", "carronade run --help-all lists them all"), "unknown setting")
	case set.FlagOnly || set.Aside || set.Name == "repeat":
		return fail("vary what changes the load or the system", "is about the reports or their number")
	case strings.Contains(set.Word, "=") && v.key == "":
		return fail(fmt.Sprintf("such as --vary %s.NAME=4,8", name), "is a list of names with values, of which one is varied")
	}
	if v.key == "" && set.Type != protocol.String { // a text may mean anything
		for i, value := range v.Values {
			same := func(other string) bool {
				return store.TypedValue(set.Type.String(), other).Equal(store.TypedValue(set.Type.String(), value))
			}
			if k := slices.IndexFunc(v.Values[:i], same); k >= 0 {
				return fail("leave one of them out", "%s and %s are the same", v.Values[k], value)
			}
		}
	}
	return v, nil
}

// splitValues splits at commas that have no backslash before them.
func splitValues(list string) []string {
	const comma = "\x00"
	out := strings.Split(strings.ReplaceAll(list, `\,`, comma), ",")
	for i := range out {
		out[i] = strings.ReplaceAll(strings.TrimSpace(out[i]), comma, ",")
	}
	return out
}

// A variation is a planned series.
type variation struct {
	series string
	plan   string // a hash of what runs
	design *stats.Design
	rounds int
	cells  []*workload.Workload

	// searches are those of the cells if each repetition is a search for a ceiling; nil if each is
	// a run. found are their results.
	searches map[*workload.Workload]*searching
	found    []judge.VariedSearch

	outcome error // the worst exit code so far
}

// ended counts the exit code of a run.
func (x *variation) ended(code int) {
	if code != host.ExitOK {
		x.outcome = worst(x.outcome, exitCode{Code: code})
	}
}

// vary runs the combinations of several settings and reports what each changes: on the numbers
// of a run or, with a search, on the ceiling.
func (s *session) vary(ctx context.Context, v *varying, t *cmdutil.Settings, f *searching, args []string, path string) error {
	for _, name := range []string{"json-file", "full"} {
		if where := t.Where(name); where != "" {
			return &protocol.Error{Err: fmt.Errorf("%s does not go with --vary", where), Hint: "--as json prints the result as JSON, and carronade report show a single report"}
		}
	}
	if len(args) > 0 {
		t.Doc.Add("target", "target", args[0])
	}
	x, err := cmdutil.Await(ctx, func() (*variation, error) { return s.planVariation(v, t, f, path) })
	if err != nil {
		return err
	}
	// The configuration's outputs are for single runs.
	if t.Bool("json") {
		if err := v.result.JSON(); err != nil {
			return err
		}
	}
	t.Doc.Entries = slices.DeleteFunc(t.Doc.Entries, func(e workload.Entry) bool { return e.Name == "json" || e.Name == "json-file" })
	o, end, err := s.prepare(ctx, t, dropin.Observer{}, x.cells...)
	if err != nil {
		return err
	}
	defer end()
	if o.keep.store == nil {
		return &protocol.Error{Err: errors.New("the reports of the series would not be kept"), Hint: "remove no-store, or name a writable store with --store"}
	}
	x.order(&o)
	if v.resume != "" {
		if err := s.resumeVariation(ctx, x, &o); err != nil {
			return err
		}
	}
	outcome, err := s.runVariation(ctx, x, &o)
	if err != nil {
		return err
	}
	c := s.console()
	err = v.result.Write(ctx, &c, o.keep.store, judge.VaryOptions{Series: x.series, Design: x.design, Rounds: x.rounds, Searches: x.found})
	if errors.Is(err, judge.ErrNoRuns) && outcome != nil {
		if s.cause != "" {
			err = &protocol.Error{Err: fmt.Errorf("%w: %s; stop them, or use a quieter machine", err, s.cause), Hint: advice.Hint(err)}
		}
		return exitCode{Code: exitCodeOf(outcome), Err: err} // of the runs
	}
	if err != nil {
		return err
	}
	return outcome
}

// order puts the tasks, which are by cell, into the order of the design.
func (x *variation) order(o *outputs) {
	planned := o.tasks
	o.tasks = nil
	for round, cells := range x.design.Order(x.rounds, x.cells[0].Seed()) {
		for _, cell := range cells {
			k := planned[cell*x.rounds+round]
			k.cell = strings.Join(x.design.Settings(cell), " ")
			k.search = x.searchOf(&k, 1)
			o.tasks = append(o.tasks, k)
		}
	}
}

// resumeVariation leaves out the tasks whose reports are stored already.
func (s *session) resumeVariation(ctx context.Context, x *variation, o *outputs) error {
	rows, err := reports.RowsWithLabel(ctx, o.keep.store, judge.SeriesLabel, x.series, append(judge.VaryFields(), "label."+report.SearchLabel)...)
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return &protocol.Error{Err: fmt.Errorf("--resume %s: %s has no report of that series", x.series, o.keep.store.Place()), Hint: "the ID is printed when a series starts; label." + judge.SeriesLabel + " of its reports has it, too"}
	}
	for i := range rows {
		r := &rows[i]
		if r.Text("label."+judge.PlanLabel) != x.plan {
			return &protocol.Error{Err: fmt.Errorf("--resume %s: that series ran something else", x.series), Hint: "give the same command as before, and the ID; report " + r.ID + " is one of that series"}
		}
		if r.Running {
			return &protocol.Error{Err: fmt.Errorf("--resume %s: report %s of that series is still running", x.series, r.ID), Hint: "wait until that carronade ends"}
		}
	}
	planned := len(o.tasks)
	if x.searches != nil {
		if err := s.resumeSearches(ctx, x, o, rows); err != nil {
			return err
		}
	} else {
		x.resumeRuns(o, rows)
	}
	s.note("series %s: %d of %s are there", x.series, planned-len(o.tasks), units.Plural(planned, x.each()))
	return nil
}

// resumeRuns leaves out the runs that count already, and says what those that were not trusted are
// replaced by.
func (x *variation) resumeRuns(o *outputs, rows []store.Row) {
	done, untrusted := map[[2]int]bool{}, map[[2]int]string{}
	for i := range rows {
		r := &rows[i]
		cell, round, ok := judge.CellOf(r)
		if !ok {
			continue
		}
		at := [2]int{cell, round}
		if _, counts := judge.Counts(r); counts {
			done[at] = true
			code, _ := r.Num("exit")
			x.ended(int(code))
		} else if trusted, known := r.Num("trusted"); known && trusted == 0 && untrusted[at] == "" {
			untrusted[at] = r.ID // the newest is first
		}
	}
	o.tasks = slices.DeleteFunc(o.tasks, func(k task) bool { return done[[2]int{x.cellOf(&k), k.i}] })
	for i := range o.tasks {
		k := &o.tasks[i]
		k.replaces = untrusted[[2]int{x.cellOf(k), k.i}]
	}
}

// cellOf is the cell of a task.
func (x *variation) cellOf(k *task) int { return slices.Index(x.cells, k.w) }

// each is what a task is.
func (x *variation) each() string {
	if x.searches != nil {
		return "search"
	}
	return "run"
}

// runVariation runs the tasks. The outcome is the exit code of the runs, as that of
// repetitions.
func (s *session) runVariation(ctx context.Context, x *variation, o *outputs) (outcome, err error) {
	if len(o.tasks) > 0 && !o.quiet {
		s.note("series %s: %d cells, each %d times%s; the same command with --resume %s continues it", x.series, len(x.cells), x.rounds, x.time(o.tasks), x.series)
	}
	turn := s.runTurn
	if x.searches != nil {
		turn = s.searchTurn
	}
	again := "the same command with --resume " + x.series + " continues the series"
	for i := 0; i < len(o.tasks); i++ { //nolint:intrange // replacements are appended
		code, err := turn(ctx, x, o, i, again)
		if err != nil {
			if exitCodeOf(err) != host.ExitInterrupted && i > 0 {
				s.note("%s", again)
			}
			return nil, err
		}
		x.ended(code)
	}
	return x.outcome, nil
}

// runTurn runs a task. A run that is replaced has no exit code of its own.
func (s *session) runTurn(ctx context.Context, _ *variation, o *outputs, i int, again string) (code int, err error) {
	d, err := s.turn(ctx, o, i, again)
	if err != nil {
		return 0, err
	}
	replaced := s.replace(o, i, d)
	if code = d.ExitCode(); replaced && code == host.ExitUntrusted {
		return host.ExitOK, nil
	}
	if code != host.ExitOK && code != host.ExitUntrusted {
		s.note("the exit code of %s is %d: %s says why", d.ID, code, showCommand(d.ID, o.keep.at))
	}
	return code, nil
}

// newSeries is the ID of a series of runs, or of a search. It begins with a letter: a label such
// as 80010e7 would be a number to filters.
func newSeries() string { return seriesID(run.NewID()) }

func seriesID(n uint64) string { return "s" + report.IDOf(n)[1:] }
