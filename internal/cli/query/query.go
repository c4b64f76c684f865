package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/riemann"
	"carronade/internal/workload"
	"carronade/protocol"
	"carronade/units"
)

const queryLong = `Queries the index of a Riemann server and prints the matching events: one line
per event, with --all its description, tags and attributes below it, or with
--json everything.

QUERY is in the server's own language. Strings are in double quotes, so put the
query into single quotes: 'service =~ "api %" and state != "ok"'; true matches
every event. The query goes over TCP, also for a URL of UDP, WebSocket or HTTP.`

const queryExample = `
  carronade query riemann://127.0.0.1:5555 'true'
  carronade query riemann://127.0.0.1:5555 'service =~ "riemann server %"'
  carronade query riemann://127.0.0.1:5555 'metric > 0.9 and tagged "eu"' --json`

// querying holds the flags and the console of the command.
type querying struct {
	cmdutil.Console
	cmdutil.Settings
	kind    protocol.Kind
	json    bool
	all     bool
	timeout string
}

// Command returns the command for the program's Riemann kind.
func Command(c cmdutil.Console, k protocol.Kind) *cobra.Command {
	q := &querying{Console: c, kind: k}
	cmd := &cobra.Command{
		Use: "query TARGET QUERY", Short: "query a Riemann server's index",
		Long: queryLong, Example: queryExample,
		Args:              cmdutil.Args(2, 2, "a target and a query, such as riemann://127.0.0.1:5555 'state = \"ok\"'"),
		ValidArgsFunction: cmdutil.CompleteTarget([]protocol.Kind{k}),
		RunE: cmdutil.Run(func(cmd *cobra.Command, args []string) error {
			return q.run(cmd.Context(), args[0], args[1])
		}),
	}
	fs := cmd.Flags()
	fs.BoolVar(&q.json, "json", false, "the events as JSON on stdout")
	fs.BoolVar(&q.all, "all", false, "description, tags and attributes too")
	fs.StringVar(&q.timeout, "timeout", "10s", "give up after this `DURATION`")
	for _, o := range workload.Table(k) {
		if o.Kind != "" && cmdutil.ForQuery(&o) {
			q.BindSetting(fs, &o)
		}
	}
	return cmd
}

func (q *querying) run(ctx context.Context, to, text string) error {
	q.Doc.Add("target", "target", to)
	w, err := workload.Resolve([]protocol.Kind{q.kind}, &q.Doc, nil)
	if err != nil {
		return err
	}
	for _, text := range w.Warnings {
		q.Warn(text)
	}
	spec, err := w.Spec()
	if err != nil {
		return err
	}
	timeout, err := units.ParseDuration(q.timeout)
	if err != nil || timeout <= 0 {
		return &protocol.Error{Err: fmt.Errorf("--timeout: %q is not a duration above 0", q.timeout), Hint: "write it as 10s"}
	}
	asking, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	events, err := riemann.Query(asking, w.URL, spec.Options, text)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return context.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return &protocol.Error{Err: fmt.Errorf("no answer from %s within %s", w.Target(), units.FormatDuration(timeout)), Hint: "raise --timeout"}
	default:
		return err
	}
	slices.SortStableFunc(events, func(a, b riemann.Event) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Service, b.Service))
	})
	if q.json {
		return cmdutil.WriteJSON(q.Out, answerOf(w.Target(), text, events))
	}
	q.table(events, time.Now())
	return nil
}

// querySchema is the version of the JSON format.
const querySchema = "carronade.query/1"

// An answer is the result as JSON.
type answer struct {
	Schema string          `json:"schema"`
	Target string          `json:"target"`
	Query  string          `json:"query"`
	Count  int             `json:"count"`
	Events []riemann.Event `json:"events"`
}

func answerOf(to, text string, events []riemann.Event) answer {
	a := answer{Schema: querySchema, Target: to, Query: text, Count: len(events), Events: events}
	for i := range a.Events { // JSON cannot express NaN or infinity
		if v, ok := a.Events[i].Metric.(float64); ok && (math.IsNaN(v) || math.IsInf(v, 0)) {
			a.Events[i].Metric = fmt.Sprint(v)
		}
		if v, ok := a.Events[i].Metric.(float32); ok && (math.IsNaN(float64(v)) || math.IsInf(float64(v), 0)) {
			a.Events[i].Metric = fmt.Sprint(v)
		}
	}
	if a.Events == nil {
		a.Events = []riemann.Event{}
	}
	return a
}
