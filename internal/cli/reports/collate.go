package reports

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/judge"
	"carronade/internal/store"
	"carronade/protocol"
)

const collateLong = `Puts reports that differ in one variable side by side. VAR is that variable: a
setting of the workload (concurrency, events, rate, for), the branch or revision
of the system under test, one of its flags, a field of the host, or a label.
Reports in which every other independent variable is the same form a group. A
group has a row for each value of VAR, with the medians of its repetitions and,
below them, half of the confidence interval. The best row is marked (*) only if
the repetitions support it, which takes six of each. With fewer, a row whose
throughput is more than twice that of every other row is marked as ahead,
unproven (^); for times, one with less than half.

Filters choose the reports, as in report list. A filter on VAR itself chooses
the rows to start from; the other rows of their groups may have any value. With
VAR=branch the revision may differ (the newest of each branch is used). Flags of
the system that differ are in the last column, also if VAR is a setting.`

const collateExample = `
  carronade collate concurrency
  carronade collate apm-server.tracing.enabled branch=main
  carronade collate branch branch=faster
  carronade collate revision branch=main --sort revision_date
  carronade collate rate 'started>=7d' --csv > rates.csv
  carronade collate acks --markdown >> report.md
  carronade collate linger --pictures pictures`

// collating holds the flags of collate.
type collating struct {
	sort     string
	last     string
	columns  []string
	all      bool
	csv      bool
	json     bool
	markdown bool
	same     bool
	starts   bool
	draw     drawing
	tools    Tools
}

// Collate returns the command.
func Collate(t Tools) *cobra.Command {
	c := &collating{tools: t}
	cmd := &cobra.Command{
		Use: "collate VAR [FILTER...]", Short: "reports that differ in VAR alone, side by side",
		Long: collateLong, Example: collateExample,
		Args:              cmdutil.Args(1, -1, "the field that differs, such as concurrency, branch, or a flag of the system"),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	fs := cmd.Flags()
	fs.StringVar(&c.sort, "sort", "", "sort rows and groups by `FIELD`, the best or newest first; -FIELD: reversed")
	fs.StringVarP(&c.last, "last", "n", fmt.Sprint(judge.CollateGroups), "at most `N` groups, or only reports up to an age, such as 168h")
	fs.StringArrayVar(&c.columns, "column", nil, "another column: a `FIELD` that was measured, such as lost or in-flight-max (repeatable)")
	fs.BoolVar(&c.all, "all", false, "include groups in which VAR has only one value")
	fs.BoolVar(&c.csv, "csv", false, "as CSV, one line per row")
	fs.BoolVar(&c.json, "json", false, "as JSON")
	fs.BoolVar(&c.markdown, "markdown", false, "as Markdown, for a page or an issue")
	c.draw.bind(fs, "throughput and p99 of each row")
	bindSame(fs, &c.same)
	fs.BoolVar(&c.starts, "filter-starts", false, "filters choose only the rows to start from, as in hey-apm: the other rows of their groups may be of any report")
	open := t.Stores.Bind(fs)
	cmd.RunE = cmdutil.Run(func(cmd *cobra.Command, args []string) error {
		return open.Do(cmd.Context(), func(s store.Store) error { return c.run(cmd.Context(), s, args) })
	})
	return cmd
}

func (c *collating) run(ctx context.Context, s store.Store, args []string) error {
	given := []string{}
	for name, is := range map[string]bool{"--csv": c.csv, "--json": c.json, "--markdown": c.markdown} {
		if is {
			given = append(given, name)
		}
	}
	if len(given) > 1 {
		slices.Sort(given)
		return &protocol.Error{Err: fmt.Errorf("%s cannot be combined", strings.Join(given, " and ")), Hint: "give one of them"}
	}
	now := time.Now()
	o := judge.CollateOptions{Var: args[0], Sort: c.sort, Columns: c.columns, All: c.all, Now: now, SameSystem: c.same, FilterStarts: c.starts}
	var err error
	if o.Last, err = store.ParseLast(c.last); err != nil {
		return &protocol.Error{Err: fmt.Errorf("--last: %w", err), Hint: "-n 5 shows five groups, -n 168h uses the reports of the last week"}
	}
	if o.Filters, err = store.ParseFilters(args[1:], now); err != nil {
		return err
	}
	q := store.Query{Fields: judge.CollateFields(o), Filters: judge.CollateFilters(o)}
	rows, err := s.Rows(ctx, q)
	if err == nil && len(rows) == 0 && len(q.Filters) > 0 {
		q.Filters = nil // so that the error can count what each filter matches
		rows, err = s.Rows(ctx, q)
	}
	if err != nil {
		return err
	}
	found, err := judge.Collate(rows, o)
	if err != nil {
		return err
	}
	switch {
	case c.csv:
		if len(found.Groups) == 0 { // CSV has no place for the reason
			c.tools.Note("%s", strings.Join(found.Notes, "; "))
		}
		err = found.CSV(c.tools.Out)
	case c.markdown:
		err = found.Markdown(c.tools.Out)
	case c.json:
		err = cmdutil.WriteJSON(c.tools.Out, found)
	default:
		err = found.Text(c.tools.Out, c.tools.Style, c.tools.Columns)
	}
	if err != nil {
		return err
	}
	return c.draw.write(&c.tools.Console, collationFigures(found))
}
