package judge

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"carronade/internal/layout"
	"carronade/internal/store"
	"carronade/internal/verdict/stats"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// A world is a machine on which runs are made, one after the other. Its level is by how much more a run
// takes at a moment, as a logarithm.
type world struct {
	rnd   *rand.Rand
	noise float64 // of single runs
	level func(now time.Duration) float64
	now   time.Duration
	made  int
	open  bool   // runs with a schedule: the level is that of times
	acks  string // of the runs
}

// runs makes n runs in a row, with repetition numbers. factor is how much more the system takes.
func (w *world) runs(prefix string, n int, factor float64) []store.Row {
	out := make([]store.Row, n)
	for i := range out {
		out[i] = w.run(fmt.Sprintf("%s%d", prefix, w.made), factor, i+1, n)
	}
	return out
}

func (w *world) run(id string, factor float64, repetition, of int) store.Row {
	slower := factor * math.Exp(w.level(w.now))
	vary := func() float64 { return math.Exp(w.noise * w.rnd.NormFloat64()) }
	rate := 5000.0
	f := fields{"repetition": float64(repetition), "repetitions": float64(of)}
	if w.open {
		for name, x := range map[string]float64{"response_p50": 0.002, "response_p99": 0.012, "response_p999": 0.036} {
			f[name] = x * slower * vary()
		}
	} else {
		rate = 50e3 / slower * vary()
		f["rate"], f["response_p50"], f["response_p99"], f["response_p999"] = nil, nil, nil, nil
		for name, x := range map[string]float64{"service_p50": 0.002, "service_p99": 0.012} {
			f[name] = x * slower * vary()
		}
	}
	f["throughput"] = rate
	if w.acks != "" {
		f["acks"] = w.acks
	}
	r := row(id, start.Add(w.now), f)
	w.now += time.Minute
	w.made++
	return r
}

// worlds are how a machine may change between groups of runs, and while they are made.
var worlds = []struct {
	name  string
	level func(rnd *rand.Rand) func(now time.Duration) float64
}{
	{"nothing changes", func(*rand.Rand) func(time.Duration) float64 { return func(time.Duration) float64 { return 0 } }},
	{"each group has a level of its own, 0 to 5 %", func(rnd *rand.Rand) func(time.Duration) float64 {
		levels := map[time.Duration]float64{}
		return func(now time.Duration) float64 {
			group := now / time.Hour
			if _, ok := levels[group]; !ok {
				levels[group] = 0.05 * rnd.Float64()
			}
			return levels[group]
		}
	}},
	{"slow drift, 0 to 5 % in an hour", func(rnd *rand.Rand) func(time.Duration) float64 {
		by := 0.05 * (2*rnd.Float64() - 1)
		return func(now time.Duration) float64 { return by * math.Sin(now.Hours()*math.Pi/2) }
	}},
	{"steps of up to 5 %, that last", func(rnd *rand.Rand) func(time.Duration) float64 {
		var at []time.Duration
		for now := time.Duration(0); now < 1000*time.Hour; {
			now += time.Duration(float64(2*time.Hour) * rnd.ExpFloat64())
			at = append(at, now)
		}
		sizes := make([]float64, len(at)+1)
		for i := range sizes {
			sizes[i] = 0.05 * rnd.Float64()
		}
		return func(now time.Duration) float64 {
			n := 0
			for n < len(at) && at[n] <= now {
				n++
			}
			return sizes[n]
		}
	}},
	{"a neighbour that takes 20 to 50 % for minutes", func(rnd *rand.Rand) func(time.Duration) float64 {
		by := 0.2 + 0.3*rnd.Float64()
		var ends []time.Duration // quiet, busy, quiet, ...
		for now := time.Duration(0); now < 1000*time.Hour; {
			long := 3 * time.Minute
			if len(ends)%2 == 0 {
				long = 10 * time.Minute
			}
			now += time.Duration(float64(long) * rnd.ExpFloat64())
			ends = append(ends, now)
		}
		return func(now time.Duration) float64 {
			n := 0
			for n < len(ends) && ends[n] <= now {
				n++
			}
			if n%2 == 1 {
				return by
			}
			return 0
		}
	}},
}

