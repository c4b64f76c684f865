package reports

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/host"
	"carronade/internal/report"
	"carronade/internal/store"
	"carronade/internal/store/sqlite"
	"carronade/load"
	"carronade/measure"
	"carronade/protocol"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/reporttest"
)

// A testStore is a store for tests, with the output of commands.
type testStore struct {
	t     *testing.T
	store *sqlite.Store
	path  string
	n     int

	out, notes bytes.Buffer
}

func newTestStore(t *testing.T) *testStore {
	s := &testStore{t: t, path: filepath.Join(t.TempDir(), "reports.db")}
	s.store = assert.Value(sqlite.Open(t.Context(), s.path))(t)
	t.Cleanup(func() { s.store.Close() })
	return s
}

func (s *testStore) keep(branch, revision string, ago time.Duration, throughput float64, change ...func(*report.Document)) string {
	s.t.Helper()
	s.n++
	d := reporttest.Document(s.n, 2)
	d.StartedAt = time.Now().Add(-ago).UTC().Truncate(time.Millisecond)
	d.EndedAt = d.StartedAt.Add(time.Minute)
	d.Totals.EventsPerS = throughput
	for i := range d.Settings {
		if d.Settings[i].Name == "rate" {
			d.Settings[i].Value = "50k/s"
		}
	}
	if revision != "" {
		d.System = &report.System{LastLines: []string{}, Facts: map[string]any{
			"branch": branch, "revision": revision, "revision_date": d.StartedAt.Add(-time.Hour).Format(time.RFC3339),
		}}
	}
	h := measure.NewHistogram()
	rnd := rand.New(rand.NewPCG(uint64(s.n), 8))
	for range 500 {
		h.Record(time.Duration((2 + rnd.ExpFloat64()) * float64(time.Millisecond)))
	}
	for range 20 {
		h.Record(20*time.Millisecond + time.Duration(rnd.IntN(30_000)))
	}
	d.Response = measure.Summarize(h, nil, nil)
	for _, f := range change {
		f(d)
	}
	assert.OK(s.t, d.Seal())
	assert.OK(s.t, s.store.Put(s.t.Context(), d))
	return d.ID
}

func (s *testStore) repeat(n int, branch, revision string, ago time.Duration, throughput float64) (ids []string) {
	rnd := rand.New(rand.NewPCG(uint64(s.n), 9))
	for i := range n {
		ids = append(ids, s.keep(branch, revision, ago-time.Duration(i)*time.Minute, throughput*math.Exp(0.01*rnd.NormFloat64())))
	}
	return ids
}

// run runs a command line and returns its exit code and its error message.
func (s *testStore) run(args ...string) (code int, words string) {
	s.t.Helper()
	s.out.Reset()
	s.notes.Reset()
	tools := Tools{
		Console: cmdutil.Console{
			Out: &s.out, Note: func(format string, args ...any) { fmt.Fprintf(&s.notes, format+"\n", args...) },
			Warn: func(text string) { fmt.Fprintln(&s.notes, text) },
		},
		Stores: func(ctx context.Context, _ string) (store.Store, error) { return sqlite.Open(ctx, s.path) },
		Err:    &s.notes,
		Interleave: func(ctx context.Context, j Interleaving) (base, candidate []string, err error) {
			if j.Base == "broken.yaml" {
				return nil, nil, errors.New("no")
			}
			level := 60e3
			if j.Candidate == "equal.yaml" {
				level = 50e3
			}
			for _, size := range j.Sizes {
				more := size - len(base)
				base, candidate = append(base, s.repeat(more, "", "", time.Hour, 50e3)...), append(candidate, s.repeat(more, "", "", time.Hour, level)...)
				if j.Enough == nil {
					continue
				}
				if enough, err := j.Enough(ctx, s.store, base, candidate); enough || err != nil {
					return base, candidate, err
				}
			}
			return base, candidate, nil
		},
	}
	deleting := func(t Tools) *cobra.Command { return (&commands{t}).deleting() }
	cmd := map[string]func(Tools) *cobra.Command{"collate": Collate, "compare": Compare, "verify": Verify, "delete": deleting}[args[0]](tools)
	cmd.SetArgs(args[1:])
	cmd.SetOut(&s.notes)
	cmd.SetErr(&s.notes)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetContext(s.t.Context())
	err := cmd.Execute()
	var exit cmdutil.Exit
	switch {
	case err == nil:
		return host.ExitOK, ""
	case errors.As(err, &exit):
		return exit.Code, ""
	}
	words = err.Error()
	if w, ok := errors.AsType[*protocol.Error](err); ok {
		words += " -> " + w.Hint
	}
	return host.ExitFailed, words
}

