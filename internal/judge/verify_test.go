package judge

import (
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
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// history is revisions of a branch, a day apart, each with several runs, whose throughput is multiplied by factor(i).
func history(seed uint64, revisions, repetitions int, noise float64, factor func(i int) float64, given ...fields) []store.Row {
	rnd := rand.New(rand.NewPCG(seed, 99))
	around := func(level float64) float64 { return level * math.Exp(noise*rnd.NormFloat64()) }
	var out []store.Row
	for i := range revisions {
		at := start.Add(time.Duration(i) * 24 * time.Hour)
		for k := range repetitions {
			f := fields{
				"throughput": around(50e3 * factor(i)), "response_p99": around(0.012), "branch": "main",
				"revision": fmt.Sprintf("%040x", i+0xabc0), "revision_date": at.Add(-time.Hour),
			}
			out = append(out, row(fmt.Sprintf("r%dn%d", i, k), at.Add(time.Duration(k)*time.Minute), append([]fields{f}, given...)...))
		}
	}
	return out
}

// level is a constant level.
func level(int) float64 { return 1 }

// fallAt is a level that changes to by at a revision.
func fallAt(at int, by float64) func(int) float64 {
	return func(i int) float64 {
		if i >= at {
			return by
		}
		return 1
	}
}

func TestVerify(t *testing.T) {
	wide := VerifyOptions{Effects: Effects{All: 0.08}}
	for _, tt := range []struct {
		name string
		rows []store.Row
		o    VerifyOptions
		want string // the verdict
		why  string // part of the reason of the throughput row
	}{
		{name: "nothing new", rows: history(1, 8, 6, 0.01, level), want: NotWorse},
		{name: "two revisions, repeated", rows: history(1, 2, 10, 0.01, level), want: NotWorse},
		{name: "two revisions, the new one worse", rows: history(1, 2, 6, 0.01, fallAt(1, 0.9)), want: Worse},
		{name: "two revisions, the new one better", rows: history(1, 2, 6, 0.01, fallAt(1, 1.1)), want: NotWorse},
		{
			name: "two revisions, five runs each", rows: history(1, 2, 5, 0.01, fallAt(1, 0.5)), want: CannotTell,
			why: "too little history: 5 reports of 1 revision before it and 5 of its own; needed: 6 revisions, or 6 reports on both sides",
		},
		{name: "one revision", rows: history(1, 1, 6, 0.01, level), want: CannotTell, why: "too little history: no earlier revision"},
		{name: "single runs, the new one much worse", rows: history(1, 20, 1, 0.02, fallAt(19, 0.85)), want: Worse},
		{name: "single runs, noisy", rows: history(1, 20, 1, 0.02, level), want: CannotTell, why: "too noisy: it may be"},
		{name: "single runs, with a large effect", rows: history(1, 20, 1, 0.02, level), o: wide, want: NotWorse},
		{
			name: "worse for several revisions", rows: history(1, 30, 1, 0.02, fallAt(22, 0.9)), o: wide, want: Worse,
			why: "and not recovered",
		},
		{
			name: "the good revisions long ago do not hide it", rows: history(3, 20, 3, 0.01, fallAt(17, 0.8)), want: Worse,
			why: "and not recovered",
		},
		{
			name: "worse, and recovered", rows: history(1, 30, 1, 0.01, func(i int) float64 {
				if i >= 10 && i < 18 {
					return 0.8
				}
				return 1
			}), o: wide, want: NotWorse,
		},
		{name: "better recently", rows: history(1, 30, 1, 0.01, fallAt(27, 1.3)), o: wide, want: NotWorse},
		{name: "worse than recent better ones", rows: history(1, 31, 1, 0.01, func(i int) float64 {
			switch {
			case i == 30:
				return 1
			case i >= 20:
				return 1.3
			}
			return 1
		}), o: wide, want: Worse},
		{
			name: "a separate effect for one row", rows: history(1, 2, 6, 0.01, fallAt(1, 0.9)),
			o: VerifyOptions{Effects: Effects{All: 0.05, Of: map[string]float64{"throughput": 0.2}}}, want: NotWorse,
		},
		{name: "lower bounds", rows: boundLast(history(1, 2, 10, 0.005, level), 10), want: CannotTell},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := assert.Value(Verify(tt.rows, tt.o))(t)
			g := v.Groups[0]
			assert.True(t, v.Verdict == tt.want && g.Verdict == tt.want && len(v.Groups) == 1,
				"got %q, want %q: %+v", v.Verdict, tt.want, g.Rows)
			assert.True(t, strings.Contains(g.Rows[0].Reason, tt.why), "got %q, want %q", g.Rows[0].Reason, tt.why)
			checkPage(t, v.Text)
			checkJSON(t, v)
		})
	}
}

// The reason does not advise an effect that would be refused.
func TestNoiseAdvisesOnlyAllowedEffects(t *testing.T) {
	for _, tt := range []struct {
		noise float64
		want  bool
	}{{0.05, true}, {1, false}} {
		v := assert.Value(Verify(history(1, 8, 1, tt.noise, level), VerifyOptions{Effects: Effects{All: 0.01}}))(t)
		got := v.Groups[0].Rows[0].Reason
		assert.True(t, strings.Contains(got, "--min-effect") == tt.want &&
			strings.Contains(got, "more repetitions of this revision"), "noise of %v: got %q", tt.noise, got)
	}
}

