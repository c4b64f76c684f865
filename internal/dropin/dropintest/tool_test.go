package dropintest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"carronade/internal/dropin"
	"carronade/internal/report"
	"carronade/internal/workload"
	"carronade/test/testkit/assert"
)

// A result contains what a tool prints, what it asks to run, and its exit code.
func TestToolResult(t *testing.T) {
	tool := &dropin.Tool{Name: "tool", Main: func(ctx context.Context, p *dropin.Program) (int, error) {
		fmt.Fprintln(p.Out, "called", p.Called, p.Args)
		var one, other dropin.Draft
		one.Set("label", "-l", "a=b")
		one.Set("label", "-l", "c=d")
		other.Set("count", "-n", "5")
		if _, err := p.Run(ctx, &one.Document, dropin.Observer{}); err != nil {
			return 4, err
		}
		ds, err := p.RunTogether(ctx, []*workload.Document{&one.Document, &other.Document})
		fmt.Fprintln(p.Err, len(ds), "reports")
		return 3, err
	}}
	runs := 0
	s := Run(t.Context(), t, tool, dropin.Program{Args: []string{"-l"}}, func(*workload.Document, dropin.Observer) (*report.Document, error) {
		runs++
		return &report.Document{}, nil
	})
	assert.True(t, s.Out == "called tool [-l]\n" && s.Errs == "2 reports\n" && s.Code == 3 && s.Err == nil && runs == 3,
		"%+v, after %d runs", s, runs)
	if len(s.Workloads) != 3 || s.Workloads[0]["label"] != "a=b c=d" || s.Last()["count"] != "5" || s.Last()["label"] != "" {
		t.Errorf("workloads %q", s.Workloads)
	}
	errRefused := errors.New("connection refused")
	s = Run(t.Context(), t, tool, dropin.Program{Called: "link"}, func(*workload.Document, dropin.Observer) (*report.Document, error) { return nil, errRefused })
	assert.True(t, s.Code == 4 && errors.Is(s.Err, errRefused) && s.Out == "called link []\n" && len(s.Workloads) == 1, "%+v", s)
	s = Run(t.Context(), t, &dropin.Tool{Main: func(context.Context, *dropin.Program) (int, error) { return 0, nil }}, dropin.Program{}, nil)
	assert.True(t, s.Last()["x"] == "" && s.Last() == nil, "%+v", s)
}