const day = 24 * time.Hour

func TestCompare(t *testing.T) {
	s := newTestStore(t)
	old := s.repeat(3, "main", "0123456789aa", 9*day, 30e3)
	s.repeat(7, "main", "0123456789bb", 3*day, 50e3)
	faster := s.repeat(7, "feature/faster", "0123456789cc", 2*day, 60e3)
	alone := s.keep("", "", time.Hour, 10e3)
	for _, tt := range []struct {
		name string
		args []string
		code int
		want string // part of the output, or of the error
	}{
		{"branches", []string{"main", "feature/faster"}, 0, "better"},
		{"the newest revision of a side", []string{"main", "feature/faster"}, 0, "3 reports of older revisions not judged"},
		{"all revisions of a side", []string{"main", "feature/faster", "--revisions"}, 0, "base          10 reports"},
		{"filters", []string{"branch=main,throughput>40k/s", "branch=feature/faster"}, 0, "7 reports"},
		{"revisions", []string{"0123456789bb", "0123456789cc"}, 0, "better"},
		{"ids", []string{strings.Join(old, ","), faster[0]}, 0, "all rows: cannot tell (needs 6 repetitions, or 3 for a difference of 100%)"},
		{"the newest", []string{"last~1", "last"}, 0, "needs 6 repetitions"},
		{"the beginning of an id", []string{faster[0][:6], "last"}, 0, "needs 6 repetitions"},
		{"further filters", []string{"main", "feature/faster", "throughput>59k/s"}, 2, "no report matches main throughput>59k/s"},
		{"a gate that holds", []string{"main", "feature/faster", "--gate"}, 0, "better"},
		{"a gate that does not", []string{"feature/faster", "main", "--metric", "throughput", "--gate"}, 1, "worse"},
		{"a gate that cannot tell", []string{"last~1", "last", "--gate"}, 4, "cannot tell"},
		{"an unknown metric", []string{"main", "feature/faster", "--metric", "troughput"}, 2, `--metric: "troughput" is not compared -> did you mean throughput?`},
		{"a larger effect", []string{"feature/faster", "main", "--gate", "--min-effect", "40%"}, 0, "same within 40%"},
		{"an effect of one field", []string{"feature/faster", "main", "--gate", "--min-effect", "throughput=40%"}, 0, "same within 40%"},
		{"run", []string{"--run", "a.yaml", "b.yaml", "--repeat", "7"}, 0, "compare a.yaml with b.yaml"},
		{"run until there is a verdict", []string{"--run", "a.yaml", "b.yaml", "--repeat", "auto", "--metric", "throughput"}, 0, "base          6 reports"},
		{"run, and they are equal", []string{"--run", "a.yaml", "equal.yaml", "--repeat", "auto", "--metric", "throughput"}, 0, "99% interval"},
		{"a budget without auto", []string{"--run", "a.yaml", "b.yaml", "--budget", "1m"}, 2, "--budget belongs to --repeat auto"},
		{"a budget that is not a time", []string{"--run", "a.yaml", "b.yaml", "--repeat", "auto", "--budget", "soon"}, 2, "--budget soon: not a duration"},
		{"a budget without run", []string{"main", "feature/faster", "--budget", "1m"}, 2, "--budget belongs to --run"},
		{"run fails", []string{"--run", "broken.yaml", "b.yaml"}, 2, "no"},
		{"run without two", []string{"--run", "a.yaml", "b.yaml", "c.yaml"}, 2, "unexpected argument"},
		{"an invalid number of repetitions", []string{"--run", "a.yaml", "b.yaml", "--repeat", "0"}, 2, "--repeat 0: must be between 1 and 1000, or auto"},
		{"repeat without run", []string{"main", "feature/faster", "--repeat", "7"}, 2, "--repeat belongs to --run"},
		{"one side", []string{"main"}, 2, "needs two sides"},
		{"an unknown field", []string{"brnch=main", "main"}, 2, `no report has the field "brnch"`},
		{"no report matches it", []string{"branch=none", "main"}, 2, "no report matches branch=none -> carronade report list"},
		{"an unknown name", []string{"trunk", "main"}, 2, `"trunk" is not a branch, a report or a revision of any report`},
		{"a file", []string{"a.yaml", "b.yaml"}, 2, "-> carronade compare --run runs workload files"},
		{"an empty side", []string{",", "main"}, 2, "one side names no reports"},
		{"both kinds", []string{"last,branch=main", "main"}, 2, "reports and filters cannot be mixed"},
		{"the same", []string{alone, alone}, 2, "on both sides -> choose the sides"},
		{"an invalid share", []string{"main", "feature/faster", "--min-effect", "lots"}, 2, "--min-effect lots: "},
		{"too large a share", []string{"main", "feature/faster", "--min-effect", "100%"}, 2, "must be between 0 and 100%"},
		{"an unknown row", []string{"main", "feature/faster", "--min-effect", "troughput=3%"}, 2, "did you mean throughput?"},
		{"png alone", []string{"main", "feature/faster", "--png"}, 2, "--png belongs to --pictures"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code, words := s.run(append([]string{"compare"}, tt.args...)...)
			assert.True(t, code == tt.code && strings.Contains(s.out.String()+words, tt.want),
				"got %d, %q, want %d and %q\n%s", code, words, tt.code, tt.want, s.out.String())
		})
	}
}

