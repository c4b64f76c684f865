package command

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"carronade/internal/report"
	"carronade/internal/store"
	"carronade/internal/store/sqlite"
	"carronade/test/testkit/assert"
)

// The table of the load tool for Riemann has runs against Riemann alone, also over TLS.
func TestTableLikeRiemannLoad(t *testing.T) {
	s := newTestStore(t)
	kafka := s.keep("", "", time.Hour, 50e3)
	table := func(args ...string) (string, error) {
		var out bytes.Buffer
		cmd := (&commands{ReportTools{
			Console: Console{Out: &out, Note: func(string, ...any) {}, Warn: func(string) {}},
			Stores:  func(ctx context.Context, _ string) (store.Store, error) { return sqlite.Open(ctx, s.path) },
		}}).table()
		cmd.SetArgs(append(args, "--like", "riemann-load"))
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		cmd.SilenceUsage, cmd.SilenceErrors = true, true
		err := cmd.ExecuteContext(t.Context())
		return out.String(), err
	}
	_, err := table()
	assert.True(t, err != nil, "a table of no run")
	var own []string
	for _, target := range []string{"riemann://127.0.0.1:5555", "riemann+tls://127.0.0.1:5554"} {
		own = append(own, s.keep("", "", time.Minute, 50e3, func(d *report.Document) { d.Target = target }))
	}
	out, err := table("--as", "json")
	assert.True(t, err == nil && !strings.Contains(out, kafka) && strings.Contains(out, own[0]) && strings.Contains(out, own[1]), "%v:\n%s", err, out)
}
