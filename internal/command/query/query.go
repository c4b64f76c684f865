// Package query is the command that only Riemann has: what a server's index
// holds, asked for in the server's own query language. It turns what was typed
// into a question and the answer into a table or JSON, and refuses to know how
// a question travels.
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

	"carronade/internal/command"
	"carronade/internal/workload"
	"carronade/target"
	"carronade/target/riemann"
	"carronade/units"
)

const long = `Asks a Riemann server for the events of its index that match, and prints them: a
line an event, with --all its description, tags and attributes below it, or with
--json everything.

QUERY is in the server's own language. Texts stand in double quotes, so that the
whole is best put into single ones: 'service =~ "api %" and state != "ok"'; true
is every event. A URL of UDP, WebSocket or HTTP is asked over TCP.`

const example = `
  carronade query riemann://127.0.0.1:5555 'true'
  carronade query riemann://127.0.0.1:5555 'service =~ "riemann server %"'
  carronade query riemann://127.0.0.1:5555 'metric > 0.9 and tagged "eu"' --json`

// query is the command, its flags and whom it speaks to.
type query struct {
	command.Console
	command.Settings
	kind    target.Kind
	json    bool
	all     bool
	timeout string
}

// Command returns the command over the program's Riemann kind.
func Command(c command.Console, k target.Kind) *cobra.Command {
	q := &query{Console: c, kind: k}
	cmd := &cobra.Command{
		Use: "query TARGET QUERY", Short: "what a Riemann server's index holds",
		Long: long, Example: example,
		Args:              command.Args(2, 2, "a target and a query, such as riemann://127.0.0.1:5555 'state = \"ok\"'"),
		ValidArgsFunction: command.CompleteTarget([]target.Kind{k}),
		RunE: command.Run(func(cmd *cobra.Command, args []string) error {
			return q.run(cmd.Context(), args[0], args[1])
		}),
	}
	fs := cmd.Flags()
	fs.BoolVar(&q.json, "json", false, "the events as JSON on stdout")
	fs.BoolVar(&q.all, "all", false, "description, tags and attributes too")
	fs.StringVar(&q.timeout, "timeout", "10s", "how long it may take, a `DURATION`")
	for _, o := range workload.Table(k) {
		if o.Kind != "" && belongs(&o) {
			q.BindSetting(fs, &o)
		}
	}
	return cmd
}

// belongs tells whether an option means something for a question: what reaches
// the server does.
func belongs(o *workload.Setting) bool {
	return o.Group == "security" || o.Name == "query-address" || o.Name == "connect-timeout"
}

func (q *query) run(ctx context.Context, to, text string) error {
	q.Doc.Add("target", "target", to)
	w, err := workload.Resolve([]target.Kind{q.kind}, &q.Doc, nil)
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
		return &command.Words{Err: fmt.Errorf("--timeout: %q is no duration above 0", q.timeout), Hint: "write it as 10s"}
	}
	asking, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	events, err := riemann.Query(asking, w.URL, spec.Options, text)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return context.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return &command.Words{Err: fmt.Errorf("no answer from %s within %s", w.Target(), units.FormatDuration(timeout)), Hint: "--timeout gives it longer"}
	default:
		return err
	}
	slices.SortStableFunc(events, func(a, b riemann.Event) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Service, b.Service))
	})
	if q.json {
		return command.WriteJSON(q.Out, answerOf(w.Target(), text, events))
	}
	q.table(events, time.Now())
	return nil
}

// schema names the form of the JSON.
const schema = "carronade.query/1"

// An answer is the result as JSON.
type answer struct {
	Schema string          `json:"schema"`
	Target string          `json:"target"`
	Query  string          `json:"query"`
	Count  int             `json:"count"`
	Events []riemann.Event `json:"events"`
}

func answerOf(to, text string, events []riemann.Event) answer {
	a := answer{Schema: schema, Target: to, Query: text, Count: len(events), Events: events}
	for i := range a.Events { // JSON has no name for what is no number
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
