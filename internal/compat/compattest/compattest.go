// Package compattest gives old tools command lines in tests, in place of the
// program that runs them: what a tool fires comes to nothing, and a test says what
// became of it. It answers for what a tool said and asked for; what is right, its
// whoever uses it knows.
//
// Its invariant: a setting means the same in the tests of every tool.
package compattest

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"carronade/internal/compat"
	"carronade/internal/report"
	"carronade/internal/workload"
)

// A Said is what became of a command line.
type Said struct {
	Out, Errs string // what was printed; an error that the tool left to us is not in it
	Code      int
	Err       error
	Fired     []Settings // of each workload, in turn
}

// Settings are what a workload says, by setting: all its values in their order, a
// blank between them.
type Settings map[string]string

// Last are the settings of the workload that was fired last; nil: none was, and
// every setting of it is empty.
func (s Said) Last() Settings {
	if len(s.Fired) == 0 {
		return nil
	}
	return s.Fired[len(s.Fired)-1]
}

// A Run is what becomes of a workload that is fired. It may tell of the run by
// observer, which has no function that a tool does not set.
type Run func(d *workload.Document, observer compat.Observer) (*report.Document, error)

// Main gives a tool p, with somewhere to print to and a run for what it fires,
// unless p has its own. Workloads that are fired together run one after the other.
func Main(ctx context.Context, t testing.TB, tool *compat.Tool, p compat.Program, run Run) (s Said) {
	t.Helper()
	var out, errs bytes.Buffer
	p.Out, p.Err = &out, &errs
	if p.Called == "" {
		p.Called = tool.Name
	}
	fire := func(d *workload.Document, observer compat.Observer) (*report.Document, error) {
		s.Fired = append(s.Fired, settingsOf(d))
		return run(d, observer)
	}
	if p.Fire == nil {
		p.Fire = func(_ context.Context, d *workload.Document, observer compat.Observer) (*report.Document, error) {
			return fire(d, observer)
		}
	}
	if p.Together == nil {
		p.Together = func(_ context.Context, ws []*workload.Document) (ds []*report.Document, err error) {
			for _, w := range ws {
				d, err := fire(w, compat.Observer{})
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

func settingsOf(d *workload.Document) Settings {
	s := Settings{}
	for _, e := range d.Entries {
		s[e.Name] = strings.TrimSpace(s[e.Name] + " " + strings.Join(e.Values, " "))
	}
	return s
}
