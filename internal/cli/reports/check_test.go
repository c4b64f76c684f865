package reports

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/host"
	"carronade/internal/judge"
	"carronade/internal/report"
	"carronade/internal/store"
	"carronade/internal/store/sqlite"
	"carronade/load"
	"carronade/protocol"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/reporttest"
)

// filled creates a store with n reports of that many intervals each.
func filled(t *testing.T, n, intervals int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "reports.db")
	s := assert.Value(sqlite.Open(t.Context(), path))(t)
	for i := range n {
		assert.OK(t, s.Put(t.Context(), reporttest.Document(i+1, intervals)))
	}
	assert.OK(t, s.Close())
	return path
}

func wrecked(t *testing.T, n int, wreck func(b []byte) []byte) string {
	t.Helper()
	path := filled(t, n, 5)
	b, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, wreck(b), 0o600)
	}
	assert.OK(t, err)
	return path
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// ran is the result of a command line, with stores that are files.
type ran struct {
	code       int
	out, notes string
	words      string // of the error, with the hint
}

func runs(t *testing.T, args ...string) (r ran) {
	t.Helper()
	return runsOn(t, false, args...)
}

// runsOn is like runs, with results that go to a terminal or not.
func runsOn(t *testing.T, terminal bool, args ...string) (r ran) {
	t.Helper()
	var out, notes bytes.Buffer
	opened := func(open func(context.Context, string) (*sqlite.Store, error)) Stores {
		return func(ctx context.Context, place string) (store.Store, error) {
			s, err := open(ctx, place)
			if err != nil {
				return nil, err
			}
			return s, nil
		}
	}
	cmd := Command(Tools{
		Console: cmdutil.Console{
			Out: &out, Terminal: terminal,
			Note: func(format string, args ...any) { fmt.Fprintf(&notes, format+"\n", args...) },
			Warn: func(text string) { fmt.Fprintln(&notes, text) },
		},
		Stores: opened(sqlite.OpenExisting), Make: opened(sqlite.Open), Damaged: opened(sqlite.OpenDamaged),
		Aside: func(_ context.Context, place string) (string, error) { return sqlite.MoveAside(place) },
	})
	cmd.SetArgs(args)
	cmd.SetOut(&notes)
	cmd.SetErr(&notes)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetContext(t.Context())
	err := cmd.Execute()
	var exit cmdutil.Exit
	switch {
	case err == nil:
	case errors.As(err, &exit):
		r.code, err = exit.Code, exit.Err
	default:
		r.code = host.ExitFailed
	}
	if err != nil {
		r.words = err.Error()
	}
	if w, ok := errors.AsType[*protocol.Error](err); ok {
		r.words += " -> " + w.Hint
	}
	r.out, r.notes = out.String(), notes.String()
	return r
}

// The loss of a damaged store is not understated.
func TestLossOfADamagedStore(t *testing.T) {
	testkit.Need(t, "a second")
	const n = 60
	for _, tt := range []struct {
		name  string
		wreck func(b []byte) []byte
		some  bool   // some are saved
		words string // of the error of --move-aside
	}{
		{"cut in half", func(b []byte) []byte { return b[:len(b)/2] }, true, "the number of others is unknown"},
		{"cut near its beginning", func(b []byte) []byte { return b[:len(b)/20] }, false, "no report of the old one could be read"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := wrecked(t, n, tt.wreck)
			r := runs(t, "check", "--store", path)
			assert.True(t, r.code == host.ExitBroken && (!tt.some || strings.Contains(r.out, "the number of others is unknown")),
				"check: got %d and %q (%s)", r.code, r.out, r.words)
			r = runs(t, "check", "--store", path, "--move-aside")
			assert.True(t, r.code == host.ExitBroken && strings.Contains(r.words, tt.words),
				"--move-aside: got %d and %q, %q", r.code, r.out, r.words)
			again := runs(t, "check", "--store", path)
			assert.True(t, again.code == 0, "the new store: got %+v", again)
		})
	}
}

