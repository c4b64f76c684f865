package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/cli/reports"
	"carronade/internal/dropin"
	"carronade/internal/judge"
	"carronade/internal/report"
	"carronade/internal/store"
	"carronade/internal/workload"
	"carronade/protocol"
)

const replayLong = `Runs the workload of a stored report again, once, as it was resolved then: its
target, seed, load, settings of the system under test and labels. The labels
that make a report part of a search, a variation or a scenario are left out.
Flags, and a target if given, override the report. Files that the first run
wrote (--hdr, --trace) are written again only if you pass the flag. Attached
files (--attach) are not copied from the old report: pass them again.
Operations on topics are made again by the command carronade topics. A report
has references to secrets, not the secrets: env:NAME and file:PATH are read
again, and a command line with a secret in it must be passed again.`

// notReplayed are settings about the output of the first run.
var notReplayed = []string{"hdr", "trace", "trace-events", "repeat"}

// partLabels are the labels that make a report part of a search, a variation or a scenario. A replay is
// part of none, and would be counted as one.
var partLabels = []string{
	report.SearchLabel, report.RoleLabel, searchLabel, judge.SeriesLabel, judge.PlanLabel, judge.CellLabel,
	report.ScenarioLabel, report.ScenarioStepLabel,
}

// ofPart reports whether a label, K=V, makes a report part of a whole.
func ofPart(label string) bool {
	k, _, _ := strings.Cut(label, "=")
	return slices.Contains(partLabels, k)
}

// replayCommand runs a report's workload again.
func (s *session) replayCommand() *cobra.Command {
	var t cmdutil.Settings
	cmd := &cobra.Command{
		Use: "replay [REPORT [TARGET]]", Short: "run the workload of a report again",
		Long: replayLong, Example: replayExample,
		Args:        cmdutil.Args(0, 2, "at most a report and another target"),
		Annotations: map[string]string{settingsPage: "all"},
		RunE: cmdutil.Run(func(cmd *cobra.Command, args []string) error {
			ref := "last"
			if len(args) > 0 {
				ref = args[0]
			}
			if len(args) > 1 {
				t.Doc.Add("target", "target", args[1])
			}
			d, err := s.stored(cmd.Context(), &t, ref)
			if err != nil {
				return err
			}
			if d.OnTopics() {
				return s.replayTopics(cmd.Context(), &t, d)
			}
			doc, err := replayed(d)
			if err != nil {
				return err
			}
			if t.Last("note") == "" {
				t.Doc.Add("note", "replay", "replay of "+d.ID)
			}
			ws, err := cmdutil.Await(cmd.Context(), func() ([]*workload.Workload, error) { return s.resolveAll(&t, []*workload.Document{doc}) })
			if err != nil {
				return err
			}
			o, end, err := s.prepare(cmd.Context(), &t, dropin.Observer{}, ws...)
			if err != nil {
				return err
			}
			defer end()
			if !o.quiet {
				s.note("replaying %s of %s: %s", d.ID, d.StartedAt.UTC().Format("2006-01-02 15:04"), d.Headline())
			}
			if len(d.Attachments) > 0 && len(t.All("attach")) == 0 {
				s.note("report %s has %s attached, and the new one will not: --attach FILE attaches the current file", d.ID, attached(d))
			}
			return s.runTasks(cmd.Context(), o)
		}),
	}
	t.Bind(cmd.Flags(), s.Kinds)
	s.bindHelpAll(cmd.Flags())
	return cmd
}

// attached names the attached files of a report.
func attached(d *report.Document) string {
	names := make([]string, len(d.Attachments))
	for i, a := range d.Attachments {
		names[i] = a.Name
	}
	return strings.Join(names, ", ")
}

// stored gets a report from the store that flags or configuration name.
func (s *session) stored(ctx context.Context, t *cmdutil.Settings, ref string) (d *report.Document, err error) {
	from := reports.Opening(func(ctx context.Context) (store.Store, error) { return s.existing(ctx, t.Last("store")) })
	err = from.Do(ctx, func(kept store.Store) error {
		id, err := store.Resolve(ctx, kept, ref)
		if err == nil {
			d, err = kept.Get(ctx, id)
		}
		return err
	})
	return d, err
}

// replayed is the workload of a report in the form of a workload file.
func replayed(d *report.Document) (*workload.Document, error) {
	if d.Search != nil {
		return nil, &protocol.Error{Err: fmt.Errorf("report %s is a search, and not a run", d.ID), Hint: "carronade find " + d.CommandArgs() + " searches again"}
	}
	if d.Scenario != nil {
		return nil, &protocol.Error{Err: fmt.Errorf("report %s is a scenario, and not a run", d.ID), Hint: "carronade scenario " + d.CommandArgs() + " runs it again, and carronade report replay repeats a single step"}
	}
	data, err := json.Marshal(d.Workload)
	if err != nil {
		return nil, fmt.Errorf("read the workload of report %s: %w", d.ID, err)
	}
	doc, err := workload.ParseDocument("report "+d.ID, data)
	if err != nil {
		return nil, err
	}
	doc.Entries = slices.DeleteFunc(doc.Entries, func(e workload.Entry) bool { return slices.Contains(notReplayed, e.Name) })
	for i := range doc.Entries {
		if e := &doc.Entries[i]; e.Name == "label" {
			e.Values = slices.DeleteFunc(e.Values, ofPart)
		}
	}
	for i := range doc.Entries { // line numbers of a report mean nothing to users
		doc.Entries[i].Where = strings.Replace(doc.Entries[i].Where, ":1:", ":", 1)
	}
	return doc, nil
}
