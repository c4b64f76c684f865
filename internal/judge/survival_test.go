package judge

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"carronade/internal/layout"
	"carronade/internal/store"
	"carronade/internal/verdict/stats"
	"carronade/test/testkit/assert"
)

// ending makes rows end in a way that leaves them without a verdict.
func ending(rows []store.Row, stopped string, more ...fields) []store.Row {
	var out []store.Row
	for _, r := range rows {
		f := fields{"partial": true, "stopped": stopped}
		for _, name := range []string{"branch", "revision", "acks", "target.brokers.version", "repetition", "repetitions"} {
			if v, ok := r.Get(name); ok {
				f[name] = v
			}
		}
		if v, ok := r.Get("revision_date"); ok {
			f["revision_date"] = v
		}
		out = append(out, row(r.ID, r.At, append([]fields{f}, more...)...))
	}
	return out
}

// The gate counts failed runs of the newest revision: otherwise it would judge only the remaining runs, or the revision before.
func TestVerifyOfRunsThatDied(t *testing.T) {
	const n = 6
	died := func(rows []store.Row, last int, more ...fields) []store.Row {
		at := len(rows) - last
		return append(rows[:at:at], ending(rows[at:], "system ended", more...)...)
	}
	good := func(revisions int) []store.Row { return history(1, revisions, n, 0.005, level) }
	facts := fields{"target.brokers.version": "4.1"}
	for _, tt := range []struct {
		name string
		rows []store.Row
		o    VerifyOptions
		want string
		why  string // of the survival
	}{
		{name: "all survived", rows: good(3), want: NotWorse},
		{name: "all died", rows: died(good(3), n), want: Worse, why: "the system died in 6 of 6 runs of the newest revision, and in none of 12 before it"},
		{name: "one died", rows: died(good(3), 1), want: Worse, why: "the system died in 1 of 6 runs of the newest revision, and in none of 12 before it"},
		{
			name: "all died before they knew the servers", rows: died(history(1, 3, n, 0.005, level, facts), n, fields{"target.brokers.version": nil}), want: Worse,
			why: "the system died in 6 of 6 runs of the newest revision, and in none of 12 before it",
		},
		{
			name: "one died, as one did before", rows: append(ending(good(1)[:1], "system ended"), died(good(3), 1)[1:]...), want: CannotTell,
			why: "the system died in 1 of 6 runs of the newest revision, and in 1 of 12 before it",
		},
		{
			name: "all died, as one did before", rows: append(ending(good(1)[:1], "system ended"), died(good(3), n)[1:]...), want: Worse,
			why: "the system died in 6 of 6 runs of the newest revision, and in 1 of 12 before it",
		},
		{name: "died, and nothing came before", rows: died(good(1), n), want: CannotTell, why: "the system died in 6 of 6 runs of the newest revision, and there is nothing before it"},
		{
			name: "one died, as all of one revision did before", rows: slices.Concat(good(4)[:2*n], ending(good(4)[2*n:3*n], "system ended"), good(4)[3*n:4*n-1], ending(good(4)[4*n-1:], "system ended")),
			want: CannotTell, why: "the system died in 1 of 6 runs of the newest revision, and in 6 of 18 before it",
		},
		{
			name: "one died, as all did before", rows: slices.Concat(ending(good(3)[:2*n], "system ended"), good(3)[2*n:3*n-1], ending(good(3)[3*n-1:], "system ended")),
			want: CannotTell, why: "the system died in 1 of 6 runs of the newest revision, and in 12 of 12 before it",
		},
		{name: "died long ago", rows: append(ending(good(1), "system ended"), good(3)[n:]...), want: NotWorse},
		{name: "killed", rows: append(good(3)[:2*n], ending(good(3)[2*n:], "killed")...), want: CannotTell, why: "none of 6 reports of the newest revision can be judged: r2n0 is cut short (killed)"},
		{name: "most killed", rows: append(good(3)[:3*n-4], ending(good(3)[3*n-4:], "killed")...), want: CannotTell, why: "only 2 of 6 reports of the newest revision can be judged: r2n2 is cut short (killed)"},
		{name: "one killed", rows: append(good(9)[:9*n-1], ending(good(9)[9*n-1:], "killed")...), want: NotWorse},
		{name: "interrupted", rows: append(good(3)[:3*n-4], ending(good(3)[3*n-4:], "interrupted")...), o: VerifyOptions{Effects: Effects{All: 0.1}}, want: CannotTell, why: ""},
		{name: "all interrupted", rows: append(good(3)[:2*n], ending(good(3)[2*n:], "interrupted")...), want: CannotTell, why: "none of 6 reports of the newest revision can be judged: r2n0 is cut short (interrupted)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := assert.Value(Verify(tt.rows, tt.o))(t)
			assert.Must(t, len(v.Groups) == 1, "got %d groups, want 1: %+v", len(v.Groups), v.Groups)
			g := v.Groups[0]
			assert.True(t, v.Verdict == tt.want && g.Survival.Reason == tt.why,
				"got %q (%q), want %q (%q)", v.Verdict, g.Survival.Reason, tt.want, tt.why)
			newest := g.Revisions[len(g.Revisions)-1]
			assert.True(t, strings.HasSuffix(newest.Revision, fmt.Sprintf("%x", 0xabc0+len(tt.rows)/n-1)), "got %s as the newest", newest.Revision)
			checkPage(t, v.Text)
			checkJSON(t, v)
		})
	}
}