// boundLast turns the p99 of the last rows into lower bounds.
func boundLast(rows []store.Row, n int) []store.Row {
	bounded(rows[len(rows)-n:])
	return rows
}

// Each workload and branch is judged separately, and the overall verdict is the worst of them.
func TestVerifyGroups(t *testing.T) {
	good := history(1, 2, 10, 0.005, level)
	bad := history(2, 2, 10, 0.005, fallAt(1, 0.9), fields{"acks": "1"})
	other := history(3, 1, 6, 0.005, level, fields{"branch": "pr"})
	for i := range bad {
		bad[i].ID = "b" + bad[i].ID
	}
	for i := range other {
		other[i].ID = "c" + other[i].ID
	}
	v := assert.Value(Verify(slices.Concat(good, bad, other), VerifyOptions{}))(t)
	got := map[string]string{}
	for _, g := range v.Groups {
		got[workloadWords(g.Workload)+" "+g.Branch] = g.Verdict
	}
	want := map[string]string{
		"rate 50k/s, for 30s, acks all main": NotWorse, "rate 50k/s, for 30s, acks 1 main": Worse, "rate 50k/s, for 30s, acks all pr": CannotTell,
	}
	assert.Same(t, got, want)
	assert.Equal(t, v.Verdict, Worse)
}

// Reports without a revision are distinguished by time: the repetitions of one run belong together.
func TestVerifyWithoutRevisions(t *testing.T) {
	var rows []store.Row
	rnd := rand.New(rand.NewPCG(4, 4))
	for i := range 8 {
		for k := range 3 {
			f := 1.0
			if i == 7 {
				f = 0.7
			}
			rows = append(rows, row(fmt.Sprintf("r%dn%d", i, k), start.Add(time.Duration(i)*time.Hour+time.Duration(k)*time.Minute), fields{
				"throughput": 50e3 * f * math.Exp(0.01*rnd.NormFloat64()), "response_p99": 0.012 * math.Exp(0.01*rnd.NormFloat64()),
				"repetition": float64(k + 1), "repetitions": 3.0,
			}))
		}
	}
	v := assert.Value(Verify(rows, VerifyOptions{}))(t)
	g := v.Groups[0]
	if len(g.Revisions) != 8 || len(g.Revisions[0].Reports) != 3 || g.Verdict != Worse {
		t.Errorf("got %d revisions, %d reports in the first, verdict %q", len(g.Revisions), len(g.Revisions[0].Reports), g.Verdict)
	}
}

// An old revision that is tested again is not the newest.
func TestRevisionsAreOrderedByTheirDates(t *testing.T) {
	rows := history(1, 4, 2, 0.01, level)
	again := history(5, 1, 1, 0.01, level)[0]
	again.ID, again.At = "again", start.Add(365*24*time.Hour)
	revisions := revisionsOf(append(rows, again))
	got := len(revisions)
	assert.Must(t, got == 4, "got %d revisions, want 4", got)
	first := revisions[0]
	assert.True(t, len(first.rows) == 3 && strings.HasSuffix(first.name, "abc0"), "the oldest is %s with %d reports", first.name, len(first.rows))
	dirty := row("d", start, fields{"revision": "aa", "unstaged_changes": true})
	assert.Equal(t, revisionName(&dirty), "aa+changes")
}

// The gate is wrong as rarely as promised: 60 revisions with one run each that differ by 2%, with or without
// one step of 5% somewhere; without a step, every change of a percent counts as an alarm.
func TestVerifyRates(t *testing.T) {
	testkit.Need(t, "some seconds")
	const (
		trials    = 120
		revisions = 60
	)
	rnd := rand.New(rand.NewPCG(21, 22))
	near, alarms, missed, worseFound := 0, 0, 0, 0
	for trial := range trials {
		at := 5 + rnd.IntN(revisions-9)
		by := 0.95
		if trial%2 == 0 {
			by = 1.05
		}
		v := assert.Value(Verify(history(uint64(trial), revisions, 1, 0.02, fallAt(at, by)), VerifyOptions{}))(t)
		if slices.ContainsFunc(v.Groups[0].Steps, func(s DatedStep) bool {
			day := start.Add(time.Duration(at)*24*time.Hour - time.Hour)
			return s.Field == "throughput" && s.Date.Sub(day).Abs() <= 2*24*time.Hour && s.Worse == (by < 1)
		}) {
			near++
		}
		if by < 1 && v.Verdict != Worse {
			missed++
		}
		v = assert.Value(Verify(history(uint64(trial)+1e6, revisions, 1, 0.02, level), VerifyOptions{Effects: Effects{All: 0.01}}))(t)
		if v.Verdict == Worse {
			worseFound++
		}
		if v.Verdict == Worse || len(v.Groups[0].Steps) > 0 {
			alarms++
		}
	}
	t.Logf("of %d: %d steps dated within 2 revisions; without a step %d alarms, %d of them exits of 1; %d of %d steps for the worse missed by the exit code",
		trials, near, alarms, worseFound, missed, trials/2)
	assert.True(t, near >= trials*90/100, "%d of %d steps were dated within 2 revisions, want 90%%", near, trials)
	assert.True(t, alarms <= trials*5/100, "%d false alarms in %d, want at most 5%%", alarms, trials)
	assert.True(t, missed <= trials/2*10/100, "%d of %d steps for the worse did not fail the gate", missed, trials/2)
}