// An unreadable part may have listed more reports: a rescue that saved everything it found may still be incomplete.
func TestRescueOfAllThatWasFound(t *testing.T) {
	whole := []string{"a", "b"}
	for _, tt := range []struct {
		name        string
		found, read []string
		err         error
		code        int
		words       string
	}{
		{"all", whole, whole, nil, 0, ""},
		{"one cannot be read", whole, whole[:1], nil, 1, "1 report could not be read"},
		{"all that was found", whole, whole, store.ErrDamaged, 1, "the number of unreadable reports is unknown"},
		{"not all that was found", whole, whole[:1], store.ErrDamaged, 1, "at least 1 report could not be read, and the number of others is unknown"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := missing("old.db", len(tt.found), len(tt.read), tt.err)
			var exit cmdutil.Exit
			assert.True(t, errors.As(err, &exit) == (tt.code != 0) && exit.Code == tt.code && (err == nil || err.Error() == tt.words),
				"got %d and %v, want %d and %q", exit.Code, err, tt.code, tt.words)
		})
	}
}

// If the source does not exist, no destination is created.
func TestPullFromNowhere(t *testing.T) {
	dir := t.TempDir()
	own, source := filepath.Join(dir, "own.db"), filled(t, 3, 1)
	for _, tt := range []struct {
		name string
		args []string
		code int
		own  bool
		want string
	}{
		{"a missing source", []string{"--from", filepath.Join(dir, "none.db")}, host.ExitFailed, false, "none.db"},
		{"no source", nil, host.ExitFailed, false, "--from is missing"},
		{"itself, which is missing", []string{"--from", own}, host.ExitFailed, false, "own.db"},
		{"a source", []string{"--from", source}, host.ExitOK, true, ""},
		{"once more", []string{"--from", source}, host.ExitOK, true, ""},
		{"itself", []string{"--from", own}, host.ExitFailed, true, "the store that is open"},
		{"a missing source, into an existing store", []string{"--from", filepath.Join(dir, "none.db")}, host.ExitFailed, true, "none.db"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := runs(t, append([]string{"pull", "--store", own}, tt.args...)...)
			assert.True(t, r.code == tt.code && strings.Contains(r.words, tt.want) && exists(own) == tt.own,
				"got %+v, and a store: %v; want %d, %q and %v", r, exists(own), tt.code, tt.want, tt.own)
		})
	}
	r := runs(t, "check", "--store", own)
	assert.True(t, strings.Contains(r.out, "3 reports, all intact"), "got %+v", r)
}

