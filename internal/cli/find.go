package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/cli/reports"
	"carronade/internal/dropin"
	"carronade/internal/host"
	"carronade/internal/layout"
	"carronade/internal/live"
	"carronade/internal/report"
	"carronade/internal/store"
	"carronade/internal/verdict/find"
	"carronade/internal/workload"
	"carronade/protocol"
	"carronade/units"
)

const findLong = `Searches for the ceiling of a system: the highest rate at which all limits hold
and the backlog does not grow. The answer is an interval whose ends were
confirmed: the limits hold at the lower one and fail at the upper one.

Limits are those of carronade run --slo (carronade help slo). Without --slo it
is p99<1s. Unless a limit allows failures, no event may fail. Where nothing is
acknowledged, --slo not-found=0 searches for the highest rate without losses;
--op consume answers with the rate of reading at full speed.

Each trial is a run, and is kept as a report with the label find=ID. A search
has at most 24 trials. One that is not trusted is repeated; after three in a row
the machine is too busy to decide (exit code 3). A search that the generator
limits says "at least". Ctrl-C ends it with what is known.

With --vary it searches with several values of one or more settings, repeated
and in random order, and reports how much each setting moves the ceiling, as
carronade run --vary does of other numbers. --repeat is the number of searches
of each combination, and --budget the time for each search.`

// findSets are the settings that a search decides itself.
var findSets = []string{"rate", "shape", "concurrency", "for", "count", "bytes", "warmup", "interval", repeatSetting, "abort-on-fail", "failure-rate", "hdr", "trace", "trace-events"}

// findLimit is the limit of a search without one.
const findLimit = "p99<1s"

// searching is the state of a search.
type searching struct {
	find.Options
	settings cmdutil.Settings
	more     findMore
	atLeast  string
	least    float64 // the rate that must hold, or 0
	from     string
	share    string // the precision
	budget   string
	file     string
	resume   string // the id of a search, or series, that was cut short
	again    string // the id of a search whose trials answer other limits
	place    string // of its store
	html     string
	vary     varying

	base     *workload.Document // the workload file, with the configuration
	limits   []workload.Limit
	untilEnd bool // trials that read end where the logs do
	planned  bool // the plan was shown
	attached []report.Attachment
	target   string
	id       string
	searches []*find.Answer // before the one in progress
	history  []find.Outcome // of the search in progress
	began    time.Time
	of       *report.Document // of a trial, for the report of the search
}