// A confirming run decides whether an alarm is kept.
func TestConfirm(t *testing.T) {
	alarm := history(1, 2, 6, 0.01, fallAt(1, 0.9))
	more := func(factor float64, n int) []store.Row {
		out := history(7, 2, n, 0.01, fallAt(1, factor))[n:]
		for i := range out {
			out[i].ID, out[i].At = fmt.Sprintf("new%d", i), out[i].At.Add(time.Hour)
		}
		return out
	}
	first, err := Verify(alarm, VerifyOptions{})
	assert.Must(t, err == nil && first.Verdict == Worse, "%v, %v", first, err)
	for _, tt := range []struct {
		name      string
		rows      []store.Row
		want, err string
	}{
		{name: "as bad again", rows: slices.Concat(alarm, more(0.9, 2)), want: Worse},
		{name: "not as bad again", rows: slices.Concat(alarm, more(1, 2)), want: CannotTell},
		{name: "not as bad again, often", rows: slices.Concat(alarm, more(1.05, 60)), want: NotWorse},
		{name: "no new report", rows: alarm, err: "the confirming command made no new usable report of rate 50k/s, for 30s, acks all"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v, err := first.Confirm(tt.rows, VerifyOptions{})
			if err != nil || tt.err != "" {
				assert.Must(t, err != nil && err.Error() == tt.err, "got %v, want %q", err, tt.err)
				return
			}
			if v.Verdict != tt.want {
				t.Errorf("got %q, want %q: %+v", v.Verdict, tt.want, v.Groups[0].Confirmed)
			}
			checkPage(t, v.Text)
		})
	}
}

func TestVerifyNothing(t *testing.T) {
	if _, err := Verify(nil, VerifyOptions{}); err == nil || err.Error() != "no reports" {
		t.Errorf("got %v", err)
	}
	_, err := Verify(history(1, 2, 1, 0.01, level, fields{"trusted": false}), VerifyOptions{})
	want := "none of the 2 reports can be judged: r0n0 is not trustworthy: the generator was the limit"
	assert.True(t, err != nil && err.Error() == want, "got %v, want %q", err, want)
}

func TestVerificationText(t *testing.T) {
	v := assert.Value(Verify(history(1, 40, 1, 0.02, fallAt(30, 0.9)), VerifyOptions{Asked: "branch=main", Since: start.Add(-time.Hour)}))(t)
	golden(t, "verify.txt", v.Text)
}

// TestVerifyOverview: without a filter, each of several workloads has a line, the worst first, and at most 20 have one.
func TestVerifyOverview(t *testing.T) {
	var rows []store.Row
	for i := range 23 {
		shape := level
		if i == 21 {
			shape = fallAt(30, 0.9)
		}
		rows = append(rows, history(uint64(i), 40, 1, 0.02, shape, fields{"rate": fmt.Sprintf("%dk/s", i+1)})...)
	}
	for _, asked := range []string{"", "op=produce"} {
		v := assert.Value(Verify(rows, VerifyOptions{Asked: asked}))(t)
		var b strings.Builder
		assert.OK(t, v.Text(&b, layout.Style{}))
		lines := strings.Split(b.String(), "\n")
		assert.True(t, strings.HasPrefix(lines[0], "FAIL  1 of 23 workloads"), "the first line is %q", lines[0])
		if asked == "" {
			assert.True(t, strings.HasPrefix(lines[3], "  FAIL") && strings.Contains(b.String(), "kafka t, rate 22k/s, ") && len(lines) <= 29, "the overview is\n%s", b.String())
			assert.Has(t, b.String(), "\n  and 3 more\n")
			golden(t, "overview.txt", v.Text)
			continue
		}
		assert.Equal(t, strings.Count(b.String(), "\n  newest "), 23, "workloads with their numbers")
	}
}

// Operations on topics are a workload of their own, whatever else they share with runs.
func TestVerifyTopics(t *testing.T) {
	rows := history(1, 6, 6, 0.005, level)
	listed := history(2, 6, 6, 0.005, fallAt(5, 0.5), fields{"op": "topics list"})
	for i := range listed {
		listed[i].ID = "list" + listed[i].ID
	}
	v := assert.Value(Verify(append(rows, listed...), VerifyOptions{}))(t)
	got := map[string]string{}
	for _, g := range v.Groups {
		got[g.Op] = g.Verdict
	}
	want := map[string]string{"produce": NotWorse, "topics list": Worse}
	assert.True(t, maps.Equal(got, want), "got %v, want %v", got, want)
}
