package reporttest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"carronade/internal/compat"
	"carronade/internal/report"
	"carronade/internal/workload"
)

// A result contains what a tool prints, what it asks to run, and its exit code.
func TestToolResult(t *testing.T) {
	tool := &compat.Tool{Name: "tool", Main: func(ctx context.Context, p *compat.Program) (int, error) {
		fmt.Fprintln(p.Out, "called", p.Called, p.Args)
		var one, other compat.Draft
		one.Set("label", "-l", "a=b")
		one.Set("label", "-l", "c=d")
		other.Set("count", "-n", "5")
		if _, err := p.Run(ctx, &one.Document, compat.Observer{}); err != nil {
			return 4, err
		}
		ds, err := p.RunTogether(ctx, []*workload.Document{&one.Document, &other.Document})
		fmt.Fprintln(p.Err, len(ds), "reports")
		return 3, err
	}}
	runs := 0
	s := RunTool(t.Context(), t, tool, compat.Program{Args: []string{"-l"}}, func(*workload.Document, compat.Observer) (*report.Document, error) {
		runs++
		return &report.Document{}, nil
	})
	if s.Out != "called tool [-l]\n" || s.Errs != "2 reports\n" || s.Code != 3 || s.Err != nil || runs != 3 {
		t.Errorf("%+v, after %d runs", s, runs)
	}
	if len(s.Workloads) != 3 || s.Workloads[0]["label"] != "a=b c=d" || s.Last()["count"] != "5" || s.Last()["label"] != "" {
		t.Errorf("workloads %q", s.Workloads)
	}
	errRefused := errors.New("connection refused")
	s = RunTool(t.Context(), t, tool, compat.Program{Called: "link"}, func(*workload.Document, compat.Observer) (*report.Document, error) { return nil, errRefused })
	if s.Code != 4 || !errors.Is(s.Err, errRefused) || s.Out != "called link []\n" || len(s.Workloads) != 1 {
		t.Errorf("%+v", s)
	}
	if s = RunTool(t.Context(), t, &compat.Tool{Main: func(context.Context, *compat.Program) (int, error) { return 0, nil }}, compat.Program{}, nil); s.Last()["x"] != "" || s.Last() != nil {
		t.Errorf("%+v", s)
	}
}