func TestCompareJSON(t *testing.T) {
	s := newTestStore(t)
	s.repeat(6, "main", "aaaa", 3*day, 50e3)
	s.repeat(6, "pr", "bbbb", 2*day, 40e3)
	pictures := filepath.Join(t.TempDir(), "p")
	code, words := s.run("compare", "main", "pr", "--json", "--metric", "throughput")
	assert.Must(t, code == 0, "got %d, %s", code, words)
	var got struct {
		Schema, Verdict string
		Pairs           []struct {
			Rows []struct {
				Field, Verdict string
				Primary        bool
			}
		}
	}
	assert.OK(t, json.Unmarshal(s.out.Bytes(), &got))
	r := got.Pairs[0].Rows[0]
	assert.True(t, got.Schema == "carronade.comparison/1" && got.Verdict == "worse" && r.Field == "throughput" && r.Verdict == "worse" && r.Primary, "got %+v", got)
	code, words = s.run("compare", "main", "pr", "--pictures", pictures)
	assert.Must(t, code == 0, "got %d, %s", code, words)
	b, err := os.ReadFile(filepath.Join(pictures, "compare-response.svg"))
	assert.True(t, err == nil && bytes.Contains(b, []byte("<svg")), "no picture: %v", err)
	// The picture names the same difference and interval as the table.
	for _, want := range []string{"Response p99: base 20 ms", "interval 0.0% .. 0.0%"} {
		assert.True(t, bytes.Contains(b, []byte(want)), "%q is not in the picture", want)
	}
}

func TestVerify(t *testing.T) {
	s := newTestStore(t)
	for i := range 7 {
		s.repeat(3, "main", fmt.Sprintf("abcdef%d", i), time.Duration(30-i)*time.Hour, 50e3)
	}
	s.repeat(1, "old", "000000", 30*day, 50e3)
	for i := range 8 {
		s.keep("noisy", fmt.Sprintf("bcdef%d", i), time.Duration(40-i)*time.Hour, []float64{40e3, 60e3}[i%2])
	}
	for _, tt := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"nothing new", []string{"branch=main", "--min-effect", "10%"}, 0, "PASS  throughput"},
		{"with the old words of filters", []string{"-n", "168h", "branch=main", "duration=1m", "--min-effect", "10%"}, 0, "PASS  throughput"},
		{"noisy", []string{"branch=noisy"}, 4, "too noisy"},
		{"strictly", []string{"branch=noisy", "--strict"}, 1, "too noisy"},
		{"too little history", []string{"branch=old", "-n", "60d"}, 4, "no earlier revision"},
		{"a number of the newest", []string{"-n", "3"}, 4, "too little history"},
		{"too old", []string{"branch=old"}, 2, "no report matches branch=old, of the last 168h"},
		{"an unknown field", []string{"brnch=main"}, 2, `no report has the field "brnch"`},
		{"no age", []string{"-n", "soon"}, 2, "--last: must be a number of reports"},
		{"no share", []string{"--min-effect", "much"}, 2, "--min-effect much"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code, words := s.run(append([]string{"verify"}, tt.args...)...)
			assert.True(t, code == tt.code && strings.Contains(s.out.String()+words, tt.want),
				"got %d, %q, want %d and %q\n%s", code, words, tt.code, tt.want, s.out.String())
		})
	}
	s.repeat(3, "main", "abcdef9", time.Hour, 40e3)
	pictures := filepath.Join(t.TempDir(), "p")
	code, words := s.run("verify", "branch=main", "--min-effect", "8%", "--json", "--pictures", pictures, "--png")
	assert.Must(t, code == host.ExitBroken && words == "", "a revision that is a fifth slower: %d, %s", code, words)
	var got struct{ Schema, Verdict string }
	err := json.Unmarshal(s.out.Bytes(), &got)
	assert.True(t, err == nil && got.Schema == "carronade.verification/1" && got.Verdict == "worse", "got %+v, %v", got, err)
	for _, name := range []string{"history-throughput.png", "history-response-p99.png"} {
		b, err := os.ReadFile(filepath.Join(pictures, name))
		assert.True(t, err == nil && bytes.HasPrefix(b, []byte("\x89PNG")), "%s: %v", name, err)
	}
}

