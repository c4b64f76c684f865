package reports

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/host"
	"carronade/internal/judge"
	"carronade/internal/report"
	"carronade/internal/report/export"
	"carronade/internal/store"
	"carronade/protocol"
)

const verifyLong = `The gate: is the newest revision worse than the ones before it? Without a filter
it judges all workloads that people ran, and lists the worst. Reports are
grouped by workload and branch, and their repetitions by revision (of
--system-git, --system-checkout or --revision; without one, by time). The newest
revision is compared with those since the last step. A step is a lasting change
in the history. A step for the worse without a recovery counts as worse, however
long ago it was.

The verdict depends on throughput, response p99, and whether the system died in
runs of the newest revision. Runs made at another time differ without a cause:
with fewer than six revisions before it, only a difference of more than 5% (or
of more than those differ) is worse. The exit code is the worst over all
workloads:
  0  not worse: a relevant regression is ruled out
  1  worse
  2  the command failed
  4  cannot tell: too little history, too noisy, or too few usable reports of
     the newest revision (--strict makes it 1)

With --against the newest revision of each workload is compared with exactly
those reports, such as the ones of a release, and with no others. They may be of
any branch, and a verdict needs six reports on both sides.

With --confirm a regression must be reproduced before the gate fails: the shell
runs CMD for each workload that is worse, with CARRONADE_REPORT,
CARRONADE_REVISION and CARRONADE_BRANCH set. CMD must make more reports of that
revision.`

const verifyExample = `
  carronade verify -n 168h branch=main
  carronade verify branch=faster --against branch=main,revision=4.1
  carronade verify branch=main --min-effect 5% --min-effect response_p99=15%
  carronade verify branch=main \
    --confirm 'carronade report replay $CARRONADE_REPORT'`

// verifying holds the flags of verify.
type verifying struct {
	last      string
	effects   []string
	strict    bool
	confirm   string
	against   string
	untrusted bool
	form      form
	draw      drawing
	same      bool
	own       bool // without a filter: only workloads that a person ran
	tools     Tools
}