// The ways in which runs are made and judged. different is whether they are called different: better, worse
// or mixed; best is whether a row is.
var judgings = []struct {
	name      string
	different func(t *testing.T, w *world, factor float64) bool
}{
	{"compare, 6 and 6, one after the other", func(t *testing.T, w *world, factor float64) bool {
		base := w.runs("a", 6, 1)
		w.apart()
		return comparedAs(t, base, w.runs("b", 6, factor), nil)
	}},
	{"compare, 3 and 3, one after the other", func(t *testing.T, w *world, factor float64) bool {
		base := w.runs("a", 3, 1)
		w.apart()
		return comparedAs(t, base, w.runs("b", 3, factor), nil)
	}},
	{"compare, 6 and 6, one after the other, with earlier groups", func(t *testing.T, w *world, factor float64) bool {
		var earlier []store.Row
		for range 6 {
			earlier = append(earlier, w.runs("e", 6, 1)...)
			w.apart()
		}
		base := w.runs("a", 6, 1)
		w.apart()
		return comparedAs(t, base, w.runs("b", 6, factor), earlier)
	}},
	{"compare --run, 6 and 6, in turns", func(t *testing.T, w *world, factor float64) bool {
		var base, candidate []store.Row
		for i := range 6 {
			if i%2 == 0 {
				base = append(base, w.run(fmt.Sprint("a", i), 1, i+1, 6))
			}
			candidate = append(candidate, w.run(fmt.Sprint("b", i), factor, i+1, 6))
			if i%2 == 1 {
				base = append(base, w.run(fmt.Sprint("a", i), 1, i+1, 6))
			}
		}
		return comparedAs(t, base, candidate, nil)
	}},
	{"verify, two groups of 6", func(t *testing.T, w *world, factor float64) bool { return verifiedAs(t, w, 1, 6, factor) }},
	{"verify, four groups of 6 before", func(t *testing.T, w *world, factor float64) bool { return verifiedAs(t, w, 4, 6, factor) }},
	{"verify, eight groups of 3 before", func(t *testing.T, w *world, factor float64) bool { return verifiedAs(t, w, 8, 3, factor) }},
	{"verify, 20 single runs before", func(t *testing.T, w *world, factor float64) bool { return verifiedAs(t, w, 20, 1, factor) }},
	{"verify, 10 single runs in a row, and one later", func(t *testing.T, w *world, factor float64) bool {
		var rows []store.Row
		for range 10 {
			rows = append(rows, w.runs("a", 1, 1)...)
		}
		w.apart()
		return worseOf(t, append(rows, w.runs("b", 1, factor)...))
	}},
	{"collate, two rows of 6", func(t *testing.T, w *world, factor float64) bool { return collatedAs(t, w, 2, 6, factor) }},
	{"collate, four rows of 6", func(t *testing.T, w *world, factor float64) bool { return collatedAs(t, w, 4, 6, factor) }},
	{"collate, two rows of 1", func(t *testing.T, w *world, factor float64) bool { return collatedAs(t, w, 2, 1, factor) }},
	{"collate, two rows of 3", func(t *testing.T, w *world, factor float64) bool { return collatedAs(t, w, 2, 3, factor) }},
}

// apart lets time pass until the next group.
func (w *world) apart() { w.now = w.now.Truncate(time.Hour) + time.Hour }

func comparedAs(t *testing.T, base, candidate, earlier []store.Row) bool {
	t.Helper()
	c := assert.Value(Compare(base, candidate, CompareOptions{Earlier: append(earlier, append(base[:len(base):len(base)], candidate...)...)}))(t)
	return c.Verdict == Worse || c.Verdict == "better" || c.Verdict == Mixed
}

func verifiedAs(t *testing.T, w *world, groups, each int, factor float64) bool {
	t.Helper()
	var rows []store.Row
	for range groups {
		rows = append(rows, w.runs("a", each, 1)...)
		w.apart()
	}
	return worseOf(t, append(rows, w.runs("b", each, factor)...))
}

func worseOf(t *testing.T, rows []store.Row) bool {
	t.Helper()
	v := assert.Value(Verify(rows, VerifyOptions{}))(t)
	return v.Verdict == Worse
}