// A report of operations on topics, such as the newest, is not compared with a run.
func TestCompareOperations(t *testing.T) {
	s := newTestStore(t)
	s.repeat(6, "main", "aaaa", 3*day, 50e3)
	s.keep("", "", time.Hour, 50e3, func(d *report.Document) { d.Op = "topics list" })
	for _, args := range [][]string{{"last~1", "last"}, {"last~1", "last", "--untrusted", "--same-system", "--json"}} {
		code, words := s.run(append([]string{"compare"}, args...)...)
		if code != host.ExitFailed || s.out.Len() > 0 || !strings.Contains(words, "different operations") || !strings.Contains(words, "-> choose reports of one operation: carronade report list") {
			t.Errorf("%s: got %d, %q\n%s", args, code, words, s.out.String())
		}
	}
}

// A hint is not about a flag that changes nothing.
func TestNoneFitHints(t *testing.T) {
	cut := func(d *report.Document) { d.Partial, d.Stopped = true, load.Interrupted }
	late := func(d *report.Document) { d.Trust.OK, d.Trust.Reasons = false, []string{"late"} }
	const again, untrusted = "-> carronade report show says why; run it again", "-> carronade report show says why; --untrusted also judges"
	for _, tt := range []struct {
		name        string
		base        func(*report.Document)
		flags, want []string
	}{
		{"interrupted", cut, nil, []string{"is cut short (interrupted)", again}},
		{"interrupted, with the flag", cut, []string{"--untrusted"}, []string{"is cut short (interrupted)", again}},
		{"not trusted", late, nil, []string{"is not trustworthy", untrusted}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newTestStore(t)
			id := s.keep("main", "aaaa", 3*day, 50e3, tt.base)
			s.keep("pr", "bbbb", 2*day, 50e3)
			for args, subject := range map[string]string{"compare main pr": "no report of the base can be judged: ", "verify branch=main": "no report can be judged: "} {
				code, words := s.run(append(strings.Fields(args), tt.flags...)...)
				for _, want := range append(tt.want, subject+id) {
					assert.True(t, code == host.ExitFailed && strings.Contains(words, want),
						"%s: got %d, %q, want %q", args, code, words, want)
				}
			}
		})
	}
}

// Unusable runs are left out, and named.
func TestVerifyLeavesOut(t *testing.T) {
	s := newTestStore(t)
	s.repeat(6, "main", "aaaa", 3*day, 50e3)
	s.repeat(6, "main", "bbbb", 2*day, 50e3)
	bad := s.keep("main", "bbbb", 2*day, 1, func(d *report.Document) { d.Trust.OK, d.Trust.Reasons = false, []string{"late"} })
	cut := s.keep("main", "bbbb", 2*day, 1, func(d *report.Document) { d.Partial = true })
	code, words := s.run("verify", "--min-effect", "10%")
	assert.True(t, code == host.ExitOK, "got %d, %s\n%s", code, words, s.out.String())
	assert.Has(t, s.out.String(), bad+": not trustworthy: the generator was the limit", cut+": cut short")
}

// TestMain is also the confirming command of tests, which must store reports:
// it does so if its environment has a level.
func TestMain(m *testing.M) {
	if level := os.Getenv("CONFIRM_LEVEL"); level != "" {
		os.Exit(confirm(level))
	}
	os.Exit(m.Run())
}