// A workload that was not run at the newest revision says so, and is judged by
// its own newest revision; revisions of another system do not matter.
func TestVerifyOfAWorkloadThatIsBehind(t *testing.T) {
	one := history(1, 4, 6, 0.005, level)
	other := renamed("o", history(2, 3, 6, 0.005, level, fields{"acks": "1"}))
	elsewhere := renamed("e", history(3, 2, 6, 0.005, level, fields{"acks": "0"}))
	for i := range elsewhere {
		for k, f := range elsewhere[i].Fields {
			if f.Name == "revision" {
				elsewhere[i].Fields[k].Value.Text = "of another system " + f.Value.Text
			}
		}
	}
	v := assert.Value(Verify(slices.Concat(one, other, elsewhere), VerifyOptions{}))(t)
	got := map[string]string{}
	for _, g := range v.Groups {
		acks := g.like.Text("acks")
		if got[acks] = ""; g.Behind != nil {
			got[acks] = g.Behind.Short()
		}
	}
	want := map[string]string{"all": "", "1": "0000000000", "0": ""}
	assert.True(t, maps.Equal(got, want) && v.Verdict == NotWorse, "got %v, %q; want %v", got, v.Verdict, want)
	checkPage(t, v.Text)
}

// A step for the worse fails the gate, however the newest revision's runs ended.
func TestVerifyStepBeforeWhatCannotBeJudged(t *testing.T) {
	rows := history(1, 20, 1, 0.01, fallAt(10, 0.8))
	v := assert.Value(Verify(append(rows[:19:19], ending(rows[19:], "killed")...), VerifyOptions{}))(t)
	g := v.Groups[0]
	assert.True(t, g.Verdict == Worse && len(g.Steps) == 1 && g.Survival.Gate == CannotTell && len(g.Revisions) == 20,
		"got %q, %d steps, %+v, %d revisions", g.Verdict, len(g.Steps), g.Survival, len(g.Revisions))
}

// Without revisions, a run that a user ended does not count as one; a run whose system died does.
func TestVerifyWithoutRevisionsOfRunsThatDied(t *testing.T) {
	rows := without(history(1, 8, 1, 0.005, level), "revision")
	ended := slices.Concat(rows[:7], ending(rows[7:], "interrupted", fields{"partial": false}))
	v, err := Verify(ended, VerifyOptions{})
	assert.True(t, err == nil && len(v.Groups[0].Revisions) == 8, "a run that was meant to be ended by the user does not count: %v, %+v", err, v)
	for stopped, want := range map[string]string{"interrupted": NotWorse, "system ended": Worse, "killed": CannotTell} {
		last := ending(rows[7:], stopped)
		v := assert.Value(Verify(append(rows[:7:7], last...), VerifyOptions{Effects: Effects{All: 0.1}}))(t)
		assert.Equal(t, v.Verdict, want, "%s", stopped)
	}
}

