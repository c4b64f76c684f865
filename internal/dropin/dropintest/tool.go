// Package dropintest runs the drop-in of a tool in tests, without a system.
package dropintest

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"carronade/internal/dropin"
	"carronade/internal/report"
	"carronade/internal/workload"
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
