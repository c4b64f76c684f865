package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	"carronade/internal/cli/reports"
	"carronade/internal/report"
	"carronade/internal/run"
	"carronade/internal/store"
	"carronade/internal/verdict/find"
	"carronade/internal/workload"
	"carronade/protocol"
	"carronade/units"
)

// againSets are the settings that have a meaning without a run.
var againSets = []string{"slo", "store", "json", "json-file", "full", "quiet"}

// againFind answers other limits from the stored trials of a search. It sends nothing.
func (s *session) againFind(ctx context.Context, f *searching, args []string) error {
	t := &f.settings
	if err := f.checkAgain(args); err != nil {
		return err
	}
	if err := f.options(); err != nil {
		return err
	}
	for _, text := range t.All("slo") {
		l, err := workload.ParseLimit(text)
		if err != nil {
			return &protocol.Error{Err: fmt.Errorf("--slo: %w", err), Hint: "carronade help slo lists the limits"}
		}
		f.limits = append(f.limits, l)
	}
	if err := f.limitTimes(); err != nil {
		return err
	}
	f.Times = report.TimeLimits(f.limits)
	for _, one := range [][2]string{{"--json-file", t.Last("json-file")}, {"--html", f.html}} {
		if err := tryFile(one[0], one[1]); err != nil {
			return err
		}
	}
	from := reports.Opening(func(ctx context.Context) (store.Store, error) { return s.existing(ctx, t.Last("store")) })
	return from.Do(ctx, func(kept store.Store) error {
		f.place = cmp.Or(t.Last("store"), kept.Place())
		d, err := f.judgeAgain(ctx, kept)
		if err != nil {
			return err
		}
		o := &outputs{json: t.Bool("json"), full: t.Bool("full"), quiet: t.Bool("quiet"), keep: &keeping{}}
		return s.deliverAnswer(f, o, d, nil)
	})
}

const againHint = "--again judges stored trials: it takes --slo, --at-least, --precision, --store, --json, --json-file, --html and --full"

// againExcludes refuses the flags that say how to run a search.
func againExcludes(fs *pflag.FlagSet) error {
	for _, name := range []string{"resume", "file", "from", "to", "budget", "confirm", "over", repeatSetting, "vary"} {
		if fs.Changed(name) {
			return &protocol.Error{Err: fmt.Errorf("--again and --%s exclude each other", name), Hint: againHint}
		}
	}
	return nil
}

// checkAgain refuses what only a search that runs has.
func (f *searching) checkAgain(args []string) error {
	switch {
	case len(args) > 0:
		return &protocol.Error{Err: fmt.Errorf("%s: the trials of %s say what was measured", args[0], f.again), Hint: "leave the target out"}
	case len(f.settings.All("slo")) == 0:
		return &protocol.Error{Err: errors.New("--again needs limits"), Hint: "such as --slo 'p99<20ms'"}
	}
	for _, e := range f.settings.Doc.Entries {
		if !slices.Contains(againSets, e.Name) {
			return &protocol.Error{Err: fmt.Errorf("%s: the trials were run already", e.Where), Hint: againHint}
		}
	}
	return nil
}

// judgeAgain makes the report of the answer. It is not stored: it follows from the trials.
func (f *searching) judgeAgain(ctx context.Context, kept store.Store) (*report.Document, error) {
	id, of, err := searchOf(ctx, kept, f.again)
	if err != nil {
		return nil, err
	}
	number := ""
	if f.again = id; of != nil {
		f.Budget, number = of.Search.Budget, of.Labels[searchLabel]
	}
	several := false
	rows, err := trialRows(ctx, kept, id)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, &protocol.Error{Err: fmt.Errorf("--again: the store has no trials of search %s any more", id), Hint: "carronade report show " + id + " prints its answer"}
	}
	history, last, err := report.TrialOutcomes(&f.Options, f.limits, func(yield func(*report.Document, error) bool) {
		for _, r := range rows {
			d, err := kept.Get(ctx, r.ID)
			if err == nil && d.Labels[searchLabel] != number {
				several = several || number == ""
				continue
			}
			if !yield(d, err) || err != nil {
				return
			}
		}
	})
	var none *report.NoDataError
	switch {
	case several && err == nil:
		return nil, &protocol.Error{Err: fmt.Errorf("--again: %s are several searches", id), Hint: "give the id of one of them: carronade report list mode=find label." + report.SearchLabel + "=" + id + " lists them"}
	case errors.As(err, &none):
		return nil, &protocol.Error{Err: fmt.Errorf("--again: %w", err), Hint: "carronade find with this limit measures them"}
	case err != nil:
		return nil, err
	case len(history) == 0:
		return nil, &protocol.Error{Err: fmt.Errorf("--again: no trial of search %s was completed", id), Hint: "carronade find --resume " + id + " goes on with it"}
	}
	f.of = last
	return report.SearchReport(&report.Searched{
		ID: report.IDOf(run.NewID()), Search: id, Limits: f.limitTexts(), Began: rows[0].At, Ended: last.EndedAt,
		Options: f.Options, AtLeast: f.least, Answer: f.Again(history), Of: last,
	})
}

// searchOf is the search that a reference means: the id of its report, and the report. A search
// that was cut short has none, only the id in its trials.
func searchOf(ctx context.Context, kept store.Store, ref string) (id string, d *report.Document, err error) {
	if id, err = store.Resolve(ctx, kept, ref); err != nil {
		if rows, rerr := trialRows(ctx, kept, ref); rerr == nil && len(rows) > 0 {
			return ref, nil, nil
		}
		return "", nil, err
	}
	d, err = kept.Get(ctx, id)
	switch {
	case err != nil:
		return "", nil, err
	case d.Search == nil && d.Labels[report.SearchLabel] != "":
		return "", nil, &protocol.Error{Err: fmt.Errorf("--again: report %s is a trial", id), Hint: "its search is --again " + d.Labels[report.SearchLabel]}
	case d.Search == nil:
		return "", nil, &protocol.Error{Err: fmt.Errorf("--again: report %s is not a search", id), Hint: "carronade report list mode=find lists the searches"}
	}
	return d.Labels[report.SearchLabel], d, nil
}

// trialRows are the rows of the reports of a search's trials, the oldest first.
func trialRows(ctx context.Context, kept store.Store, id string) ([]store.Row, error) {
	rows, err := reports.RowsWithLabel(ctx, kept, report.SearchLabel, id, "mode")
	rows = slices.DeleteFunc(rows, func(r store.Row) bool { return r.Running || r.Text("mode") == string(report.Searching) })
	slices.SortStableFunc(rows, func(a, b store.Row) int { return a.At.Compare(b.At) })
	return rows, err
}

// openAt is the rate from which a search would close what the answer leaves open; 0: any.
func openAt(a *find.Answer) float64 {
	if a.Holds > 0 {
		return a.Holds
	}
	return a.Fails / 2
}

// notKept says what the answer to other limits rests on, and how to close what it leaves open.
func (f *searching) notKept(d *report.Document) []report.Condition {
	out := []report.Condition{
		{Name: "trials", Text: "carronade report list label.find=" + f.again + storeFlag(f.place)},
		{Name: "judged", Text: fmt.Sprintf("%s of search %s; nothing was sent", units.Plural(len(d.Search.Trials), "stored trial"), f.again)},
	}
	if at := openAt(d.Search.Answer); d.Search.Ending != find.Found && at > 0 {
		out = append(out, report.Condition{Name: "to decide", Text: "carronade find " + d.CommandArgs() + " --from " + units.FlagRate(units.RoundRate(at, 4))})
	}
	return out
}