// A confirming run whose system dies again confirms the alarm; one that survives does not.
func TestConfirmOfRunsThatDied(t *testing.T) {
	rows := history(1, 3, 6, 0.005, level)
	rows = append(rows[:12:12], ending(rows[12:], "system ended")...)
	first, err := Verify(rows, VerifyOptions{})
	assert.Must(t, err == nil && first.Verdict == Worse, "%v, %v", first, err)
	fresh := history(9, 3, 6, 0.005, level)[12:]
	for i := range fresh {
		fresh[i].ID, fresh[i].At = fmt.Sprintf("new%d", i), fresh[i].At.Add(time.Hour)
	}
	for _, tt := range []struct {
		name  string
		fresh []store.Row
		want  string
	}{
		{"died again", ending(fresh, "system ended"), Worse},
		{"one died again", append(ending(fresh[:1], "system ended"), fresh[1:]...), Worse},
		{"survived", fresh, CannotTell},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := assert.Value(first.Confirm(append(rows[:18:18], tt.fresh...), VerifyOptions{}))(t)
			c := v.Groups[0].Confirmed
			assert.True(t, v.Verdict == tt.want && c != nil && c.Again == (tt.want == Worse), "got %q, %+v", v.Verdict, c)
			checkPage(t, v.Text)
		})
	}
}

// It also confirms a different alarm, even if systems died before: dying is as bad as being slow.
func TestConfirmOfAFallByRunsThatDied(t *testing.T) {
	rows := history(1, 3, 6, 0.005, fallAt(2, 0.8))
	rows = append(ending(rows[:1], "system ended"), rows[1:]...)
	first, err := Verify(rows, VerifyOptions{})
	assert.Must(t, err == nil && first.Verdict == Worse && first.Groups[0].Survival.Gate == NotWorse, "%v, %v", first, err)
	fresh := history(9, 3, 6, 0.005, level)[12:14]
	for i := range fresh {
		fresh[i].ID, fresh[i].At = fmt.Sprintf("new%d", i), fresh[i].At.Add(time.Hour)
	}
	for _, tt := range []struct {
		name    string
		fresh   []store.Row
		want    string
		reports []string
	}{
		{"died", ending(fresh[:1], "system ended"), Worse, []string{"new0"}},
		{"one died, one survived", append(ending(fresh[:1], "system ended"), fresh[1:]...), Worse, []string{"new0", "new1"}},
		{"survived", fresh, CannotTell, []string{"new0", "new1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := assert.Value(first.Confirm(slices.Concat(rows, tt.fresh), VerifyOptions{}))(t)
			g := v.Groups[0]
			if c := g.Confirmed; v.Verdict != tt.want || g.Verdict != tt.want || c == nil || c.Again != (tt.want == Worse) || !slices.Equal(c.Reports, tt.reports) {
				t.Errorf("got %q, %q, %+v", v.Verdict, g.Verdict, c)
			}
			checkPage(t, v.Text)
			checkJSON(t, v)
		})
	}
}

// A comparison counts failed runs, too.
func TestCompareOfRunsThatDied(t *testing.T) {
	base := func() []store.Row { return runs(1, "a", 10, 50e3, 0.012, 0.01) }
	candidate := func(level float64, given ...fields) []store.Row {
		return runs(2, "b", 10, 50e3, 0.012/level, 0.01, given...)
	}
	for _, tt := range []struct {
		name            string
		base, candidate []store.Row
		want, finding   string
		row             stats.Verdict // of the response p99
		err             string
	}{
		{name: "all survived", base: base(), candidate: candidate(1.2), want: "better", row: stats.Better},
		{
			name: "four of the better one died", base: base(), candidate: append(ending(candidate(1.2)[:4], "system ended"), candidate(1.2)[4:]...),
			want: "worse", row: stats.Unknown, finding: "the system died in 4 of 10 runs of the candidate, and in none of 10 of the base",
		},
		{
			name: "all died", base: base(), candidate: ending(candidate(1), "system ended"), want: "worse", row: stats.Unknown,
			finding: "the system died in 10 of 10 runs of the candidate, and in none of 10 of the base",
		},
		{
			name: "some of the base died", base: append(ending(base()[:3], "system ended"), base()[3:]...), candidate: candidate(0.8), want: "cannot tell", row: stats.Unknown,
			finding: "the system died in 3 of 10 runs of the base",
		},
		{
			name: "some of the base died, and the candidate is better", base: append(ending(base()[:3], "system ended"), base()[3:]...), candidate: candidate(1.2), want: "better",
			row: stats.Better, finding: "the system died in 3 of 10 runs of the base",
		},
		{name: "killed", base: base(), candidate: ending(candidate(1), "killed"), err: "none of the candidate's 10 reports can be judged: b0 is cut short (killed)"},
		{
			name: "the newest revision died", base: base(), candidate: append(candidate(1, fields{"branch": "pr", "revision": "aa", "revision_date": start}),
				renamed("c", ending(candidate(1, fields{"branch": "pr", "revision": "bb", "revision_date": start.Add(time.Hour)}), "system ended"))...),
			want: "worse", row: stats.Unknown, finding: "the system died in 10 of 10 runs of the candidate, and in none of 10 of the base",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := Compare(tt.base, tt.candidate, CompareOptions{})
			if err != nil || tt.err != "" {
				assert.Must(t, err != nil && err.Error() == tt.err, "got %v, want %q", err, tt.err)
				return
			}
			p := c.Pairs[0]
			finding := ""
			if len(p.Findings) > 0 && p.Findings[0].About == "runs" {
				finding = p.Findings[0].Text
			}
			if c.Verdict != tt.want || finding != tt.finding || p.Rows[0].Verdict != tt.row {
				t.Errorf("got %q (%q, %q), want %q (%q, %q)", c.Verdict, finding, p.Rows[0].Verdict, tt.want, tt.finding, tt.row)
			}
			checkPage(t, c.Text)
			checkJSON(t, c)
		})
	}
}