// outcomes returns the cases of JUnit XML, a line each: suite, name and result.
func outcomes(t *testing.T, data []byte) []string {
	t.Helper()
	var all struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Skipped  int `xml:"skipped,attr"`
		Suites   []struct {
			Name  string `xml:"name,attr"`
			Cases []struct {
				Name    string `xml:"name,attr"`
				Failure *struct {
					Message string `xml:"message,attr"`
				} `xml:"failure"`
				Skipped *struct {
					Message string `xml:"message,attr"`
				} `xml:"skipped"`
				Out string `xml:"system-out"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	assert.OK(t, xml.Unmarshal(data, &all), "%s", data)
	var out []string
	failures, skipped := 0, 0
	for _, s := range all.Suites {
		for _, c := range s.Cases {
			text := "passed: " + c.Out
			if c.Failure != nil {
				text = "failed: " + c.Failure.Message
				failures++
			}
			if c.Skipped != nil {
				text = "skipped: " + c.Skipped.Message
				skipped++
			}
			out = append(out, s.Name+" | "+c.Name+" | "+text)
		}
	}
	assert.True(t, all.Failures == failures && all.Skipped == skipped && all.Tests == len(out),
		"it says %d tests, %d failures, %d skipped, and has %d, %d, %d",
		all.Tests, all.Failures, all.Skipped, len(out), failures, skipped)
	return out
}

// has fails the test unless a line has all parts.
func has(t *testing.T, lines []string, parts ...string) {
	t.Helper()
	assert.True(t, slices.ContainsFunc(lines, func(l string) bool {
		return !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(l, p) })
	}), "no case has %q:\n%s", parts, strings.Join(lines, "\n"))
}

func TestCompareAsJUnit(t *testing.T) {
	s := newTestStore(t)
	s.repeat(7, "main", "0123456789bb", 3*day, 50e3)
	s.repeat(7, "slower", "0123456789cc", 2*day, 40e3)
	few := s.repeat(2, "few", "0123456789dd", 2*day, 40e3)
	code, words := s.run("compare", "main", "slower", "--metric", "throughput", "--junit", "--gate")
	assert.Equal(t, code, host.ExitBroken, "%s", words)
	got := outcomes(t, s.out.Bytes())
	has(t, got, "compare main with slower: ", "| throughput | failed: base ", "candidate 40", "(95% interval -", ": worse")
	has(t, got, "| response p99 | passed: ", "same within 5%")
	if code, words = s.run("compare", "main", "slower", "--junit", "--gate"); code != host.ExitCannotTell {
		t.Errorf("got %d, %s; want the exit code of a gate that cannot tell: the p99 is the same, and fewer events were answered", code, words)
	}
	if got := outcomes(t, s.out.Bytes()); slices.ContainsFunc(got, func(l string) bool { return strings.Contains(l, "| failed: ") }) {
		t.Errorf("a case failed, and the gate did not:\n%s", strings.Join(got, "\n"))
	}
	code, words = s.run("compare", "main", strings.Join(few, ","), "--junit")
	assert.True(t, code == host.ExitOK, "got %d, %s", code, words)
	has(t, outcomes(t, s.out.Bytes()), "| throughput | skipped: ", "cannot tell (needs 6 repetitions, or 3 for a difference of 100%)")
	for _, name := range []string{"compare", "verify"} {
		args := []string{name, "main", "slower", "--json", "--junit"}
		if name == "verify" {
			args = []string{name, "--json", "--junit"}
		}
		if code, words = s.run(args...); code != host.ExitFailed || !strings.Contains(words, "--json and --junit cannot be combined") {
			t.Errorf("%s: got %d, %s", name, code, words)
		}
	}
}

// A row that makes the verdict mixed fails, since the gate does.
func TestMixedFails(t *testing.T) {
	s := newTestStore(t)
	faster := func(d *report.Document) { d.Response = nil }
	for i := range 14 {
		branch, share := "main", 0.0
		if i%2 == 1 {
			branch, share = "pr", 0.5
		}
		s.keep(branch, "01234567"+branch, time.Duration(i)*time.Minute+time.Hour, 50e3*(1+share)+float64(i), faster, func(d *report.Document) {
			d.Totals.Failed = uint64(share * float64(d.Totals.Sent))
		})
	}
	code, words := s.run("compare", "main", "pr", "--junit", "--gate")
	assert.True(t, code == host.ExitBroken, "got %d, %s\n%s", code, words, s.out.String())
	has(t, outcomes(t, s.out.Bytes()), "| throughput | passed: ", ": better")
	has(t, outcomes(t, s.out.Bytes()), "| failures | failed: ", ": worse")
}

// Exploratory rows do not fail unless they make the verdict mixed, and reports that are only on one side are named.
func TestExploratoryRowsDoNotFail(t *testing.T) {
	c := &judge.Comparison{
		Base: judge.Side{Name: "a"}, Candidate: judge.Side{Name: "b", LeftOut: []judge.LeftOut{{ID: "x1", Why: "cut short"}}},
		Pairs: []judge.Pair{{
			Findings: []judge.Finding{{Severe: true, About: "client", Text: "version was 1 and is 2"}},
			Rows: []judge.Judgement{
				{Title: "throughput", Primary: true, Verdict: "better"},
				{Title: "memory", Verdict: judge.Worse},
				{Title: "CPU", Verdict: judge.CannotTell, Why: "too noisy"},
			},
		}},
		Unpaired: []judge.Unpaired{{Side: "base", Reports: []string{"y"}}},
	}
	suites := comparisonSuites(c)
	var got []string
	for _, s := range suites {
		for _, one := range s.Cases {
			got = append(got, fmt.Sprint(one.Name, " ", one.Failed, " ", one.Skipped))
		}
	}
	want := []string{"throughput false false", "memory false true", "CPU false true", "compared false true", "reports judged false true"}
	assert.True(t, slices.Equal(got, want), "got %q, want %q", got, want)
	f := suites[0].Facts
	assert.True(t, f["not equal 1"] == "client: version was 1 and is 2" && f["left out x1"] == "cut short", "got %v", f)
}

func TestVerifyAsJUnit(t *testing.T) {
	testkit.Need(t, "a second")
	program := assert.Value(os.Executable())(t)
	slower := func(s *testStore) {
		s.repeat(8, "main", "aaaa", 3*day, 50e3)
		s.repeat(8, "main", "bbbb", 2*day, 40e3)
	}
	for _, tt := range []struct {
		name string
		keep func(*testStore)
		args []string
		code int
		want [][]string
	}{
		{name: "not worse", keep: func(s *testStore) {
			s.repeat(8, "main", "aaaa", 3*day, 50e3)
			s.repeat(8, "main", "bbbb", 2*day, 50e3)
		}, args: []string{"--min-effect", "8%"}, want: [][]string{{"branch main | throughput | passed: before ", "newest ", "(90% interval", "not 8% worse"}}},
		{name: "worse", keep: slower, args: []string{"--min-effect", "8%"}, code: 1, want: [][]string{
			{"| throughput | failed: ", ": worse"}, {"| response p99 | passed: "},
		}},
		{name: "cannot tell", keep: func(s *testStore) { s.repeat(2, "main", "aaaa", 3*day, 50e3) }, code: 4, want: [][]string{
			{"| throughput | skipped: ", "cannot tell (too little history: no earlier revision)"},
		}},
		{name: "strictly", keep: func(s *testStore) { s.repeat(2, "main", "aaaa", 3*day, 50e3) }, args: []string{"--strict"}, code: 1, want: [][]string{
			{"| throughput | failed: ", "no earlier revision"},
		}},
		{name: "died", keep: func(s *testStore) {
			s.repeat(8, "main", "aaaa", 3*day, 50e3)
			for range 3 {
				s.keep("main", "bbbb", 2*day, 50e3, func(d *report.Document) { d.Stopped, d.Partial = load.BySystem, true })
			}
		}, code: 1, want: [][]string{
			{"| reports judged | failed: the system died in 3 of 3 runs of the newest revision, and in none of 8 before it; left out "},
			{"| throughput | skipped: "},
		}},
		{name: "some left out", keep: func(s *testStore) {
			s.repeat(8, "main", "aaaa", 3*day, 50e3)
			s.repeat(8, "main", "bbbb", 2*day, 50e3)
			s.keep("main", "bbbb", 2*day, 50e3, func(d *report.Document) { d.Stopped, d.Partial = load.Killed, true })
		}, args: []string{"--min-effect", "8%"}, want: [][]string{{"| reports judged | skipped: 8 of 9 can be judged; left out ", ": cut short (killed)"}}},
		{name: "not as bad again", keep: slower, args: []string{"--min-effect", "8%", "--confirm", "CONFIRM_LEVEL=50000 '" + program + "'"}, code: 4, want: [][]string{
			{"| throughput | skipped: "}, {"| confirmed | passed: ", "it was not as bad again"},
		}},
		{name: "as bad again", keep: slower, args: []string{"--min-effect", "8%", "--confirm", "CONFIRM_LEVEL=40100 '" + program + "'"}, code: 1, want: [][]string{
			{"| throughput | failed: "}, {"| confirmed | passed: ", "it was as bad again"},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newTestStore(t)
			tt.keep(s)
			t.Setenv("CONFIRM_STORE", s.path)
			code, words := s.run(append([]string{"verify", "--junit"}, tt.args...)...)
			assert.Must(t, code == tt.code, "got %d, %s; want %d", code, words, tt.code)
			got := outcomes(t, s.out.Bytes())
			for _, parts := range tt.want {
				has(t, got, parts...)
			}
			failed := slices.ContainsFunc(got, func(l string) bool { return strings.Contains(l, "| failed: ") })
			assert.True(t, failed == (code == host.ExitBroken), "failures %v, and the exit code is %d", failed, code)
		})
	}
}

// An alarm that only its confirming run supports fails in a separate case.
func TestConfirmedAloneFails(t *testing.T) {
	v := &judge.Verification{Verdict: judge.Worse, Groups: []judge.Gate{{
		Verdict: judge.Worse, Revisions: []judge.Level{{Date: time.Unix(0, 0)}}, Confirmed: &judge.Confirmed{Again: true, Reports: []string{"n"}},
		Rows: []judge.GateRow{{Gate: judge.NotWorse}}, Survival: judge.Survival{Gate: judge.NotWorse},
	}}}
	c := gateSuites(v, false)[0].Cases
	assert.True(t, len(c) == 3 && !c[0].Failed && !c[1].Failed && c[2].Failed, "got %+v, want the confirming run to fail", c)
}