// confirm stores reports like the newest one of the store, with a level.
func confirm(level string) int {
	ctx := context.Background()
	s, err := sqlite.Open(ctx, os.Getenv("CONFIRM_STORE"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer s.Close()
	d, err := s.Get(ctx, os.Getenv("CARRONADE_REPORT"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if got := fmt.Sprint(d.System.Facts["revision"]); got != os.Getenv("CARRONADE_REVISION") {
		fmt.Fprintln(os.Stderr, "another revision:", got)
		return 1
	}
	fmt.Println("confirming", d.ID)
	for i := range 2 {
		c := *d
		c.RunID = fmt.Sprint(7_000_000 + i)
		c.ID = report.IDOf(uint64(7_000_000 + i))
		c.StartedAt = d.StartedAt.Add(time.Duration(i+1) * time.Minute)
		if _, err := fmt.Sscan(level, &c.Totals.EventsPerS); err != nil {
			return 1
		}
		if c.Seal() != nil || s.Put(ctx, &c) != nil {
			return 1
		}
	}
	return 3 // like a run that was not trusted: it does not matter
}

// More runs confirm a regression, or do not.
func TestConfirm(t *testing.T) {
	program := assert.Value(os.Executable())(t)
	for _, tt := range []struct {
		name, command, level string
		code                 int
		want                 string
	}{
		{name: "as bad again", level: "40100", code: 1, want: "it was as bad again; the verdict is worse"},
		{name: "not as bad again", level: "50000", code: 4, want: "it was not as bad again; the verdict is cannot tell"},
		{name: "a command that does nothing", command: "true", code: 2, want: "the confirming command made no new usable report"},
		{name: "no command", command: "nowhere-to-be-found", code: 2, want: "the confirming command made no new usable report"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newTestStore(t)
			s.repeat(8, "main", "aaaa", 3*day, 50e3)
			s.repeat(8, "main", "bbbb", 2*day, 40e3)
			if tt.command == "" {
				tt.command = "'" + program + "'"
				t.Setenv("CONFIRM_LEVEL", tt.level)
				t.Setenv("CONFIRM_STORE", s.path)
			}
			code, words := s.run("verify", "--min-effect", "8%", "--confirm", tt.command)
			assert.True(t, code == tt.code && strings.Contains(strings.Join(strings.Fields(s.out.String()+words), " "), tt.want),
				"got %d, %q, want %d and %q\n%s\n%s", code, words, tt.code, tt.want, s.out.String(), s.notes.String())
			assert.True(t, !strings.Contains(s.out.String(), "confirming "+"q"),
				"the command's output is in the result:\n%s", s.out.String())
		})
	}
}

// A report beyond -n N is not a new one: two runs began at the same time, and the first query returned one of them.
func TestConfirmBeyondTheLimit(t *testing.T) {
	s := newTestStore(t)
	s.keep("", "", 40*time.Hour, 50e3)
	oldest := assert.Value(s.store.Rows(t.Context(), store.Query{Fields: []string{}}))(t)
	s.keep("", "", 40*time.Hour, 50e3, func(d *report.Document) { d.StartedAt = oldest[0].At })
	rnd := rand.New(rand.NewPCG(6, 6))
	for i := range 29 {
		level := 50e3
		if i >= 20 {
			level = 40e3
		}
		s.keep("", "", time.Duration(30-i)*time.Hour, level*math.Exp(0.01*rnd.NormFloat64()))
	}
	code, words := s.run("verify", "-n", "30", "--min-effect", "8%", "--confirm", "true")
	if want := "the confirming command made no new usable report"; code != host.ExitFailed || !strings.Contains(words, want) {
		t.Errorf("got %d, %q, want %q\n%s", code, words, want, s.out.String())
	}
}

func TestWords(t *testing.T) {
	for _, tt := range []struct {
		side, want string
	}{
		{"last", "last"},
		{"last,last~2", "last|last~2"},
		{"branch=main", "branch=main"},
		{"branch=main,rate=50k/s", "branch=main|rate=50k/s"},
		{"target=kafka://a:1,b:2/t,rate=5/s", "target=kafka://a:1,b:2/t|rate=5/s"},
		{"feature/x", "feature/x"},
		{" , ", ""},
	} {
		assert.Equal(t, strings.Join(words(tt.side), "|"), tt.want, "%q", tt.side)
	}
}
