package reports

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/judge"
	"carronade/internal/report/export"
	"carronade/internal/store"
	"carronade/protocol"
)

const tableLong = `Prints runs as the summary tables of Kafka's performance tools, the smallest run
first. The table of produce runs has events, MB a second and times; that of
consume runs has start and end, MB, events, and the rates of both. Without
--side both are printed, if there are reports of both.

--machines adds the conditions of the runs above the tables: the machines (of
the generator, and those of --system-host), the software and the settings.
--like riemann-load prints the columns of the load tool for Riemann: send rate,
ack rate, events without an ack, round trip and throughput, of runs against
Riemann.`

const tableExample = `
  carronade report table label.series=one
  carronade report table --side produce target~api-test -n 24h --as md
  carronade report table --side consume --as csv > consumed.csv
  carronade report table label.series=one --machines --as md > write-up.md`

// tabling holds the flags of table.
type tabling struct {
	side string
	as   string
	last string
	like string

	machines bool
}

// likeKafka is the default of --like.
const likeKafka = "kafka"

// tableForms are the values of --as.
var tableForms = []string{"text", "markdown", "csv", "json"}

// table returns the command; see judge.TableOf.
func (c *commands) table() *cobra.Command {
	var t tabling
	cmd := &cobra.Command{
		Use: "table [FILTER...]", Short: "print runs as summary tables of Kafka's tools",
		Long: tableLong, Example: tableExample,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	fs := cmd.Flags()
	fs.StringVar(&t.side, "side", "", "`SIDE` is produce or consume (default: both)")
	fs.StringVar(&t.as, "as", "text", "`FORM` is text, markdown (md), csv or json")
	fs.StringVarP(&t.last, "last", "n", "", "the newest `N`, or those up to an age, such as 168h (default: all)")
	fs.BoolVar(&t.machines, "machines", false, "machines, software and settings of the runs above the tables")
	fs.StringVar(&t.like, "like", likeKafka, "columns of `TOOL`: kafka or riemann-load")
	c.on(cmd, func(ctx context.Context, s store.Store, args []string) error { return c.doTable(ctx, s, &t, args) })
	return cmd
}

func (c *commands) doTable(ctx context.Context, s store.Store, t *tabling, words []string) error {
	t.as = export.Canonical(t.as)
	if !slices.Contains(tableForms, t.as) {
		return &protocol.Error{Err: fmt.Errorf("--as: unknown format %q of a table", t.as), Hint: "give one of " + strings.Join(tableForms, ", ")}
	}
	sides := []string{judge.Producing, judge.Consuming}
	if t.side != "" {
		if !slices.Contains(sides, t.side) {
			return &protocol.Error{Err: fmt.Errorf("--side: unknown side %q", t.side), Hint: "give produce or consume"}
		}
		sides = []string{t.side}
	}
	switch {
	case t.like != likeKafka && t.like != judge.LikeRiemannLoad:
		return &protocol.Error{Err: fmt.Errorf("--like: unknown tool %q", t.like), Hint: "give " + likeKafka + " or " + judge.LikeRiemannLoad}
	case t.like == judge.LikeRiemannLoad && t.side == judge.Consuming:
		return &protocol.Error{Err: errors.New("--like riemann-load: that tool only sends"), Hint: "leave out --side consume"}
	case t.like == judge.LikeRiemannLoad:
		sides = []string{judge.Producing}
		words = append(slices.Clone(words), "kind=riemann") // that tool knows no other system
	}
	if t.machines && t.as == "csv" {
		return &protocol.Error{Err: errors.New("--machines: csv holds numbers only"), Hint: "give --as markdown, text or json"}
	}
	now := time.Now()
	q := store.Query{Fields: judge.TableFields()}
	var err error
	if t.last != "" {
		last, err := store.ParseLast(t.last)
		if err != nil {
			return &protocol.Error{Err: fmt.Errorf("--last: %w", err), Hint: "-n 20 is the newest 20, -n 168h those of the last week"}
		}
		q.Since, q.Limit = last.Since(now), last.N
	}
	if q.Filters, err = store.ParseFilters(words, now); err != nil {
		return err
	}
	rows, err := s.Rows(ctx, q)
	if err != nil {
		return err
	}
	switch {
	case len(rows) == 0 && len(words) == 0:
		return &protocol.Error{Err: fmt.Errorf("%s holds no report", s.Place()), Hint: "carronade run makes one"}
	case len(rows) == 0:
		return noMatch(words)
	}
	return c.writeTables(ctx, s, t, rows, sides)
}

// writeTables writes the tables of the sides that have runs.
func (c *commands) writeTables(ctx context.Context, s store.Store, t *tabling, rows []store.Row, sides []string) error {
	var tables []*judge.Table
	var missing error
	for _, side := range sides {
		table, err := judge.TableOf(rows, side)
		if err != nil {
			missing = err
			continue
		}
		if t.like == judge.LikeRiemannLoad {
			table = table.InColumnsOf(t.like)
		}
		tables = append(tables, table)
	}
	if len(tables) == 0 {
		return missing
	}
	if t.as == "csv" && len(tables) > 1 {
		return &protocol.Error{Err: errors.New("--as csv holds one table, but the reports are of both sides"), Hint: "add --side produce or --side consume"}
	}
	var setup *judge.Setup
	if t.machines {
		ds, err := documents(ctx, s, runsOf(tables))
		if err != nil {
			return err
		}
		setup = judge.SetupOf(ds...)
	}
	switch {
	case t.as == "json" && setup != nil:
		return cmdutil.WriteJSON(c.Out, struct {
			*judge.Setup
			Tables []*judge.Table `json:"tables"`
		}{setup, tables})
	case t.as == "json":
		return cmdutil.WriteJSON(c.Out, tables)
	}
	if err := c.writeSetup(t, setup); err != nil {
		return err
	}
	for i, table := range tables {
		if i > 0 {
			if _, err := fmt.Fprintln(c.Out); err != nil {
				return err
			}
		}
		var err error
		switch t.as {
		case "markdown":
			err = table.Markdown(c.Out)
		case "csv":
			err = table.CSV(c.Out)
		default:
			err = table.Text(c.Out, c.Style)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// runsOf are the ids of the runs in tables, each once.
func runsOf(tables []*judge.Table) []string {
	var ids []string
	for _, t := range tables {
		for i := range t.Runs {
			if id := t.Runs[i].ID; !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// writeSetup writes what the runs were measured with, if it is not nil.
func (c *commands) writeSetup(t *tabling, setup *judge.Setup) error {
	switch {
	case setup == nil:
		return nil
	case t.as == "markdown":
		return setup.Markdown(c.Out)
	}
	return setup.Text(c.Out, c.Style)
}
