package judge

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

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

// The gate counts failed runs of the newest revision: otherwise it would judge
// only the remaining runs, or the revision before.
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
			if newest := g.Revisions[len(g.Revisions)-1]; !strings.HasSuffix(newest.Revision, fmt.Sprintf("%x", 0xabc0+len(tt.rows)/n-1)) {
				t.Errorf("got %s as the newest", newest.Revision)
			}
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
	if v, err := Verify(ended, VerifyOptions{}); err != nil || len(v.Groups[0].Revisions) != 8 {
		t.Errorf("a run that was meant to be ended by the user does not count: %v, %+v", err, v)
	}
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
