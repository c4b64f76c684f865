package judging

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"carronade/internal/command"
	"carronade/internal/export"
	"carronade/internal/judge"
	"carronade/internal/store"
)

const compareLong = `Compares the candidate's reports with the base's. A side is reports
(last,last~1), filters (branch=main,acks=all), a branch, or the beginning of a
revision; further filters apply to both. Reports of one workload are repetitions
of each other; a verdict needs at least six on each side. If a side has several
revisions, the newest is used.

First comes what makes the two not comparable: another client, other settings
of the servers, other leaders, another host, runs that were not trustworthy.
Then each row has both medians, their difference with its interval, and a
verdict: better, worse, same (within the smallest effect of interest), or cannot
tell, and why. The verdict depends on two rows, throughput and response p99,
judged together; all others are exploratory.

With --run the sides are workload files: both are run --repeat times,
alternating (A B B A ...), so that drift affects both.`

const compareExample = `
  carronade compare main faster
  carronade compare acks=all acks=1 'started>=1d' --effect 5%
  carronade compare last~1 last
  carronade compare --run acks-all.yaml acks-1.yaml --repeat 6`

// comparing holds the flags of compare.
type comparing struct {
	effects   []string
	run       bool
	repeat    int
	gate      bool
	untrusted bool
	revisions bool
	form      form
	draw      drawing
	tools     Tools
}

// Compare returns the command.
func Compare(t Tools) *cobra.Command {
	c := &comparing{tools: t}
	cmd := &cobra.Command{
		Use: "compare BASE CANDIDATE [FILTER...]", Short: "is one better than the other? with statistics",
		Long: compareLong, Example: compareExample,
		Args:              command.Args(2, -1, "two sides: reports, filters or branches"),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	fs := cmd.Flags()
	fs.StringArrayVar(&c.effects, "effect", nil, effectHelp)
	fs.BoolVar(&c.run, "run", false, "the sides are workload files: run them alternately, then compare")
	fs.IntVar(&c.repeat, "repeat", judge.Repetitions, "with --run: run each `N` times")
	fs.BoolVar(&c.gate, "gate", false, "exit with 1 if worse, with 4 if it cannot tell")
	fs.BoolVar(&c.revisions, "revisions", false, "judge all revisions of a side together, not only the newest")
	fs.BoolVar(&c.untrusted, "untrusted", false, "also judge runs that were not trustworthy")
	c.form.bind(fs)
	c.draw.bind(fs, "the distributions of both sides")
	open := t.Stores.Bind(fs)
	cmd.RunE = command.Run(func(cmd *cobra.Command, args []string) error {
		e, err := effects(c.effects)
		if err != nil {
			return err
		}
		if err = c.form.check(); err != nil {
			return err
		}
		o := judge.CompareOptions{BaseName: args[0], CandidateName: args[1], Effects: e, Untrusted: c.untrusted, Revisions: c.revisions}
		if c.run {
			if args, err = c.interleave(cmd, args); err != nil {
				return err
			}
		} else if cmd.Flags().Changed("repeat") {
			return &command.Words{Err: errors.New("--repeat belongs to --run"), Hint: "carronade compare --run A.yaml B.yaml --repeat 6 runs both; without --run, stored reports are compared"}
		}
		return open.Do(cmd.Context(), func(s store.Store) error { return c.compare(cmd.Context(), s, args, o) })
	})
	return cmd
}

// interleave runs both workloads and returns the ids of their reports.
func (c *comparing) interleave(cmd *cobra.Command, args []string) ([]string, error) {
	if len(args) > 2 {
		return nil, &command.Words{Err: fmt.Errorf("--run compares two workload files: unexpected argument %q", args[2]), Hint: "usage: carronade compare --run A.yaml B.yaml --repeat 6"}
	}
	if c.repeat < 1 || c.repeat > 1000 {
		return nil, &command.Words{Err: fmt.Errorf("--repeat %d: must be between 1 and 1000", c.repeat), Hint: "a verdict needs at least 6 of each"}
	}
	base, candidate, err := c.tools.Interleave(cmd.Context(), cmd.Flag("store").Value.String(), args[0], args[1], c.repeat)
	if err != nil {
		return nil, err
	}
	return []string{strings.Join(base, ","), strings.Join(candidate, ",")}, nil
}

func (c *comparing) compare(ctx context.Context, s store.Store, args []string, o judge.CompareOptions) error {
	fields := judge.CompareFields()
	base, err := rows(ctx, s, args[0], args[2:], fields)
	if err != nil {
		return err
	}
	candidate, err := rows(ctx, s, args[1], args[2:], fields)
	if err != nil {
		return err
	}
	found, err := judge.Compare(base, candidate, o)
	if err != nil {
		return &command.Words{Err: err, Hint: compareHint(err)}
	}
	switch {
	case c.form.json:
		err = command.WriteJSON(c.tools.Out, found)
	case c.form.junit:
		err = export.JUnit(c.tools.Out, comparisonSuites(found))
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
		return command.Exit{Code: command.Broken}
	case judge.CannotTell:
		return command.Exit{Code: command.CannotTell}
	}
	return nil
}

// compareHint is the hint for sides that cannot be compared.
func compareHint(err error) string {
	switch {
	case errors.Is(err, judge.ErrBothSides):
		return "choose the sides so that no report is on both"
	case errors.Is(err, judge.ErrNoneFit):
		return "carronade report show says why; --untrusted also judges runs that were not trustworthy"
	}
	return "carronade collate shows what differs; more filters choose one workload on each side"
}
