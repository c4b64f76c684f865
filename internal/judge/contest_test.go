package judge

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"carronade/internal/layout"
	"carronade/internal/store"
	"carronade/internal/verdict/stats"
	"carronade/test/testkit/assert"
)

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
		assert.OK(t, c.Text(&b, layout.Style{ASCII: true}))
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

// Only the lower bounds of the revisions that the newest is compared with
// count, not those before the last step.
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
		{
			"one of them 0", page(append(zero(many(1, "a")[:1]), many(1, "a")[1:]...), many(2, "b")),
			[]string{"same within 1k/s"},
		},
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
	v, err := Verify(rows, VerifyOptions{})
	assert.OK(t, err)
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
	v, err = Verify(few, VerifyOptions{Effects: Effects{All: 0.001}})
	assert.OK(t, err)
	if r := v.Groups[0].Rows[0]; !strings.Contains(r.Reason, "k/s worse; --min-effect ") && !strings.Contains(r.Reason, "/s worse; --min-effect ") {
		t.Errorf("got %q (%q)", r.Reason, r.Gate)
	}
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
		if again, unknown := v.Groups[0].again(fresh); again != tt.again || unknown != tt.unknown {
			t.Errorf("%v, bounds %v: got %v, %v, want %v, %v", tt.p99, tt.bounds, again, unknown, tt.again, tt.unknown)
		}
	}
}
