package dropintest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"carronade/internal/dropin"
	"carronade/internal/report"
	"carronade/internal/workload"
	"carronade/test/testkit/assert"
)

// A Result is the result of a command line.
type Result struct {
	Out, Errs string // what was printed; without the error that the tool returned
	Code      int
	Err       error
	Workloads []Settings // of each workload, in order
}

// Settings are a workload's settings by name: all values in order, separated by
// blanks.
type Settings map[string]string

// Last returns the settings of the last workload. If there was none, it is nil and
// every setting is empty.
func (s Result) Last() Settings {
	if len(s.Workloads) == 0 {
		return nil
	}
	return s.Workloads[len(s.Workloads)-1]
}

// A Reports supplies the report of a workload. It may call the observer, in which only
// those functions are set that the tool set.
type Reports func(d *workload.Document, observer dropin.Observer) (*report.Document, error)

// Run runs a tool with p. It sets p's output, and the functions that run workloads
// unless p has them. Workloads that should run together run one after the other.
func Run(ctx context.Context, t testing.TB, tool *dropin.Tool, p dropin.Program, run Reports) (s Result) {
	t.Helper()
	var out, errs bytes.Buffer
	p.Out, p.Err = &out, &errs
	if p.Called == "" {
		p.Called = tool.Name
	}
	record := func(d *workload.Document, observer dropin.Observer) (*report.Document, error) {
		s.Workloads = append(s.Workloads, SettingsOf(d))
		return run(d, observer)
	}
	if p.Run == nil {
		p.Run = func(_ context.Context, d *workload.Document, observer dropin.Observer) (*report.Document, error) {
			return record(d, observer)
		}
	}
	if p.RunTogether == nil {
		p.RunTogether = func(_ context.Context, ws []*workload.Document) (ds []*report.Document, err error) {
			for _, w := range ws {
				d, err := record(w, dropin.Observer{})
				if err != nil {
					return nil, err
				}
				ds = append(ds, d)
			}
			return ds, nil
		}
	}
	s.Code, s.Err = tool.Main(ctx, &p)
	s.Out, s.Errs = out.String(), errs.String()
	return s
}

// SettingsOf returns the settings of a workload.
func SettingsOf(d *workload.Document) Settings {
	s := Settings{}
	for _, e := range d.Entries {
		s[e.Name] = strings.TrimSpace(s[e.Name] + " " + strings.Join(e.Values, " "))
	}
	return s
}

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
