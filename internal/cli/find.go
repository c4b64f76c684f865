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

	"carronade/internal/command"
	"carronade/internal/command/judging"
	"carronade/internal/compat"
	"carronade/internal/digest"
	"carronade/internal/find"
	"carronade/internal/find/trials"
	"carronade/internal/layout"
	"carronade/internal/report"
	"carronade/internal/slo"
	"carronade/internal/workload"
	"carronade/target"
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
that the generator limits says "at least". Ctrl-C ends it with what is known.`

// findSets are the settings that a search decides itself.
var findSets = []string{"rate", "shape", "concurrency", "for", "count", "bytes", "warmup", "interval", repeatSetting, "abort-on-fail", "failure-rate", "hdr", "trace", "trace-events"}

// findLimit is the limit of a search without one.
const findLimit = "p99<1s"

// searching is the state of a search.
type searching struct {
	find.Options
	settings command.Settings
	more     findMore
	atLeast  string
	least    float64 // the rate that must hold, or 0
	from     string
	share    string // the precision
	budget   string
	file     string
	resume   string // the id of a search that was cut short
	again    string // the id of a search whose trials answer other limits
	place    string // of its store
	html     string

	base     *workload.Document // the workload file, with the configuration
	limits   []slo.Limit
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
		Args:              command.Args(0, 1, "at most one target"),
		Annotations:       map[string]string{settingsPage: "all"},
		ValidArgsFunction: command.CompleteTarget(s.Kinds),
		RunE: command.Run(func(cmd *cobra.Command, args []string) error {
			if f.again != "" {
				return s.againFind(cmd.Context(), &f, args)
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
	fs.StringVar(&f.budget, "budget", f.budget, "`TIME` for the whole search; the last trial may exceed it")
	fs.StringVar(&f.resume, "resume", "", "go on with the search `ID`, which was cut short; give the same flags")
	fs.StringVar(&f.again, "again", "", "answer other limits from the stored trials of the search `ID`, without sending")
	fs.StringVar(&f.html, "html", "", "write the report as a page with pictures to this `FILE`")
	f.more.bind(fs)
	fs.StringVar(&f.atLeast, "at-least", "", "exit with 1 if this `RATE` does not hold")
	for _, setting := range command.AllSettings(s.Kinds) {
		if fs.Lookup(setting.Name) == nil { // from is where consuming begins
			f.settings.BindSetting(fs, &setting)
		}
	}
	for _, name := range findSets {
		fs.Lookup(name).Hidden = name != repeatSetting // given, it is an error that says why
	}
	fs.StringVarP(&f.file, "file", "f", "", "read the workload from this `FILE`; - is stdin")
	s.bindHelpAll(fs)
	complete(cmd, s.Kinds)
	return cmd
}

// prepareFind checks everything before the first trial.
func (s *session) prepareFind(ctx context.Context, f *searching, args []string) (o outputs, end func(), err error) {
	t := &f.settings
	if err := refused(t.Doc.Entries); err != nil {
		return o, nil, err
	}
	if err := f.options(); err != nil {
		return o, nil, err
	}
	if err := f.more.parse(f); err != nil {
		return o, nil, err
	}
	if len(args) > 0 {
		t.Doc.Add("target", "target", args[0])
	}
	file, err := s.readOneWorkload(f.file, "a search is of one")
	if err != nil {
		return o, nil, err
	}
	if f.base, err = s.withConfiguration(t, file); err != nil {
		return o, nil, err
	}
	if f.base == nil {
		f.base = &workload.Document{}
	}
	if err := refused(f.base.Entries); err != nil {
		return o, nil, err
	}
	// The times of a trial are known only when the capacity is. A first workload finds faults in
	// everything else.
	w, err := s.firstWorkload(f)
	if err != nil {
		return o, nil, err
	}
	for _, text := range w.Warnings {
		s.warn(text)
	}
	f.target = w.Target()
	f.limits = w.Limits()
	switch {
	case !f.Reading && slices.ContainsFunc(f.limits, func(l slo.Limit) bool { return l.Name == "throughput" }):
		return o, nil, &words{Err: errors.New("--slo throughput: the rate is what is searched for, and low rates are tried too"), Hint: "--at-least RATE says which rate must hold"}
	case w.Unacknowledged():
		if err := unanswered(f.limits); err != nil {
			return o, nil, err
		}
	case !f.Reading:
		if err := f.limitTimes(); err != nil {
			return o, nil, err
		}
	}
	f.Times = trials.Limits(f.limits)
	if f.id = f.resume; f.id == "" {
		f.id = newSeries()
	}
	if f.html != "" {
		if err := tryFile("--html", f.html); err != nil {
			return o, nil, err
		}
	}
	if o, end, err = s.prepare(ctx, t, compat.Observer{}, w); err != nil {
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

// options reads the flags of a search itself.
func (f *searching) options() (err error) {
	if f.Precision, err = units.ParseShare(f.share); err == nil && (f.Precision < 0.01 || f.Precision > 0.5) {
		err = errors.New("it must be from 1% to 50%")
	}
	if err != nil {
		return &words{Err: fmt.Errorf("--precision: %w", err), Hint: "2% is the default"}
	}
	if f.Budget, err = units.ParseDuration(f.budget); err == nil && f.Budget < 5*time.Second {
		err = errors.New("a search takes longer than 5 s")
	}
	if err != nil {
		return &words{Err: fmt.Errorf("--budget: %w", err), Hint: "10m is the default"}
	}
	for _, one := range []struct {
		flag, text string
		into       *float64
	}{{"from", f.from, &f.From}, {"to", f.more.to, &f.To}, {"at-least", f.atLeast, &f.least}} {
		if one.text == "" {
			continue
		}
		if *one.into, err = units.ParseRate(one.text); err == nil && *one.into <= 0 {
			err = errors.New("it must be above 0")
		}
		if err != nil {
			return &words{Err: fmt.Errorf("--%s: %w", one.flag, err), Hint: "a rate is such as 5k/s"}
		}
	}
	return nil
}

// limitTimes adds a limit on a time if there is none.
func (f *searching) limitTimes() error {
	if len(trials.Limits(f.limits)) == 0 {
		l, err := slo.Parse(findLimit)
		if err != nil {
			return err
		}
		f.limits = append(f.limits, l)
	}
	return nil
}

func (f *searching) limitTexts() []string {
	out := make([]string, len(f.limits))
	for i := range f.limits {
		out[i] = f.limits[i].String()
	}
	return out
}

// firstWorkload is the workload of a trial before anything is known of the system.
func (s *session) firstWorkload(f *searching) (*workload.Workload, error) {
	op := opOf(f.base, &f.settings.Doc)
	if slices.Contains([]string{"create", "list", "describe", "delete", "read"}, op) {
		return nil, &words{
			Err:  fmt.Errorf("--op %s: operations on topics have no reports, so they are not searched", op),
			Hint: "carronade topics " + op + " --concurrency N prints how many a second there were; try several N",
		}
	}
	f.Reading = op == workload.Consume
	t := find.Trial{Role: find.Search, Rate: 1000, Measure: 10 * time.Second, Settle: time.Second, Slot: time.Second}
	if f.Reading {
		if f.From > 0 {
			return nil, &words{Err: errors.New("--from: reading has no rate, it is at full speed"), Hint: "leave it out"}
		}
		t = find.Trial{Role: find.Read, Measure: 10 * time.Second, Slot: time.Second}
	}
	w, err := s.trialWorkload(f, &t)
	if err != nil || !f.Reading {
		return w, err
	}
	for _, r := range w.Settings() {
		if r.Name == "until-end" && r.Text() == "false" {
			f.untilEnd = true
			return s.trialWorkload(f, &t)
		}
	}
	return w, nil
}

// opOf is the operation that is given, "" if none is. The last document decides.
func opOf(docs ...*workload.Document) (op string) {
	for _, d := range docs {
		for _, e := range d.Entries {
			if e.Name == "op" {
				op = e.Values[len(e.Values)-1]
			}
		}
	}
	return op
}

// unanswered checks the limits of a search in which nothing is acknowledged: no response has a
// time, so what is not found later must be limited.
func unanswered(limits []slo.Limit) error {
	hint := "--slo not-found=0 searches for the highest rate at which nothing is lost"
	if times := trials.Limits(limits); len(times) > 0 {
		return &words{Err: fmt.Errorf("%s: nothing is acknowledged, so no response has a time", times[0].Name), Hint: hint}
	}
	if !slices.ContainsFunc(limits, func(l slo.Limit) bool { return l.Needs == slo.Delivery }) {
		return &words{Err: errors.New("nothing is acknowledged, so no response shows what the system takes"), Hint: hint}
	}
	return nil
}

// refused is the error of a setting that a search cannot have, on the command line, in a file or
// in the configuration.
func refused(entries []workload.Entry) error {
	for _, e := range entries {
		if slices.Contains(findSets, e.Name) {
			return &words{Err: fmt.Errorf("%s: find decides this for each trial", e.Where), Hint: "leave it out; --from, --precision and --budget say how to search, --slo which failures are allowed"}
		}
	}
	return nil
}

// resumeFind takes the outcomes of the trials of an earlier search from their reports, as far
// as the search asks for them.
func (s *session) resumeFind(ctx context.Context, f *searching, o *outputs) error {
	if o.keep.store == nil {
		return &words{Err: errors.New("--resume: there is no store"), Hint: "name the store of the search with --store"}
	}
	rows, err := judging.RowsWithLabel(ctx, o.keep.store, "find", f.resume, "label.find")
	if err != nil || len(rows) == 0 {
		return &words{Err: fmt.Errorf("--resume: the store has no trials of a search %q", f.resume), Hint: "carronade report list label.find shows those of all searches"}
	}
	slices.SortStableFunc(rows, func(a, b digest.Row) int { return a.At.Compare(b.At) })
	f.began = rows[0].At
	for _, r := range rows {
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
			break
		}
		w, err := s.trialWorkload(f, t)
		if err != nil {
			return err
		}
		if other := differs(w, d); other != "" {
			ofTrial := slices.Contains([]string{"rate", "concurrency", "for", "warmup", "interval", "label"}, other)
			if !f.begun() || !ofTrial {
				return &words{Err: fmt.Errorf("--resume: report %s has another %s", d.ID, other), Hint: "give the target, the limits and the flags that the search had"}
			}
			break // the search took another way: try from here
		}
		f.sample(*t, d)
		f.history = append(f.history, trials.Outcome(&f.Options, *t, d, f.limits, d.EndedAt.Sub(d.StartedAt)))
	}
	s.note("resumed after %s%s", f.before(), units.Plural(len(f.history), "trial"))
	return nil
}

// sample keeps the report of a trial, for what the report of the search says of all of them: the
// newest one at a rate, without its intervals.
func (f *searching) sample(t find.Trial, d *report.Document) {
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
	set := func(name, value string) { d.Add(name, "the trial's "+name, value) }
	switch {
	case t.Role == find.Probe:
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
		set("label", "find="+f.id)
		set("label", "find-role="+string(t.Role))
		if f.more.repeat > 1 {
			set("label", "find-search="+strconv.Itoa(len(f.searches)+1))
		}
	}
	if t.Role == find.Probe { // limits on response times need a schedule
		d.Entries = slices.DeleteFunc(d.Entries, func(e workload.Entry) bool { return e.Name == "slo" })
	}
	return workload.Resolve(s.Kinds, &d, f.base)
}

// find runs trials until there is an answer, and prints it.
func (s *session) find(ctx context.Context, f *searching, o *outputs) error {
	for {
		f.Interrupted = ctx.Err() != nil
		t, answer := f.Next(f.history)
		if answer != nil && f.another(answer) {
			continue
		}
		if answer != nil {
			err := s.found(f, o, answer)
			if f.Interrupted && exitCodeOf(err) != command.Failed {
				err = exitCode{Code: command.Interrupted}
			}
			return err
		}
		out, err := s.trial(ctx, f, o, t)
		switch {
		case errors.Is(err, context.Canceled) && (f.begun() || out.Trial.Role != ""):
			continue // answers with what is known
		case err != nil:
			return err
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
	if !o.quiet {
		p := f.Progress(f.history)
		s.note("%strial %d, %s: %s for %s (%s)", f.which(), len(f.history)+1, t.Role, loadText(t), units.FormatDuration((t.Settle + t.Measure).Round(100*time.Millisecond)), p.Text())
	}
	began := time.Now()
	o.tasks = append(o.tasks[:0], task{w: w, of: 1, attached: f.attached})
	shown := *o
	shown.quiet = o.quiet || !interactive(s.Err) // a line an interval is too much for a file
	d, err := s.execute(ctx, shown, 0)
	elapsed := time.Since(began)
	if d != nil {
		f.sample(*t, d)
	}
	switch {
	case ctx.Err() != nil && (f.begun() || d != nil): // it is not judged
		if d != nil {
			s.reportStored(o.keep, d, o.tasks[0].kept, false)
		}
		return find.Outcome{Trial: *t}, context.Canceled
	case err != nil && f.begun() && errors.As(err, new(*target.Error)):
		// It worked before: the system is gone.
		return find.Outcome{Trial: *t, Elapsed: elapsed, Dead: err.Error()}, nil
	case err != nil:
		return find.Outcome{}, err
	}
	s.reportStored(o.keep, d, o.tasks[0].kept, false)
	out := trials.Outcome(&f.Options, *t, d, f.limits, elapsed)
	if o.keep.store == nil {
		out.ReportID = ""
	}
	return out, nil
}

func loadText(t *find.Trial) string {
	switch {
	case t.Role == find.Probe:
		return units.Plural(t.Concurrency, "request") + " in flight"
	case t.Rate == 0:
		return "full speed"
	}
	return units.FormatRate(t.Rate)
}
