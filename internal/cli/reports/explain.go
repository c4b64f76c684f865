package reports

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/report/explain"
	"carronade/internal/store"
	"carronade/protocol"
)

const explainLong = `For people who see a stall or a spike in a report and ask where it came from.
Says what coincided with the stalls, the spikes of p99 and the steps in
throughput of a stored report (default: the newest): pauses of a JVM's
collector, page-outs, steal, throttling, pressure, disk queues, changes of
leaders, rebalances, retries, lost connections, freezes of this program, and the
system's own metrics, as far as they were watched. Each finding has the chance
of such a coincidence, from shifting the incidents in time against what was
watched, corrected for everything that was compared. If all coincidences may be
chance, it says so, and lists what was not watched.`

const explainExample = `
  carronade explain
  carronade explain last~2
  carronade explain 3kab --json | jq '.groups[].findings'`

// Explain returns the command that explains a report.
func Explain(t Tools) *cobra.Command {
	c := &commands{t}
	var asJSON bool
	cmd := &cobra.Command{
		Use: "explain [REPORT]", Short: "what coincided with a report's stalls, spikes and steps",
		Long: explainLong, Example: explainExample, Args: cmdutil.Args(0, 1, "at most one report"),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	c.on(cmd, func(ctx context.Context, s store.Store, args []string) error {
		d, err := c.get(ctx, s, args)
		if err != nil {
			return err
		}
		switch {
		case d.Search != nil:
			return &protocol.Error{
				Err:  fmt.Errorf("report %s is of a search, which has no series", d.ID),
				Hint: "explain one of its trials: carronade report list label.find=" + d.ID,
			}
		case !d.IsRun():
			return &protocol.Error{
				Err:  fmt.Errorf("report %s is of a scenario, which has no series", d.ID),
				Hint: "explain the report of one of its steps",
			}
		}
		x := explain.Explain(d)
		if asJSON {
			return cmdutil.WriteJSON(c.Out, x)
		}
		return x.Text(c.Out, c.Style)
	})
	return cmd
}