// renamed gives rows other ids.
func renamed(prefix string, rows []store.Row) []store.Row {
	for i := range rows {
		rows[i].ID = prefix + rows[i].ID
	}
	return rows
}

// Runs of alternating sides count as alternating even if some are left out.
func TestAlternatingRunsWithSomeLeftOut(t *testing.T) {
	a, b := runs(1, "a", 2, 1, 1, 0.01), runs(2, "b", 2, 1, 1, 0.01)
	for i, at := range []int{0, 3} {
		a[i].At = start.Add(time.Duration(at) * time.Minute)
	}
	for i, at := range []int{1, 2} {
		b[i].At = start.Add(time.Duration(at) * time.Minute)
	}
	cut := ending(a[1:], "killed")
	got := timeFindings(append(a[:1:1], cut...), b)
	assert.True(t, len(got) == 0, "got %+v", got)
	for _, f := range between(append(a[:1:1], cut...), b) {
		assert.True(t, f.About != "time", "got %+v", f)
	}
	got = timeFindings(a[:1], b[:1])
	assert.True(t, len(got) == 0, "one run on each side: got %+v", got)
}

// A verdict stays if it would be the same with lower bounds as bad as possible.
func TestVerdictsAgainstLowerBounds(t *testing.T) {
	const level, p99 = 50e3, 0.012
	for _, tt := range []struct {
		name            string
		base, candidate int // number of bounds among ten
		factor          float64
		want            stats.Verdict
		why             string
	}{
		{name: "better, one of the candidate's", candidate: 1, factor: 0.5, want: stats.Better},
		{name: "better, most of the candidate's", candidate: 6, factor: 0.5, want: stats.Unknown, why: "some events were never answered, so this time is a lower bound"},
		{name: "better, four of the candidate's", candidate: 4, factor: 0.5, want: stats.Unknown, why: "some events were never answered, so in some runs this time is a lower bound"},
		{name: "better than bounds", base: 10, factor: 0.5, want: stats.Better},
		{name: "worse, one of the base's", base: 1, factor: 2, want: stats.Worse},
		{name: "worse, most of the base's", base: 6, factor: 2, want: stats.Unknown, why: "some events were never answered, so this time is a lower bound"},
		{name: "worse, as bounds", candidate: 10, factor: 2, want: stats.Worse},
		{name: "same, one of the candidate's", candidate: 1, factor: 1, want: stats.Same},
		{name: "same, most of the candidate's", candidate: 6, factor: 1, want: stats.Unknown, why: "some events were never answered, so this time is a lower bound"},
		{name: "same, most of the base's", base: 6, factor: 1, want: stats.Unknown, why: "some events were never answered, so this time is a lower bound"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			base, candidate := runs(1, "a", 10, level, p99, 0.005), runs(2, "b", 10, level, p99*tt.factor, 0.005)
			bounded(base[:tt.base])
			bounded(candidate[:tt.candidate])
			c := assert.Value(Compare(base, candidate, CompareOptions{}))(t)
			r := rowOf(c, "response_p99")
			assert.True(t, r.Field == "response_p99" && r.Verdict == tt.want && r.Why == tt.why,
				"%s: got %q (%s), want %q (%s)", r.Field, r.Verdict, r.Why, tt.want, tt.why)
			checkPage(t, c.Text)
		})
	}
}

