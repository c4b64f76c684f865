package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"carronade/internal/host"
	"carronade/internal/report"
	"carronade/internal/riemann"
	"carronade/internal/store"
	"carronade/internal/store/sqlite"
	"carronade/internal/workload"
	"carronade/protocol"
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

var now = time.Date(2026, 11, 21, 13, 0, 30, 0, time.UTC)

func events() []riemann.Event {
	return []riemann.Event{
		{
			Host: "web-03", Service: "nginx req rate", State: "ok", Metric: 64.41219999, Time: now.Add(-8 * time.Second), TTL: 60,
			Description: "sampled by carronade", Tags: []string{"carronade", "eu"}, Attributes: map[string]string{"zone": "b", "az": "1"},
		},
		{Service: "riemann server tcp 127.0.0.1:5555 in latency of a long name 0.999", Metric: int64(-9007199254740993), Time: now.AddDate(0, 0, -3), TTL: 0.5},
		{Host: "a\x1b[31mhost with more than twenty letters", State: "a state that is long", Metric: float32(0.25)},
	}
}

func TestTable(t *testing.T) {
	for _, tt := range []struct {
		name   string
		all    bool
		events []riemann.Event
		want   string
	}{
		{"none", false, nil, "no event matches\n"},
		{"one", false, events()[:1], `host    service         state   metric      time  ttl
web-03  nginx req rate  ok     64.4122  13:00:22   60
1 event
`},
		{"long ones", false, events(), "host                 service          state                metric       time ttl\n" +
			"web-03               nginx req rate   ok                  64.4122   13:00:22  60\n" +
			"-                    riemann... 0.999 -         -9007199254740993 2026-11-18 0.5\n" +
			"a [31mhos... letters -                a s...ong              0.25          -   -\n3 events\n"},
		{"everything", true, events()[:1], `host    service         state   metric      time  ttl
web-03  nginx req rate  ok     64.4122  13:00:22   60
  sampled by carronade; tags carronade, eu; az=1; zone=b
1 event
`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			q := &querying{Console: Console{Out: &out}, all: tt.all}
			q.table(tt.events, now)
			assert.Same(t, out.String(), tt.want)
			for line := range strings.Lines(out.String()) {
				n := len([]rune(line))
				assert.True(t, n <= 81, "%d columns: %q", n, line)
			}
		})
	}
}

// NaN and infinity are strings in JSON, and no events are an empty list.
func TestAnswer(t *testing.T) {
	data, err := json.Marshal(answerOf("riemann://a", "true", []riemann.Event{{Metric: math.NaN()}, {Metric: float32(math.Inf(-1))}, {Metric: 1.5}}))
	assert.OK(t, err)
	want := `{"schema":"carronade.query/1","target":"riemann://a","query":"true","count":3,"events":[{"metric":"NaN"},{"metric":"-Inf"},{"metric":1.5}]}`
	assert.Same(t, string(data), want)
	if data, err = json.Marshal(answerOf("riemann://a", "true", nil)); err != nil || !strings.Contains(string(data), `"events":[]`) {
		t.Errorf("got %s and %v, want an empty list", data, err)
	}
}

func TestArgs(t *testing.T) {
	for _, tt := range []struct {
		name       string
		args       []string
		want, hint string
	}{
		{"enough", []string{"a"}, "", ""},
		{"most", []string{"a", "b"}, "", ""},
		{"too few", nil, "tool needs a target", "usage: tool TARGET"},
		{"too many", []string{"a", "b", "c"}, `tool: unexpected argument "c"`, "usage: tool TARGET"},
		{"a flag without dashes", []string{"a", "b", "rate=5"}, `tool: unexpected argument "rate=5"`, "flags begin with two dashes: --rate=5"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := Args(1, 2, "a target")(&cobra.Command{Use: "tool TARGET", DisableFlagsInUseLine: true}, tt.args)
			got, hint := "", ""
			if w, ok := errors.AsType[*Words](err); ok {
				got, hint = w.Error(), w.Hint
			}
			assert.True(t, got == tt.want && hint == tt.hint, "got %q (%q), want %q (%q)", got, hint, tt.want, tt.hint)
		})
	}
}

// The error of an interrupted command is not printed, unless the command has a result.
func TestRun(t *testing.T) {
	broken := Exit{Code: host.ExitBroken}
	for _, tt := range []struct {
		name        string
		interrupted bool
		err         error
		want        int // exit code; 0: the error is returned unchanged
	}{
		{"done", false, nil, 0},
		{"failed", false, errors.New("no"), 0},
		{"canceled by another", false, context.Canceled, 0},
		{"interrupted", true, fmt.Errorf("asking: %w", context.Canceled), host.ExitInterrupted},
		{"interrupted, with a result", true, broken, host.ExitBroken},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tt.interrupted {
				cancel()
			}
			cmd := &cobra.Command{}
			cmd.SetContext(ctx)
			err := Run(func(*cobra.Command, []string) error { return tt.err })(cmd, nil)
			var e Exit
			errors.As(err, &e)
			assert.True(t, e.Code == tt.want && (tt.want != 0 || errors.Is(err, tt.err)),
				"got %v with code %d, want code %d", err, e.Code, tt.want)
		})
	}
}

// cannon is a kind with its own options.
type cannon struct{ protocol.Kind }

func (cannon) Name() string      { return "cannon" }
func (cannon) Schemes() []string { return []string{"cannon"} }
func (cannon) Ops() []string     { return []string{workload.Produce} }
func (cannon) Options() []protocol.Option {
	return []protocol.Option{{Name: "calibre"}, {Name: "loud", Type: protocol.Bool}}
}

// Flags collect what was typed, in order, and the last one counts.
func TestSettings(t *testing.T) {
	var s Settings
	fs := pflag.NewFlagSet("tool", pflag.ContinueOnError)
	s.Bind(fs, []protocol.Kind{cannon{}})
	assert.OK(t, fs.Parse([]string{"--calibre", "32", "--rate=5/s", "--loud", "--calibre", "68"}))
	for name, want := range map[string]string{"calibre": "68", "rate": "5/s", "loud": "true", "for": ""} {
		assert.Equal(t, s.Last(name), want, "--%s", name)
	}
	var typed []string
	for _, e := range s.Doc.Entries {
		typed = append(typed, e.Name+"="+strings.Join(e.Values, ","))
	}
	assert.Same(t, typed, []string{"calibre=32", "rate=5/s", "loud=true", "calibre=68"}, "typed")
	row, ok := SettingOf(fs.Lookup("calibre"))
	assert.True(t, ok && row.Kind == "cannon", "--calibre is not a setting of cannon: %+v", row)
	fs.Bool("plain", false, "")
	_, ok = SettingOf(fs.Lookup("plain"))
	assert.True(t, !ok, "--plain is a setting")
}

func TestReason(t *testing.T) {
	_, err := os.Open("nowhere/at/all")
	got, want := Reason(err), fs.ErrNotExist.Error()
	assert.True(t, got == "no such file or directory" || got == want, "got %q", got)
}

func TestDidYouMean(t *testing.T) {
	for _, tt := range []struct{ typed, want string }{
		{"colate", "did you mean carronade collate?"},
		{"xyzzy", "there are two"},
	} {
		assert.Equal(t, DidYouMean(tt.typed, []string{"collate", "compare"}, "carronade %s", "there are two"), tt.want, "%s", tt.typed)
	}
}
