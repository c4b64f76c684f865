package cli

import (
	"context"
	"time"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/dropin"
	"carronade/internal/report"
	"carronade/internal/workload"
)

// findAs searches the ceiling of a tool's workload, and keeps the report of the search and those of its trials.
func (s *session) findAs(ctx context.Context, tool *dropin.Tool, doc *workload.Document, common dropin.Common, budget time.Duration) (*report.Document, error) {
	f := &searching{share: "2%", budget: budget.String(), more: findMore{repeat: 1}}
	f.settings = cmdutil.Settings{Doc: *doc}
	f.settings.Doc.Add("label", byAs, "as="+tool.Name)
	for _, k := range common.Keep { // after the tool's own, so these count
		f.settings.Doc.Add(k.Name, k.Flag, k.Text)
	}
	if err := f.parse(); err != nil {
		return nil, err
	}
	o, end, err := s.prepareFind(ctx, f, nil)
	if err != nil {
		return nil, err
	}
	defer end()
	answer, err := s.answer(ctx, f, &o)
	if err != nil {
		return nil, err
	}
	d, err := f.reportOf(f.id, answer, f.of)
	if err != nil {
		return nil, err
	}
	if o.keep.store != nil && len(answer.Trials) > 0 {
		s.reportStored(o.keep, d, keepAnswer(o.keep.store, d), true)
	}
	return d, nil
}