// The sign of a lower bound is shown where one is, and nowhere else.
func TestLowerBoundsAreShown(t *testing.T) {
	text := func(base, candidate []store.Row) map[string]string {
		c := assert.Value(Compare(base, candidate, CompareOptions{}))(t)
		var b bytes.Buffer
		assert.OK(t, c.FullText(&b, layout.Style{ASCII: true}))
		lines := map[string]string{}
		for line := range strings.Lines(b.String()) {
			for _, name := range []string{"response p99 ", "throughput ", "p99 ", "p50 "} {
				if rest, ok := strings.CutPrefix(strings.TrimLeft(line, " "), name); ok && lines[name] == "" {
					lines[name] = strings.ReplaceAll(strings.Join(strings.Fields(strings.ReplaceAll(rest, ">= ", ">=")), " "), " ms", "ms")
				}
			}
		}
		return lines
	}
	same := func(prefix string, p99 float64) []store.Row { return runs(1, prefix, 6, 50e3, p99, 0) }
	for _, tt := range []struct {
		name            string
		base, candidate []store.Row
		row, percentile string
	}{
		{"none", same("a", 0.012), same("b", 0.024), "12ms 24ms +100.0% +100.0% .. +100.0% worse", "12ms 24ms +100.0% |##########"},
		{"the candidate's", same("a", 0.012), bounded(same("b", 0.024)), "12ms >=24ms >=+100.0% unknown worse", "12ms >=24ms"},
		{"the base's", bounded(same("a", 0.024)), same("b", 0.012), ">=24ms 12ms <= -50.0% unknown better", ">=24ms 12ms"},
		{"both", bounded(same("a", 0.012)), bounded(same("b", 0.024)), ">=12ms >=24ms unknown unknown cannot tell", ">=12ms >=24ms"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			lines := text(tt.base, tt.candidate)
			assert.True(t, lines["response p99 "] == tt.row && lines["p99 "] == tt.percentile,
				"got %q and %q,\nwant %q and %q", lines["response p99 "], lines["p99 "], tt.row, tt.percentile)
			assert.True(t, !strings.Contains(lines["throughput "]+lines["p50 "], ">="),
				"a value that is not a bound is shown as one: %q", lines)
		})
	}
}

// p99History is a history of single runs with the given p99s.
func p99History(p99 func(i int) float64, n int) []store.Row {
	rows := history(1, n, 1, 0.002, level)
	rnd := rand.New(rand.NewPCG(3, 3))
	for i := range rows {
		for k, f := range rows[i].Fields {
			if f.Name == "response_p99" {
				rows[i].Fields[k].Value.Num = p99(i) * math.Exp(0.002*rnd.NormFloat64())
			}
		}
	}
	return rows
}

// Only the lower bounds of the revisions that the newest is compared with count, not those before the last step.
func TestLowerBoundsOfAHistory(t *testing.T) {
	step := func(i int) float64 {
		if i < 12 {
			return 0.050
		}
		return 0.012
	}
	worseLast := func(i int) float64 {
		if i == 23 {
			return 0.030
		}
		return 0.012
	}
	flat := func(int) float64 { return 0.012 }
	for _, tt := range []struct {
		name     string
		p99      func(int) float64
		from, to int // the range of lower bounds
		want     string
		shown    [2]bool // of the base, of the newest
	}{
		{"before the last step", step, 0, 12, NotWorse, [2]bool{}},
		{"of the base, which is only worse for it", flat, 0, 23, NotWorse, [2]bool{true, false}},
		{"of the newest", flat, 23, 24, CannotTell, [2]bool{false, true}},
		{"of the newest, which is worse as it is", worseLast, 23, 24, Worse, [2]bool{false, true}},
		{"of the base, which may have been as bad as the newest", worseLast, 0, 23, CannotTell, [2]bool{true, false}},
		{"of one in the base", worseLast, 3, 4, Worse, [2]bool{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rows := p99History(tt.p99, 24)
			bounded(rows[tt.from:tt.to])
			v := assert.Value(Verify(rows, VerifyOptions{}))(t)
			r := v.Groups[0].Rows[1]
			assert.True(t, r.Gate == tt.want && r.Base.AtLeast == tt.shown[0] && r.Candidate.AtLeast == tt.shown[1],
				"%s: got %q (%s), bounds %v, %v; want %q, %v",
				r.Field, r.Gate, r.Reason, r.Base.AtLeast, r.Candidate.AtLeast, tt.want, tt.shown)
			checkPage(t, v.Text)
		})
	}
}