// collatedAs is whether a row is the best, or ahead. The last row is made by the factor.
func collatedAs(t *testing.T, w *world, lines, each int, factor float64) bool {
	t.Helper()
	var rows []store.Row
	for i := range lines {
		f := 1.0
		if i == lines-1 {
			f = 1 / factor // the best is better
		}
		w.acks = fmt.Sprint(i)
		rows = append(rows, w.runs("a", each, f)...)
		w.apart()
	}
	c := assert.Value(Collate(rows, CollateOptions{Var: "acks", Now: start.Add(w.now)}))(t)
	for _, g := range c.Groups {
		for _, l := range g.Rows {
			for _, cell := range l.Cells {
				if cell.Best || cell.Ahead {
					return true
				}
			}
		}
	}
	return false
}

// shareOf is the share of trials in which runs are called different.
func shareOf(t *testing.T, judging, world_, trials int, open bool, factor float64) float64 {
	t.Helper()
	found := 0.0
	for i := range trials {
		rnd := rand.New(rand.NewPCG(uint64(i), uint64(100*judging+world_)))
		w := &world{rnd: rnd, noise: 0.02, level: worlds[world_].level(rnd), open: open}
		w.now = time.Duration(rnd.Float64() * float64(time.Hour/4))
		if judgings[judging].different(t, w, factor) {
			found++
		}
	}
	return found / float64(trials)
}

// Equal runs are called different in at most 5 % of cases, however the machine changes while they are made,
// and whichever command judges them.
func TestFalseAlarms(t *testing.T) {
	testkit.Need(t, "some seconds")
	trials := 60
	if testkit.Conformance {
		trials = 1000
	}
	for j, judging := range judgings {
		for k, world := range worlds {
			for _, open := range []bool{true, false} {
				if !testkit.Conformance && open != ((j+k)%2 == 0) {
					continue
				}
				got := shareOf(t, j, k, trials, open, 1)
				t.Logf("%-60s %-46s scheduled %-5t %5.1f%%", judging.name, world.name, open, 100*got)
				// Chance adds to the share of few trials.
				most := 0.05 + 2*math.Sqrt(0.05*0.95/float64(trials))
				assert.True(t, got <= most, "%s, %s, scheduled %t: called different in %.1f%%", judging.name, world.name, open, 100*got)
			}
		}
	}
}

// Real differences are still found.
func TestFoundInDrift(t *testing.T) {
	testkit.Need(t, "some seconds")
	trials := 30
	if testkit.Conformance {
		trials = 500
	}
	for _, tt := range []struct {
		judging, world int
		factor, least  float64
	}{
		{0, 0, 1.2, 0.9},
		{0, 1, 1.2, 0.9},
		{0, 2, 1.2, 0.9},
		{0, 3, 1.2, 0.9},
		{0, 0, 1.1, 0.5},
		{1, 0, 2.3, 0.9},
		{1, 1, 2.3, 0.9},
		{2, 1, 1.2, 0.9},
		{3, 0, 1.08, 0.9},
		{3, 1, 1.08, 0.9},
		{3, 2, 1.1, 0.9},
		{4, 0, 1.2, 0.9},
		{4, 1, 1.2, 0.9},
		{5, 1, 1.2, 0.9},
		{6, 1, 1.2, 0.9},
		{7, 1, 1.2, 0.9},
		{9, 0, 1.2, 0.9},
		{9, 1, 1.2, 0.9},
		{10, 1, 1.2, 0.9},
	} {
		for _, open := range []bool{true, false} {
			if !testkit.Conformance && open != ((tt.judging+tt.world)%2 == 0) {
				continue
			}
			got := shareOf(t, tt.judging, tt.world, trials, open, tt.factor)
			t.Logf("%-60s %-46s scheduled %-5t %+.0f%%: found in %.1f%%", judgings[tt.judging].name, worlds[tt.world].name, open, 100*(tt.factor-1), 100*got)
			if got < tt.least {
				t.Errorf("%s, %s, scheduled %t: %+.0f%% was found in %.1f%%", judgings[tt.judging].name, worlds[tt.world].name, open, 100*(tt.factor-1), 100*got)
			}
		}
	}
}