func (s *session) findCommand() *cobra.Command {
	f := searching{share: "2%", budget: "10m"}
	cmd := &cobra.Command{
		Use: "find [TARGET] [-f FILE]", Short: "the highest rate at which limits hold, confirmed",
		Long: findLong, Example: findExample,
		Args:              cmdutil.Args(0, 1, "at most one target"),
		Annotations:       map[string]string{settingsPage: "all"},
		ValidArgsFunction: cmdutil.CompleteTarget(s.Kinds),
		RunE: cmdutil.Run(func(cmd *cobra.Command, args []string) error {
			if f.again != "" {
				if err := againExcludes(cmd.Flags()); err != nil {
					return err
				}
				return s.againFind(cmd.Context(), &f, args)
			}
			varied, err := f.vary.check()
			if err == nil {
				err = f.parse()
			}
			if err != nil {
				return err
			}
			if varied && f.atLeast != "" {
				return &protocol.Error{Err: errors.New("--at-least does not go with --vary"), Hint: "leave it out: each cell has a ceiling of its own"}
			}
			if varied && f.html != "" {
				return &protocol.Error{Err: errors.New("--html does not go with --vary"), Hint: "--as markdown prints the result as a table, and carronade report export --as html writes a single report"}
			}
			if f.Over == find.OverConcurrency && cmd.Flags().Changed("precision") {
				return errNoRateOrLimit
			}
			if !varied {
				if err := f.oneAnswer(); err != nil {
					return err
				}
			}
			if varied && f.Over != "" {
				return &protocol.Error{Err: errors.New("--over does not go with --vary"), Hint: "carronade run --vary concurrency=1,8,64 compares throughput"}
			}
			if varied {
				if f.vary.resume = f.resume; cmd.Flags().Changed(repeatSetting) {
					f.settings.Doc.Add(repeatSetting, "--"+repeatSetting, strconv.Itoa(f.more.repeat))
					f.more.repeat = 1 // of each cell, by the plan
				}
				return s.vary(cmd.Context(), &f.vary, &f.settings, &f, args, f.file)
			}
			o, end, err := s.prepareFind(cmd.Context(), &f, args)
			if err != nil {
				return err
			}
			defer end()
			return s.find(cmd.Context(), &f, &o)
		}),
	}
	fs := cmd.Flags()
	fs.StringVar(&f.from, "from", "", "begin at this `RATE`; without it, a closed loop estimates the capacity")
	fs.StringVar(&f.share, "precision", f.share, "wanted width of the answer, a `SHARE`; wider if the budget does not suffice")
	fs.StringVar(&f.budget, "budget", f.budget, "`TIME` for the whole search, with --vary for each; the last trial may exceed it")
	fs.StringVar(&f.resume, "resume", "", "go on with the search or series `ID`, which was cut short; give the same flags")
	fs.StringVar(&f.again, "again", "", "answer other limits from the stored trials of the search `ID`, without sending")
	fs.StringVar(&f.html, "html", "", "write the report as a page with pictures to this `FILE`")
	f.more.bind(fs)
	fs.StringVar(&f.atLeast, "at-least", "", "exit with 1 if this `RATE` does not hold")
	f.vary.bind(fs)
	for _, setting := range cmdutil.AllSettings(s.Kinds) {
		if fs.Lookup(setting.Name) == nil { // from is where consuming begins
			f.settings.BindSetting(fs, &setting)
		}
	}
	for _, name := range findSets {
		fs.Lookup(name).Hidden = name != repeatSetting // given, it is an error that says why
	}
	fs.StringVarP(&f.file, "file", "f", "", "read the workload from this `FILE`; - is stdin")
	s.bindHelpAll(fs)
	return cmd
}

// prepareFind checks everything before the first trial.
func (s *session) prepareFind(ctx context.Context, f *searching, args []string) (o outputs, end func(), err error) {
	t := &f.settings
	if len(args) > 0 {
		t.Doc.Add("target", "target", args[0])
	}
	w, err := cmdutil.Await(ctx, func() (*workload.Workload, error) {
		file, err := s.readOneWorkload(f.file, "a search is of one")
		if err != nil {
			return nil, err
		}
		return s.resolveSearch(f, t, file)
	})
	if err != nil {
		return o, nil, err
	}
	if f.id = f.resume; f.id == "" {
		f.id = newSeries()
	}
	if err := tryFile("--html", f.html); err != nil {
		return o, nil, err
	}
	if o, end, err = s.prepare(ctx, t, dropin.Observer{}, w); err != nil {
		return o, nil, err
	}
	f.began, f.of = time.Now(), &report.Document{Version: version(), Target: w.Target(), Op: w.Op, Labels: w.Labels(), Workload: w}
	f.attached = o.tasks[0].attached
	o.beside, o.tasks = false, nil
	if f.resume != "" {
		if err := s.resumeFind(ctx, f, &o); err != nil {
			end()
			return o, nil, err
		}
	}
	return o, end, nil
}

// resumeFind takes the outcomes of the trials of an earlier search from their reports, as far
// as the search asks for them.
func (s *session) resumeFind(ctx context.Context, f *searching, o *outputs) error {
	if o.keep.store == nil {
		return &protocol.Error{Err: errors.New("--resume needs a store"), Hint: "name the store of the search with --store"}
	}
	rows, err := reports.RowsWithLabel(ctx, o.keep.store, report.SearchLabel, f.resume, "label."+report.SearchLabel)
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return &protocol.Error{Err: fmt.Errorf("--resume: the store has no trials of a search %q", f.resume), Hint: "carronade report list label.find shows those of all searches"}
	}
	for i := range rows {
		if rows[i].Running {
			return &protocol.Error{Err: fmt.Errorf("--resume %s: report %s of that search is still running", f.resume, rows[i].ID), Hint: "wait until that carronade ends"}
		}
	}
	if err := s.replayTrials(ctx, f, o, rows); err != nil {
		return err
	}
	s.note("resumed after %s%s", f.before(), units.Plural(len(f.history), "trial"))
	return nil
}

