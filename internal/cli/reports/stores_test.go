package reports

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/report"
	"carronade/internal/store"
	"carronade/internal/store/sqlite"
	"carronade/test/testkit/assert"
)

// closing is a store that counts how many times it is closed.
type closing struct {
	store.Store
	closed int
	err    error
}

func (c *closing) Close() error { c.closed++; return c.err }

// A job gets the store that --store names. The store is closed also if the job
// fails, and both errors are returned.
func TestOpeningDo(t *testing.T) {
	failed, broken, shut := errors.New("the job failed"), errors.New("cannot be opened"), errors.New("does not close")
	for _, tt := range []struct {
		name             string
		open, job, close error
		want             []error
		closed           int
	}{
		{name: "no error", closed: 1},
		{name: "no store", open: broken, want: []error{broken}},
		{name: "the job fails", job: failed, want: []error{failed}, closed: 1},
		{name: "closing fails", close: shut, want: []error{shut}, closed: 1},
		{name: "both fail", job: failed, close: shut, want: []error{failed, shut}, closed: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &closing{err: tt.close}
			fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
			open := Stores(func(_ context.Context, place string) (store.Store, error) {
				assert.Equal(t, place, "here.db", "place")
				return s, tt.open
			}).Bind(fs)
			assert.OK(t, fs.Parse([]string{"--store", "here.db"}))
			ran := false
			err := open.Do(t.Context(), func(got store.Store) error {
				ran = true
				assert.True(t, got == store.Store(s) && s.closed <= 0, "the job got %v, closed %d times", got, s.closed)
				return tt.job
			})
			for _, want := range tt.want {
				assert.True(t, errors.Is(err, want), "got %v, want %v", err, want)
			}
			assert.True(t, (len(tt.want) > 0 || err == nil) && s.closed == tt.closed && ran != (tt.open != nil),
				"got %v, closed %d times, ran %v; want it closed %d times", err, s.closed, ran, tt.closed)
		})
	}
}

// The table of the load tool for Riemann has runs against Riemann alone, also over TLS.
func TestTableLikeRiemannLoad(t *testing.T) {
	s := newTestStore(t)
	kafka := s.keep("", "", time.Hour, 50e3)
	table := func(args ...string) (string, error) {
		var out bytes.Buffer
		cmd := (&commands{Tools{
			Console: cmdutil.Console{Out: &out, Note: func(string, ...any) {}, Warn: func(string) {}},
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