// lowered makes rows noisy: without the generator's delays their p99 is this share of what it was.
func lowered(rows []store.Row, share float64) []store.Row {
	for i := range rows {
		v, _ := rows[i].Num("response_p99")
		rows[i].Fields = append(rows[i].Fields,
			store.Field{Name: "response_lower_p99", Value: store.Value{Kind: store.KindDuration, Num: v * share}},
			store.Field{Name: "trust_level", Value: store.Value{Text: "noisy"}})
		slices.SortFunc(rows[i].Fields, func(a, b store.Field) int { return strings.Compare(a.Name, b.Name) })
	}
	return rows
}

// A verdict on noisy runs stays if it would be the same with their lower values, and its interval includes those.
func TestVerdictsOnNoisyRuns(t *testing.T) {
	const level, p99 = 50e3, 0.012
	for _, tt := range []struct {
		name            string
		base, candidate float64 // the share of the p99 that the generator did not cause
		factor          float64
		want            stats.Verdict
		widened         bool
	}{
		{"worse", 1, 1, 1.25, stats.Worse, false},
		{"worse, and the candidate's bound covers it", 1, 0.78, 1.25, stats.Unknown, true},
		{"worse by more than the candidate's bound", 1, 0.78, 2, stats.Worse, true},
		{"worse, and it may be by more", 0.78, 1, 1.25, stats.Worse, true},
		{"better", 1, 1, 0.8, stats.Better, false},
		{"better, and the base's bound covers it", 0.78, 1, 0.8, stats.Unknown, true},
		{"better by more than the base's bound", 0.78, 1, 0.5, stats.Better, true},
		{"better, and it may be by more", 1, 0.78, 0.8, stats.Better, true},
		{"same", 1, 1, 1, stats.Same, false},
		{"same, or worse than the base's lower values", 0.78, 1, 1, stats.Unknown, true},
		{"same, or better with the candidate's lower values", 1, 0.78, 1, stats.Unknown, true},
		{"same, both noisy", 0.78, 0.78, 1, stats.Unknown, true},
		{"worse, within what a trusted run may be off by", 0.95, 0.95, 1.25, stats.Worse, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			base := lowered(runs(1, "a", 10, level, p99, 0.005), tt.base)
			candidate := lowered(runs(2, "b", 10, level, p99*tt.factor, 0.005), tt.candidate)
			c := assert.Value(Compare(base, candidate, CompareOptions{}))(t)
			r := rowOf(c, "response_p99")
			assert.True(t, r.Field == "response_p99" && r.Verdict == tt.want && r.Widened == tt.widened && (r.Why == movedWords) == (tt.want == stats.Unknown),
				"%s: got %q (%s), widened %v; want %q, %v", r.Field, r.Verdict, r.Why, r.Widened, tt.want, tt.widened)
			// The interval includes the differences of both extremes.
			for _, x := range []float64{tt.factor, tt.factor / max(tt.base, 0.01), tt.factor * tt.candidate} {
				if tt.widened && (*r.Difference.Lo > x-1+0.01 || *r.Difference.Hi < x-1-0.01) {
					t.Errorf("the interval from %.3f to %.3f does not include %.3f", *r.Difference.Lo, *r.Difference.Hi, x-1)
				}
			}
			got := rowOf(c, "throughput")
			assert.True(t, got.Verdict == stats.Same && !got.Widened, "throughput: got %q, widened %v", got.Verdict, got.Widened)
			var b bytes.Buffer
			assert.OK(t, c.Text(&b, layout.Style{}))
			text := strings.Join(strings.Fields(b.String()), " ")
			assert.Equal(t, strings.Contains(text, "response p99: "+widenedWords), tt.widened && tt.want != stats.Unknown,
				"the text says that the interval is wider")
			assert.Equal(t, strings.Contains(text, movedWords), tt.want == stats.Unknown, "the text says why it cannot tell")
			assert.True(t, strings.Contains(text, atMostWords) == tt.widened && r.Base.AtMost == (tt.base < 0.9) && r.Candidate.AtMost == (tt.candidate < 0.9),
				"upper bounds: %v, %v:\n%s", r.Base.AtMost, r.Candidate.AtMost, text)
			for rows, want := range map[*[]store.Row]bool{&base: tt.base < 0.9, &candidate: tt.candidate < 0.9} {
				cell, _ := cellOf(*rows, "response_p99")
				assert.True(t, cell.AtMost == want && strings.HasPrefix(cell.text(), "<=") == want, "in collate: %s", cell.text())
			}
			checkPage(t, c.Text)
		})
	}
}