// A step for the worse does not count if the level before it is a lower bound.
func TestStepFromLowerBounds(t *testing.T) {
	up := func(i int) float64 {
		if i < 12 {
			return 0.012
		}
		return 0.020
	}
	rows := p99History(up, 24)
	if v, err := Verify(rows, VerifyOptions{}); err != nil || v.Verdict != Worse {
		t.Fatalf("got %v, %v, want worse", v.Verdict, err)
	}
	bounded(rows[:12])
	v := assert.Value(Verify(rows, VerifyOptions{}))(t)
	if s := v.Groups[0].Steps; len(s) != 1 || s[0].Stands || !s[0].Doubtful || v.Verdict != CannotTell {
		t.Errorf("got %q with %+v, want %q with a step that may not be one", v.Verdict, s, CannotTell)
	}
	checkPage(t, v.Text)
}

// Shares of 0 are undefined: differences are amounts, and are shown as such.
func TestEffectBesideZero(t *testing.T) {
	zero := func(rows []store.Row) []store.Row {
		for i := range rows {
			for k, f := range rows[i].Fields {
				if f.Name == "throughput" {
					rows[i].Fields[k].Value.Num = 0
				}
			}
		}
		return rows
	}
	page := func(base, candidate []store.Row) string {
		c := assert.Value(Compare(base, candidate, CompareOptions{}))(t)
		checkPage(t, c.Text)
		var b bytes.Buffer
		assert.OK(t, c.Text(&b, layout.Style{}))
		return strings.Join(strings.Fields(b.String()), " ")
	}
	many := func(seed uint64, prefix string) []store.Row { return runs(seed, prefix, 8, 50e3, 0.012, 0.0002) }
	for _, tt := range []struct {
		name, got string
		want      []string
	}{
		{"from 0", page(zero(many(1, "a")), many(2, "b")), []string{"throughput 0/s 50 k/s +50 k/s", " better ", "throughput: the base is 0, so there are no percentages: any significant change counts"}},
		{"to 0", page(many(1, "a"), zero(many(2, "b"))), []string{"throughput 50 k/s 0/s -50 k/s", " worse "}},
		{"at 0", page(zero(many(1, "a")), zero(many(2, "b"))), []string{"throughput 0/s 0/s +0/s +0/s .. +0/s same response"}},
		{"one of them 0", page(append(zero(many(1, "a")[:1]), many(1, "a")[1:]...), many(2, "b")), []string{"same within 1k/s"}},
	} {
		t.Run(tt.name, func(t *testing.T) { assert.Has(t, tt.got, tt.want...) })
	}
}

// In a history with one outage, steps remain shares, and how much worse a row may be is given in its unit.
func TestHistoryWithAnOutage(t *testing.T) {
	rows := history(1, 30, 1, 0.02, func(i int) float64 {
		switch {
		case i == 5:
			return 0
		case i >= 20:
			return 0.8
		}
		return 1
	})
	v := assert.Value(Verify(rows, VerifyOptions{}))(t)
	s := v.Groups[0].Steps
	if len(s) != 1 || !s[0].Relative || math.Abs(s[0].Change+0.2) > 0.02 || !strings.HasPrefix(v.Groups[0].Rows[0].Reason, "-2") && !strings.HasPrefix(v.Groups[0].Rows[0].Reason, "-1") {
		t.Errorf("got %+v, %q", s, v.Groups[0].Rows[0].Reason)
	}
	// With the outage in the base, the noise is given in events per second.
	few := history(2, 2, 8, 0.02, level)
	for k, f := range few[0].Fields {
		if f.Name == "throughput" {
			few[0].Fields[k].Value.Num = 0
		}
	}
	v = assert.Value(Verify(few, VerifyOptions{Effects: Effects{All: 0.001}}))(t)
	r := v.Groups[0].Rows[0]
	assert.True(t, strings.Contains(r.Reason, "k/s worse; --min-effect ") || strings.Contains(r.Reason, "/s worse; --min-effect "), "got %q (%q)", r.Reason, r.Gate)
	checkPage(t, v.Text)
}