// Verify returns the command.
func Verify(t Tools) *cobra.Command {
	c := &verifying{tools: t}
	cmd := &cobra.Command{
		Use: "verify [FILTER...]", Short: "the gate: is the newest worse than before?",
		Long: verifyLong, Example: verifyExample,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	fs := cmd.Flags()
	fs.StringVarP(&c.last, "last", "n", "168h", "reports up to this `AGE`, such as 168h, or this number of the newest")
	fs.StringArrayVar(&c.effects, "min-effect", nil, effectHelp)
	fs.BoolVar(&c.strict, "strict", false, "exit with 1 instead of 4 if it cannot tell")
	fs.StringVar(&c.confirm, "confirm", "", "before failing, run `CMD`, which makes more reports")
	fs.StringVar(&c.against, "against", "", "compare with these `REPORTS` (ids, filters, a branch or a revision), not with the history")
	fs.BoolVar(&c.untrusted, "untrusted", false, "also judge runs that were not trustworthy")
	c.form.bind(fs)
	c.draw.bind(fs, "the histories")
	bindSame(fs, &c.same)
	open := t.Stores.Bind(fs)
	cmd.RunE = cmdutil.Run(func(cmd *cobra.Command, args []string) error {
		return open.Do(cmd.Context(), func(s store.Store) error { return c.run(cmd.Context(), s, args) })
	})
	return cmd
}

func (c *verifying) run(ctx context.Context, s store.Store, args []string) error {
	e, err := effects(c.effects)
	if err != nil {
		return err
	}
	if err = c.form.check(); err != nil {
		return err
	}
	last, err := store.ParseLast(c.last)
	if err != nil {
		return &protocol.Error{Err: fmt.Errorf("--last: %w", err), Hint: "-n 168h judges the reports of a week"}
	}
	now := time.Now()
	q := store.Query{Since: last.Since(now), Limit: last.N}
	if q.Filters, err = store.ParseFilters(args, now); err != nil {
		return err
	}
	q.Fields = judge.VerifyFields(q.Filters)
	if c.own = len(args) == 0 && c.against == ""; c.own {
		for _, name := range notByPeople {
			q.Fields = append(q.Fields, "label."+name)
		}
	}
	o := judge.VerifyOptions{Asked: strings.Join(args, " "), Since: q.Since, Effects: e, Untrusted: c.untrusted, SameSystem: c.same}
	if c.against != "" {
		base, err := rows(ctx, s, c.against, nil, q.Fields)
		if err != nil {
			return err
		}
		o.Against = &judge.Baseline{Name: c.against, Rows: base}
	}
	found, err := c.verify(ctx, s, q, o, nil)
	if err != nil {
		return err
	}
	if found.Verdict == judge.Worse && c.confirm != "" {
		if q.Limit > 0 { // new reports are added; those beyond the limit are not new
			q.Limit, q.Since = 0, oldest(found)
			there, err := s.Rows(ctx, store.Query{Since: q.Since, Filters: q.Filters, Fields: []string{}})
			if err != nil {
				return err
			}
			found.RegisterKnown(there)
		}
		for i := range found.Groups {
			if g := &found.Groups[i]; g.Verdict == judge.Worse {
				if err := c.runConfirm(ctx, g); err != nil {
					return err
				}
			}
		}
		if found, err = c.verify(ctx, s, q, o, found); err != nil {
			return err
		}
	}
	switch {
	case c.form.json:
		err = cmdutil.WriteJSON(c.tools.Out, found)
	case c.form.junit:
		err = export.JUnit(c.tools.Out, gateSuites(found, c.strict))
	default:
		err = found.Text(c.tools.Out, c.tools.Style)
	}
	if err == nil {
		err = c.draw.write(&c.tools.Console, historyFigures(found))
	}
	switch {
	case err != nil:
		return err
	case found.Verdict == judge.Worse, found.Verdict == judge.CannotTell && c.strict:
		return cmdutil.Exit{Code: host.ExitBroken}
	case found.Verdict == judge.CannotTell:
		return cmdutil.Exit{Code: host.ExitCannotTell}
	}
	return nil
}

// verify queries the store and judges; after an alarm it confirms and judges again.
func (c *verifying) verify(ctx context.Context, s store.Store, q store.Query, o judge.VerifyOptions, alarm *judge.Verification) (*judge.Verification, error) {
	rows, err := s.Rows(ctx, q)
	if err != nil {
		return nil, err
	}
	all := len(rows)
	if c.own {
		rows = slices.DeleteFunc(rows, func(r store.Row) bool {
			return slices.ContainsFunc(notByPeople, func(name string) bool { return r.Text("label."+name) != "" })
		})
	}
	if len(rows) == 0 {
		what := "no report"
		switch {
		case o.Asked != "":
			what += " matches " + o.Asked
		case all > 0:
			what = "every report is of a demo, a search or --vary, which only a filter chooses"
		default:
			what += " is there"
		}
		return nil, &protocol.Error{
			Err:  fmt.Errorf("%s, of the last %s", what, c.last),
			Hint: "carronade report list shows what is there; -n 720h looks back a month",
		}
	}
	if alarm != nil {
		found, err := alarm.Confirm(rows, o)
		if err != nil {
			return nil, &protocol.Error{Err: err, Hint: "the command must make a report of the same workload and revision, in the same store: carronade report replay $CARRONADE_REPORT does"}
		}
		return found, nil
	}
	found, err := judge.Verify(rows, o)
	if errors.Is(err, judge.ErrNoBaseline) {
		return nil, &protocol.Error{Err: err, Hint: "--against takes the reports of the same workloads on the same systems; carronade compare compares others, and --same-system ignores addresses"}
	}
	if err != nil {
		return nil, &protocol.Error{Err: err, Hint: unfitHint(err)}
	}
	return found, nil
}

// notByPeople are the labels of reports that are parts of other commands: trials of searches, cells of --vary,
// demos.
var notByPeople = []string{report.SearchLabel, judge.SeriesLabel, report.DemoLabel}

// oldest is the start of the first judged report.
func oldest(v *judge.Verification) time.Time {
	var out time.Time
	for _, g := range v.Groups {
		if out.IsZero() || g.From.Before(out) {
			out = g.From
		}
	}
	return out
}

// confirmTimeout is how long a confirming command may take to end after an
// interrupt.
const confirmTimeout = 30 * time.Second

// runConfirm runs the confirming command for one workload.
func (c *verifying) runConfirm(ctx context.Context, g *judge.Gate) error {
	newest := g.Revisions[len(g.Revisions)-1]
	all := slices.Concat(newest.LeftOut, newest.Reports) // if a revision always crashes, none of its reports is judged
	id := all[len(all)-1]
	c.tools.Note("%s is worse: running %s to confirm it", id, c.confirm)
	words := host.Shell(c.confirm)
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Env = append(os.Environ(), "CARRONADE_REPORT="+id, "CARRONADE_REVISION="+newest.Revision, "CARRONADE_BRANCH="+g.Branch)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = nil, c.err(), c.err()
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(os.Interrupt) }, confirmTimeout
	err := cmd.Run()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	// The exit code belongs to the command's own run. Only its report matters.
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return &protocol.Error{Err: fmt.Errorf("--confirm: %w", err), Hint: "the shell runs it"}
	}
	if exit != nil {
		c.tools.Note("the confirming command exited with %s", exit)
	}
	return nil
}

// err is the output of the confirming command: stdout is for the result.
func (c *verifying) err() io.Writer {
	if c.tools.Err == nil {
		return io.Discard
	}
	return c.tools.Err
}