// replayTrials makes the history of a search from the reports of its trials.
func (s *session) replayTrials(ctx context.Context, f *searching, o *outputs, rows []store.Row) error {
	slices.SortStableFunc(rows, func(a, b store.Row) int { return a.At.Compare(b.At) })
	unused := 0
	for i, r := range rows {
		if i == 0 {
			f.began = r.At
		}
		d, err := o.keep.store.Get(ctx, r.ID)
		if err != nil {
			return err
		}
		if d.Search != nil || d.Partial { // it was cut short
			continue
		}
		t, answer := f.Next(f.history)
		for answer != nil && f.another(answer) {
			t, answer = f.Next(f.history)
		}
		if answer != nil {
			unused++
			continue
		}
		w, err := s.trialWorkload(f, t)
		if err != nil {
			return err
		}
		if other := differs(w, d); other != "" {
			ofTrial := slices.Contains([]string{"rate", "concurrency", "for", "warmup", "interval", "label"}, other)
			if !f.begun() || !ofTrial {
				return &protocol.Error{Err: fmt.Errorf("--resume: report %s has another %s", d.ID, other), Hint: "give the target, the limits and the flags that the search had"}
			}
			unused++ // the search took another way: a later trial may be the one that it needs
			continue
		}
		f.sample(*t, d)
		f.history = append(f.history, report.TrialOutcome(&f.Options, *t, d, f.limits, elapsed(d)))
	}
	if unused > 0 {
		s.note("search %s: %s not used, since the search takes another way now", f.id, units.Plural(unused, "stored trial"))
	}
	return nil
}

// elapsed is the time of a trial, the same when it ran and when its report is read: otherwise a
// search that is resumed would take another way.
func elapsed(d *report.Document) time.Duration {
	return d.EndedAt.Round(0).Sub(d.StartedAt.Round(0)) // without the monotonic clock
}

// sample keeps the report of a trial, for what the report of the search says of all of them: the
// newest one at a rate, without its intervals. A search of --vary has no report of its own.
func (f *searching) sample(t find.Trial, d *report.Document) {
	if f.of == nil {
		return
	}
	if t.Role != find.Probe || f.of.ID == "" {
		of := *d
		of.Intervals = nil
		f.of = &of
	}
}

// differs names the first setting in which a report differs from a workload, "" if none does.
func differs(w *workload.Workload, d *report.Document) string {
	if d.Target != w.Target() {
		return "target"
	}
	had := map[string]string{}
	for i := range d.Settings {
		had[d.Settings[i].Name] = d.Settings[i].Value
	}
	for _, r := range w.Settings() {
		if had[r.Name] != r.Text() {
			return r.Name
		}
		delete(had, r.Name)
	}
	for name := range had {
		return name
	}
	return ""
}

// rateSetting is a rate as the setting of a trial.
func rateSetting(rate float64) string { return strconv.FormatFloat(rate, 'g', 12, 64) + "/s" }

// trialWorkload is the workload of one trial.
func (s *session) trialWorkload(f *searching, t *find.Trial) (*workload.Workload, error) {
	var d workload.Document
	for _, e := range f.base.Entries { // ours do not replace them
		if e.Name == "label" {
			d.Entries = append(d.Entries, e)
		}
	}
	d.Entries = append(d.Entries, f.settings.Doc.Entries...)
	base := *f.base
	if f.id != "" { // the repetitions are those of searches
		repeat := func(e workload.Entry) bool { return e.Name == repeatSetting }
		d.Entries, base.Entries = slices.DeleteFunc(d.Entries, repeat), slices.DeleteFunc(slices.Clone(base.Entries), repeat)
	}
	set := func(name, value string) { d.Add(name, "the trial's "+name, value) }
	switch {
	case t.Concurrency > 0:
		set("concurrency", strconv.Itoa(t.Concurrency))
	case t.Rate > 0:
		set("rate", rateSetting(t.Rate))
	case f.untilEnd:
		set("until-end", "true")
	}
	set("for", t.Measure.String())
	if t.Settle > 0 {
		set("warmup", t.Settle.String())
	}
	set("interval", t.Slot.String())
	if f.id != "" {
		set("label", report.SearchLabel+"="+f.id)
		set("label", report.RoleLabel+"="+string(t.Role))
		if f.more.repeat > 1 {
			set("label", searchLabel+"="+strconv.Itoa(len(f.searches)+1))
		}
	}
	if t.Concurrency > 0 { // limits on response times need a schedule
		d.Entries = slices.DeleteFunc(d.Entries, func(e workload.Entry) bool { return e.Name == "slo" })
	}
	return workload.Resolve(s.Kinds, &d, &base)
}