// Without a schedule, a frozen generator makes the rate too low.
func TestRatesOfNoisyRuns(t *testing.T) {
	closed := fields{"mode": "closed loop", "elapsed": 30.0, "rate": nil, "concurrency": "4"}
	for _, tt := range []struct {
		name           string
		frozen, factor float64
		mode           string
		want           stats.Verdict
	}{
		{"worse", 0, 0.95, "closed loop", stats.Worse},
		{"worse, frozen for a hundredth", 0.3, 0.95, "closed loop", stats.Worse},
		{"worse, frozen for as long", 2.4, 0.95, "closed loop", stats.Unknown},
		{"worse by more than the freeze", 2.4, 0.8, "closed loop", stats.Worse},
		{"worse, and a schedule makes up for it", 2.4, 0.95, "open loop", stats.Worse},
	} {
		t.Run(tt.name, func(t *testing.T) {
			base := runs(1, "a", 10, 50e3, 0.012, 0.002, closed, fields{"mode": tt.mode})
			candidate := runs(2, "b", 10, 50e3*tt.factor, 0.012, 0.002, closed, fields{"mode": tt.mode, "freeze_total": tt.frozen})
			c := assert.Value(Compare(base, candidate, CompareOptions{}))(t)
			r := rowOf(c, "throughput")
			assert.True(t, r.Field == "throughput" && r.Verdict == tt.want, "%s: got %q (%s), want %q", r.Field, r.Verdict, r.Why, tt.want)
		})
	}
}

// The gate does not fail a revision for what its generators may have added, and does not pass one that is
// worse than its base without what the base's generators added.
func TestGateOfNoisyRuns(t *testing.T) {
	for _, tt := range []struct {
		name                    string
		base, candidate, factor float64
		want, why               string
	}{
		{"worse", 1, 1, 1.25, Worse, ""},
		{"worse, and the bound covers it", 1, 0.78, 1.25, CannotTell, movedWords},
		{"not worse", 1, 1, 1, NotWorse, ""},
		{"not worse, except without the base's", 0.78, 1, 1, CannotTell, movedWords},
		{"not worse, and better without its own", 1, 0.78, 1, NotWorse, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			old := lowered(runs(1, "a", 10, 50e3, 0.012, 0.002, fields{"branch": "main", "revision": "1111111", "revision_date": start}), tt.base)
			young := lowered(runs(2, "b", 10, 50e3, 0.012*tt.factor, 0.002, fields{"branch": "main", "revision": "2222222", "revision_date": start.AddDate(0, 0, 1)}), tt.candidate)
			v := assert.Value(Verify(append(old, young...), VerifyOptions{}))(t)
			g := v.Groups[0]
			r := g.Rows[len(g.Rows)-1]
			assert.True(t, r.Field == "response_p99" && r.Gate == tt.want && r.Reason == tt.why && g.Noisy == 20,
				"%s: got %q (%s), %d noisy; want %q (%s), 20", r.Field, r.Gate, r.Reason, g.Noisy, tt.want, tt.why)
			checkPage(t, v.Text)
		})
	}
}

// The fields that decide on noise are requested from the store.
func TestFieldsOfNoisyRuns(t *testing.T) {
	for name, fields := range map[string][]string{
		"compare": CompareFields(), "verify": VerifyFields(nil), "collate": CollateFields(CollateOptions{Var: "rate"}),
	} {
		for _, want := range []string{"trust_level", "response_lower_p99", "service_lower_p99", "end_to_end_lower_p99", "freeze_total", "mode", "elapsed"} {
			assert.True(t, slices.Contains(fields, want), "%s does not ask for %s", name, want)
		}
	}
}
