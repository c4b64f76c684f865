package reports

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/host"
	"carronade/internal/judge"
	"carronade/internal/report/export"
	"carronade/internal/store"
	"carronade/protocol"
	"carronade/units"
)

const compareLong = `Compares the candidate's reports with the base's. A side is reports
(last,last~1), filters (branch=main,acks=all), a branch, or the beginning of a
revision; further filters apply to both. Reports of one workload are repetitions
of each other. If a side has several revisions, the newest is used.

Runs that are made in turns (--run) show a difference of 25% or more with three
on each side, and smaller ones with six. Groups of runs that were made one after
the other differ without a cause: by 5%, or by more if earlier groups did. Only
a larger difference counts then, and with fewer than six a factor of two.

The verdict comes first, then why the sides may not be comparable: another
client, other settings of the servers, other leaders, another host, runs that
were not trustworthy. Then each row has both medians, their difference with its
interval, and a verdict: better, worse, same (no difference that matters: within
--min-effect), or cannot tell, with the reason. One row decides: the one that
--metric names, or that of the runs' limit, or the response p99, or without a
schedule throughput. The others are exploratory and corrected for their number.
If the candidate answers fewer events, better becomes mixed, and same becomes
cannot tell.

With --run the sides are workload files: both are run --repeat times,
alternating (A B B A ...), so that drift affects both. Runs that are not trusted
are replaced, at most as many as were requested. --repeat auto compares after
4, 6, 10, 16 and 24 runs of each side, and ends with the first verdict, or when
--budget is spent.`

const compareExample = `
  carronade compare main faster
  carronade compare acks=all acks=1 'started>=1d' --min-effect 5%
  carronade compare main faster --metric throughput --gate
  carronade compare last~1 last
  carronade compare --run acks-all.yaml acks-1.yaml --repeat 6
  carronade compare --run acks-all.yaml acks-1.yaml --repeat auto --budget 1h`

// bindSame adds the flag that makes all addresses one system.
func bindSame(fs *pflag.FlagSet, same *bool) {
	fs.BoolVar(same, "same-system", false, "all reports are of one system, whatever its address")
}

// An Interleaving says which workload files to run alternately, and how often.
type Interleaving struct {
	Place           string // of the store
	Base, Candidate string // the files
	// Sizes are the numbers of runs of each side after which Enough is asked, ascending; after
	// the last one it ends.
	Sizes     []int
	Enough    func(ctx context.Context, s store.Store, baseIDs, candidateIDs []string) (bool, error) // nil: never
	Budget    time.Duration                                                                          // no run begins that would end after it; 0: none
	Untrusted bool                                                                                   // runs that are not trusted are not replaced
}

// comparing holds the flags of compare.
type comparing struct {
	effects   []string
	metric    string
	run       bool
	repeat    string
	budget    string
	gate      bool
	untrusted bool
	full      bool
	revisions bool
	form      form
	draw      drawing
	same      bool
	tools     Tools
}