// find searches, and prints the answer.
func (s *session) find(ctx context.Context, f *searching, o *outputs) error {
	answer, err := s.answer(ctx, f, o)
	if err != nil {
		return err
	}
	err = s.found(f, o, answer)
	if f.Interrupted && exitCodeOf(err) != host.ExitFailed {
		err = exitCode{Code: host.ExitInterrupted}
	}
	return err
}

// answer runs trials until there is an answer.
func (s *session) answer(ctx context.Context, f *searching, o *outputs) (*find.Answer, error) {
	for {
		f.Interrupted = ctx.Err() != nil
		t, answer := f.Next(f.history)
		if answer != nil && f.another(answer) {
			continue
		}
		if answer != nil {
			return answer, nil
		}
		out, err := s.trial(ctx, f, o, t)
		switch {
		case errors.Is(err, context.Canceled) && (f.begun() || out.Trial.Role != ""):
			continue // answers with what is known
		case err != nil:
			return nil, err
		}
		f.history = append(f.history, out)
		if !o.quiet {
			s.trialEnd(f)
		}
	}
}

// trialEnd prints what the last trial said.
func (s *session) trialEnd(f *searching) {
	out, p := &f.history[len(f.history)-1], f.Progress(f.history)
	text := units.FormatRate(out.Achieved) + " achieved"
	if v := p.Verdict; v != nil && out.Trial.Role != find.Read {
		why, _, _ := strings.Cut(v.Why, ": its ") // what of the generator is in the report
		why, _, _ = strings.Cut(why, "; ")
		text = string(v.Result) + ": " + why
	}
	for _, line := range layout.Wrap(text, layout.Columns-2) {
		s.note("  %s", line)
	}
	if plan := f.Plan(&p); plan != "" && !f.planned {
		f.planned = true
		s.note("%s", plan)
	}
}

// trial runs one trial.
func (s *session) trial(ctx context.Context, f *searching, o *outputs, t *find.Trial) (find.Outcome, error) {
	w, err := s.trialWorkload(f, t)
	if err != nil {
		return find.Outcome{}, err
	}
	p := f.Progress(f.history)
	if !o.quiet {
		text := ""
		if t.Role != find.Soak { // it is beyond the budget
			text = " (" + p.Text() + ")"
		}
		s.note("%strial %d, %s: %s for %s%s", f.which(), len(f.history)+1, t.Role, t.Load(), units.FormatDuration((t.Settle + t.Measure).Round(100*time.Millisecond)), text)
	}
	o.tasks = append(o.tasks[:0], task{w: w, of: 1, attached: f.attached, trial: &trialView{
		Search: live.Search{Trial: len(f.history) + 1, Role: string(t.Role), Load: t.Load(), Holds: p.Holds, Fails: p.Fails}, limits: f.limits,
	}})
	shown := *o
	shown.quiet = o.quiet || !interactive(s.Err) // a line an interval is too much for a file
	began := time.Now()
	d, err := s.execute(ctx, shown, 0)
	if d != nil {
		f.sample(*t, d)
	}
	switch {
	case ctx.Err() != nil && (f.begun() || d != nil): // it is not judged
		if d != nil {
			s.reportStored(o.keep, d, o.tasks[0].kept, false)
		}
		return find.Outcome{Trial: *t}, context.Canceled
	case err != nil && f.begun() && o.tasks[0].fits && errors.As(err, new(*protocol.Error)):
		// It worked before: the system is gone.
		return find.Outcome{Trial: *t, Elapsed: time.Since(began), Dead: err.Error()}, nil
	case err != nil:
		return find.Outcome{}, err
	}
	s.reportStored(o.keep, d, o.tasks[0].kept, false)
	out := report.TrialOutcome(&f.Options, *t, d, f.limits, elapsed(d))
	if o.keep.store == nil {
		out.ReportID = ""
	}
	return out, nil
}
