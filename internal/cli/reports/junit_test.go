package reports

import (
	"encoding/xml"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"carronade/internal/host"
	"carronade/internal/judge"
	"carronade/internal/report"
	"carronade/load"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

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
	if !slices.ContainsFunc(lines, func(l string) bool {
		return !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(l, p) })
	}) {
		t.Errorf("no case has %q:\n%s", parts, strings.Join(lines, "\n"))
	}
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
	if c := gateSuites(v, false)[0].Cases; len(c) != 3 || c[0].Failed || c[1].Failed || !c[2].Failed {
		t.Errorf("got %+v, want the confirming run to fail", c)
	}
}