// Compare returns the command.
func Compare(t Tools) *cobra.Command {
	c := &comparing{tools: t}
	cmd := &cobra.Command{
		Use: "compare BASE CANDIDATE [FILTER...]", Short: "is one better than the other? with statistics",
		Long: compareLong, Example: compareExample,
		Args:              cmdutil.Args(2, -1, "two sides: reports, filters or branches"),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	fs := cmd.Flags()
	fs.StringArrayVar(&c.effects, "min-effect", nil, effectHelp)
	fs.StringVar(&c.metric, "metric", "", "the one `FIELD` that decides (default: response_p99; throughput without a schedule)")
	fs.BoolVar(&c.run, "run", false, "the sides are workload files: run them alternately, then compare")
	fs.StringVar(&c.repeat, "repeat", strconv.Itoa(judge.Repetitions), "with --run: run each `N` times, or auto: until there is a verdict")
	fs.StringVar(&c.budget, "budget", "", "with --repeat auto: begin no run that would end after this `DURATION`")
	fs.BoolVar(&c.gate, "gate", false, "exit with 1 if worse or mixed, with 4 if it cannot tell")
	fs.BoolVar(&c.revisions, "revisions", false, "judge all revisions of a side together, not only the newest")
	fs.BoolVar(&c.untrusted, "untrusted", false, "also judge runs that were not trustworthy")
	fs.BoolVar(&c.full, "full", false, "print the whole comparison, not only the first page")
	c.form.bind(fs)
	c.draw.bind(fs, "the distributions of both sides")
	bindSame(fs, &c.same)
	open := t.Stores.Bind(fs)
	cmd.RunE = cmdutil.Run(func(cmd *cobra.Command, args []string) error {
		e, err := effects(c.effects)
		if err != nil {
			return err
		}
		if c.metric != "" {
			if c.metric, err = judgedField("--metric", c.metric); err != nil {
				return err
			}
		}
		if err = c.form.check(); err != nil {
			return err
		}
		o := judge.CompareOptions{BaseName: args[0], CandidateName: args[1], Effects: e, Metric: c.metric, Untrusted: c.untrusted, Revisions: c.revisions, SameSystem: c.same}
		if c.run {
			if args, err = c.interleave(cmd, args, &o); err != nil {
				return err
			}
		} else {
			for _, name := range []string{"repeat", "budget"} {
				if cmd.Flags().Changed(name) {
					return &protocol.Error{Err: fmt.Errorf("--%s belongs to --run", name), Hint: "carronade compare --run A.yaml B.yaml --repeat 6 runs both; without --run, stored reports are compared"}
				}
			}
		}
		return open.Do(cmd.Context(), func(s store.Store) error { return c.compare(cmd.Context(), s, args, o) })
	})
	return cmd
}

// interleave runs both workloads and returns the ids of their reports.
func (c *comparing) interleave(cmd *cobra.Command, args []string, o *judge.CompareOptions) ([]string, error) {
	if len(args) > 2 {
		return nil, &protocol.Error{Err: fmt.Errorf("--run compares two workload files: unexpected argument %q", args[2]), Hint: "usage: carronade compare --run A.yaml B.yaml --repeat 6"}
	}
	j := Interleaving{Place: cmd.Flag("store").Value.String(), Base: args[0], Candidate: args[1], Untrusted: c.untrusted}
	if err := c.howOften(&j, o); err != nil {
		return nil, err
	}
	base, candidate, err := c.tools.Interleave(cmd.Context(), j)
	if err != nil {
		return nil, err
	}
	return []string{strings.Join(base, ","), strings.Join(candidate, ",")}, nil
}

// howOften sets how often both are run, as --repeat and --budget say.
func (c *comparing) howOften(j *Interleaving, o *judge.CompareOptions) error {
	if c.repeat == "auto" {
		j.Sizes, o.Alpha = judge.Looks, judge.LookAlpha
		j.Enough = func(ctx context.Context, s store.Store, base, candidate []string) (bool, error) {
			return c.enough(ctx, s, []string{strings.Join(base, ","), strings.Join(candidate, ",")}, *o)
		}
		if c.budget == "" {
			return nil
		}
		var err error
		if j.Budget, err = units.ParseDuration(c.budget); err != nil || j.Budget <= 0 {
			return &protocol.Error{Err: fmt.Errorf("--budget %s: not a duration", c.budget), Hint: "--budget 30m spends half an hour"}
		}
		return nil
	}
	if c.budget != "" {
		return &protocol.Error{Err: errors.New("--budget belongs to --repeat auto"), Hint: "carronade compare --run A.yaml B.yaml --repeat auto --budget 30m runs both until there is a verdict"}
	}
	n, err := strconv.Atoi(c.repeat)
	if err != nil || n < 1 || n > 1000 {
		return &protocol.Error{
			Err:  fmt.Errorf("--repeat %s: must be between 1 and 1000, or auto", c.repeat),
			Hint: fmt.Sprintf("3 of each are enough for a large difference, %d for smaller ones", judge.Repetitions),
		}
	}
	j.Sizes = []int{n}
	return nil
}

// enough is whether the runs so far give a verdict.
func (c *comparing) enough(ctx context.Context, s store.Store, sides []string, o judge.CompareOptions) (bool, error) {
	found, err := compareSides(ctx, s, sides, o)
	if err != nil {
		if errors.Is(err, judge.ErrNoneFit) {
			return false, nil // more runs may be trusted
		}
		return false, err
	}
	c.tools.Note("after %d and %d runs that count: %s", len(found.Base.Reports), len(found.Candidate.Reports), found.Verdict)
	return found.Verdict != judge.CannotTell, nil
}

// compareSides compares two sides of stored reports.
func compareSides(ctx context.Context, s store.Store, args []string, o judge.CompareOptions) (*judge.Comparison, error) {
	fields := judge.CompareFields()
	base, err := rows(ctx, s, args[0], args[2:], fields)
	if err != nil {
		return nil, err
	}
	candidate, err := rows(ctx, s, args[1], args[2:], fields)
	if err != nil {
		return nil, err
	}
	if o.Earlier, err = earlier(ctx, s, base, candidate, fields); err != nil {
		return nil, err
	}
	found, err := judge.Compare(base, candidate, o)
	if err != nil {
		return nil, &protocol.Error{Err: err, Hint: compareHint(err)}
	}
	return found, nil
}

// What is read of the time before the sides, to see how far groups of equal runs are apart.
const (
	earlierFor  = 7 * 24 * time.Hour
	mostEarlier = 500 // reports
)

// earlier returns the reports of the same operation from the week before the sides until the newest of them.
func earlier(ctx context.Context, s store.Store, base, candidate []store.Row, fields []string) ([]store.Row, error) {
	first := slices.MinFunc(slices.Concat(base, candidate), func(a, b store.Row) int { return a.At.Compare(b.At) })
	f := equal("op", first.Text("op"))
	return s.Rows(ctx, store.Query{Since: first.At.Add(-earlierFor), Filters: f, Limit: mostEarlier, Fields: f.Fields(slices.Clone(fields))})
}

func (c *comparing) compare(ctx context.Context, s store.Store, args []string, o judge.CompareOptions) error {
	found, err := compareSides(ctx, s, args, o)
	if err != nil {
		return err
	}
	switch {
	case c.form.json:
		err = cmdutil.WriteJSON(c.tools.Out, found)
	case c.form.junit:
		err = export.JUnit(c.tools.Out, comparisonSuites(found))
	case c.full:
		err = found.FullText(c.tools.Out, c.tools.Style)
	default:
		err = found.Text(c.tools.Out, c.tools.Style)
	}
	if err == nil {
		err = c.draw.write(&c.tools.Console, comparisonFigures(found))
	}
	if err != nil || !c.gate {
		return err
	}
	switch found.Verdict {
	case judge.Worse, judge.Mixed:
		return cmdutil.Exit{Code: host.ExitBroken}
	case judge.CannotTell:
		return cmdutil.Exit{Code: host.ExitCannotTell}
	}
	return nil
}

// compareHint is the hint for sides that cannot be compared.
func compareHint(err error) string {
	switch {
	case errors.Is(err, judge.ErrBothSides):
		return "choose the sides so that no report is on both"
	case errors.Is(err, judge.ErrOperations):
		return "choose reports of one operation: carronade report list --columns id,op,target shows the operation of each"
	case errors.Is(err, judge.ErrNoneFit):
		return unfitHint(err)
	}
	return "carronade collate shows what differs; more filters choose one workload and one system on each side"
}

// unfitHint is the hint for reports that are all left out.
func unfitHint(err error) string {
	if errors.Is(err, judge.ErrUntrusted) {
		return "carronade report show says why; --untrusted also judges runs that were not trustworthy"
	}
	return "carronade report show says why; run it again"
}