// If there are more revisions than are examined, the older ones are not new runs.
func TestConfirmKnowsOldReports(t *testing.T) {
	var rows []store.Row
	rnd := rand.New(rand.NewPCG(9, 9))
	for i := range mostRevisions + 40 {
		f := 1.0
		if i >= mostRevisions+30 {
			f = 0.8
		}
		rows = append(rows, row(fmt.Sprintf("r%d", i), start.Add(time.Duration(i)*time.Hour), fields{
			"throughput": 50e3 * f * math.Exp(0.01*rnd.NormFloat64()), "response_p99": 0.012 * math.Exp(0.01*rnd.NormFloat64()),
		}))
	}
	v, err := Verify(rows, VerifyOptions{})
	assert.Must(t, err == nil && v.Verdict == Worse && v.Groups[0].Older == 40, "got %v, %v", v, err)
	if again, err := v.Confirm(rows, VerifyOptions{}); err == nil {
		t.Errorf("%d old reports were taken for new ones", len(again.Groups[0].Confirmed.Reports))
	}
	// Nor is a report beyond the limit of the first verification.
	fresh := row("new", start.Add(1000*time.Hour), fields{"throughput": 40e3})
	v.RegisterKnown([]store.Row{{ID: "beyond"}})
	beyond := row("beyond", start.Add(-time.Hour))
	again := assert.Value(v.Confirm(append([]store.Row{beyond}, append(rows, fresh)...), VerifyOptions{}))(t)
	c := again.Groups[0].Confirmed
	assert.True(t, len(c.Reports) == 1 && c.Reports[0] == "new" && c.Again, "got %+v, want only the new one", c)
}

// A gate with a base of 0: a quantity that cannot decrease is not worse, and one that may be larger by chance
// is described in its unit, without advising an effect that would not help.
func TestGateFromZero(t *testing.T) {
	set := func(rows []store.Row, field string, values ...float64) {
		for i := range rows {
			for k, f := range rows[i].Fields {
				if f.Name == field {
					rows[i].Fields[k].Value.Num = values[i%len(values)]
				}
			}
		}
	}
	rows := history(1, 2, 8, 0.001, level)
	set(rows[:8], "throughput", 0)
	set(rows[8:], "throughput", 0, 5)
	set(rows[:8], "response_p99", 0)
	set(rows[8:], "response_p99", 0, 0.002)
	v := assert.Value(Verify(rows, VerifyOptions{}))(t)
	throughput, p99 := v.Groups[0].Rows[0], v.Groups[0].Rows[1]
	assert.True(t, throughput.Gate == NotWorse && throughput.Reason == "",
		"throughput: got %q (%s), want not worse", throughput.Gate, throughput.Reason)
	want := "too noisy: it may be 2 ms worse; the earlier value is 0, so any change counts; more repetitions of this revision would decide it"
	assert.True(t, p99.Gate == CannotTell && p99.Reason == want, "p99: got %q (%s), want %q", p99.Gate, p99.Reason, want)
	checkPage(t, v.Text)
}

// A confirming run whose times are lower bounds does not clear a revision.
func TestConfirmedByLowerBounds(t *testing.T) {
	p99 := func(newest float64) func(int) float64 {
		return func(i int) float64 {
			if i == 23 {
				return newest
			}
			return 0.012
		}
	}
	v, err := Verify(p99History(p99(0.030), 24), VerifyOptions{})
	assert.Must(t, err == nil && v.Verdict == Worse, "got %+v, %v, want worse", v, err)
	for _, tt := range []struct {
		p99                    float64
		bounds, again, unknown bool
	}{{0.030, false, true, false}, {0.030, true, true, false}, {0.0121, false, false, false}, {0.0121, true, false, true}} {
		fresh := p99History(p99(tt.p99), 24)[23:]
		if tt.bounds {
			bounded(fresh)
		}
		again, unknown := v.Groups[0].again(fresh)
		assert.True(t, again == tt.again && unknown == tt.unknown, "%v, bounds %v: got %v, %v, want %v, %v", tt.p99, tt.bounds, again, unknown, tt.again, tt.unknown)
	}
}
