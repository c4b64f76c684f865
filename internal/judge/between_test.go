package judge

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"carronade/internal/layout"
	"carronade/internal/store"
	"carronade/internal/verdict/stats"
	"carronade/test/testkit/assert"
)

// group is runs in a row, a minute each, with these values of the response p99 in milliseconds.
func group(prefix string, at time.Duration, ms ...float64) (out []store.Row) {
	for i, v := range ms {
		out = append(out, row(fmt.Sprint(prefix, i), start.Add(at+time.Duration(i)*time.Minute), fields{
			"response_p99": v / 1000, "repetition": float64(i + 1), "repetitions": float64(len(ms)),
		}))
	}
	return out
}

// grouped are six runs whose median is a level.
func grouped(prefix string, at time.Duration, level float64) []store.Row {
	return group(prefix, at, 0.99*level, 0.995*level, 0.999*level, 1.001*level, 1.005*level, 1.01*level)
}

// Two groups of six equal runs, minutes apart, of which one takes 3.5 % more: no command calls that a
// difference. Runs in turns show it.
func TestTwoGroupsOfEqualRuns(t *testing.T) {
	base, candidate := grouped("a", 0, 40), grouped("b", 10*time.Minute, 41.4)
	both := append(base[:6:6], candidate...)
	v, err := Verify(both, VerifyOptions{})
	assert.OK(t, err)
	assert.True(t, v.Verdict == NotWorse, "verify: got %s, %+v", v.Verdict, v.Groups[0].Rows)
	c := assert.Value(Compare(base, candidate, CompareOptions{}))(t)
	assert.True(t, c.Verdict == "same", "compare: got %s, %s", c.Verdict, c.Pairs[0].Reason)
	// Where less would matter, it still cannot tell.
	fine := Effects{All: 0.01}
	v, err = Verify(both, VerifyOptions{Effects: fine})
	assert.True(t, err == nil && v.Verdict == CannotTell, "verify: got %s, %v", v.Verdict, err)
	c = assert.Value(Compare(base, candidate, CompareOptions{Effects: fine}))(t)
	const why = "equal runs that were made at another time may differ by 5%; compare --run alternates between both sides"
	assert.True(t, c.Verdict == CannotTell && c.Pairs[0].Rows[0].Why == why && c.Pairs[0].Rows[0].Between == usualBetween, "compare: got %s, %s", c.Verdict, c.Pairs[0].Rows[0].Why)
	for i := range candidate { // in turns
		candidate[i].At = base[i].At.Add(30 * time.Second)
	}
	c = assert.Value(Compare(base, candidate, CompareOptions{Effects: fine}))(t)
	assert.True(t, c.Verdict == Worse, "in turns: got %s, %s", c.Verdict, c.Pairs[0].Reason)
}

// What earlier groups of equal runs differ by counts if it is more than is usual.
func TestEarlierGroupsThatDiffer(t *testing.T) {
	base, candidate := grouped("a", 0, 40), grouped("b", 10*time.Minute, 46)
	c := assert.Value(Compare(base, candidate, CompareOptions{}))(t)
	assert.True(t, c.Verdict == Worse, "without earlier groups: got %s", c.Verdict)
	var earlier, others []store.Row
	for i, level := range []float64{40, 44, 39, 43, 40, 44} {
		earlier = append(earlier, grouped(fmt.Sprint("e", i), time.Duration(i-20)*time.Hour, level)...)
	}
	for _, r := range grouped("o", -time.Hour, 900) {
		r.Fields = append(r.Fields, store.Field{Name: "zz", Value: store.Value{Text: "another workload", Independent: true}})
		others = append(others, r)
	}
	c = assert.Value(Compare(base, candidate, CompareOptions{Earlier: append(earlier, others...)}))(t)
	assert.True(t, c.Verdict == CannotTell && strings.HasPrefix(c.Pairs[0].Rows[0].Why, "equal runs that were made at another time may differ by 3"), "got %s, %s", c.Verdict, c.Pairs[0].Rows[0].Why)
	for i := range earlier { // a gate has them as levels
		earlier[i].At = earlier[i].At.Add(-time.Hour)
	}
	v := assert.Value(Verify(append(append(earlier[:30:30], base...), candidate...), VerifyOptions{}))(t)
	assert.True(t, v.Verdict != Worse, "verify: got %s", v.Verdict)
}

func TestAlternate(t *testing.T) {
	for order, want := range map[string]bool{
		"ABBAABBAABBA": true, "ABABABABABAB": true, "ABBAAB": true, "ABBAABBAABBAAA": true,
		"AAAAAABBBBBB": false, "AAABBB": false, "AAABBBAAABBB": false, "BBBBBBAAAAAA": false, "AB": false, "": false,
	} {
		var base, candidate []store.Row
		for i, side := range order {
			r := row(fmt.Sprint(i), start.Add(time.Duration(i)*time.Minute))
			if side == 'A' {
				base = append(base, r)
			} else {
				candidate = append(candidate, r)
			}
		}
		assert.Equal(t, alternate(base, candidate), want, "%s", order)
	}
}

// A run on another day than those before it, which were made in a row, is not judged alone.
func TestASingleRunMuchLater(t *testing.T) {
	var rows []store.Row
	for i := range 8 {
		rows = append(rows, group(fmt.Sprint("a", i), time.Duration(i)*2*time.Minute, 40+float64(i%3))...)
	}
	v := assert.Value(Verify(append(rows[:8:8], group("b", 24*time.Hour, 60)...), VerifyOptions{}))(t)
	assert.True(t, v.Verdict == CannotTell && strings.Contains(v.Groups[0].Rows[1].Reason, "was measured much later, so it needs 6 reports of its own, and has 1"), "got %s: %+v", v.Verdict, v.Groups[0].Rows[1].Reason)
	v = assert.Value(Verify(append(rows[:8:8], group("b", 16*time.Minute, 60)...), VerifyOptions{}))(t)
	assert.True(t, v.Verdict == Worse, "in the same row: got %s", v.Verdict)
}

// The smallest difference that matters is smaller for rates.
func TestDefaultEffects(t *testing.T) {
	for _, tt := range []struct {
		q    quantity
		e    Effects
		want float64
	}{
		{throughput, Effects{}, 0.02},
		{ceiling, Effects{}, 0.02},
		{responseP99, Effects{}, 0.05},
		{cores, Effects{}, 0.05},
		{failures, Effects{}, failures.amount},
		{throughput, Effects{All: 0.1}, 0.1},
		{responseP99, Effects{Of: map[string]float64{"response_p99": 0.2}}, 0.2},
	} {
		assert.Equal(t, tt.e.of(tt.q), tt.want, "%s, %+v", tt.q.field, tt.e)
	}
	assert.True(t, stats.ClearApart > stats.ClearRatio, "sides that did not alternate need a larger difference")
}

// How much worse a noisy row may be is the end of the interval next to it.
func TestHowMuchWorseIsTheEndOfTheInterval(t *testing.T) {
	base := lowered(group("a", 0, 30, 35, 40, 45, 50, 55), 0.5)
	candidate := lowered(group("b", time.Hour, 31, 36, 41, 46, 51, 56), 0.5)
	v := assert.Value(Verify(append(base, candidate...), VerifyOptions{}))(t)
	r := v.Groups[0].Rows[1]
	assert.True(t, r.Widened && r.Gate == CannotTell && strings.HasPrefix(r.Reason, "too noisy: it may be "+percent(*r.Difference.Hi)+" worse; "), "got %q, and the interval ends at %s", r.Reason, percent(*r.Difference.Hi))
}

// With a baseline the newest revision is compared with exactly its reports: not with the history, and whatever the branch.
func TestAgainst(t *testing.T) {
	at := func(days int, rows []store.Row) []store.Row {
		for i := range rows {
			rows[i].At = rows[i].At.Add(time.Duration(days) * 24 * time.Hour)
		}
		return rows
	}
	of := func(revision string, more fields) fields {
		f := fields{"branch": "main", "revision": revision}
		maps.Copy(f, more)
		return f
	}
	release := at(0, runs(1, "rel", 8, 50e3, 0.012, 0.01, of("4.0", nil)))
	between := at(1, runs(2, "mid", 8, 30e3, 0.012, 0.01, of("4.1-dev", nil)))
	slower := at(1, runs(2, "slow", 8, 45e3, 0.012, 0.01, of("4.1-dev", nil)))
	newest := at(2, runs(3, "new", 8, 30e3, 0.012, 0.01, of("4.1", nil)))
	pull := at(3, runs(4, "pr", 8, 50e3, 0.012, 0.01, of("5.0", fields{"branch": "pr"})))
	other := at(0, runs(5, "oth", 8, 50e3, 0.012, 0.01, of("4.0", fields{"for": "60s"})))
	port := at(2, runs(6, "port", 8, 50e3, 0.012, 0.01, of("4.1", fields{"target": "kafka://127.0.0.1:9999/t"})))
	dead := at(2, runs(7, "dead", 8, 50e3, 0.012, 0.01, of("4.1", fields{"stopped": "system ended", "partial": true})))
	all := func(sides ...[]store.Row) (out []store.Row) {
		for _, s := range sides {
			out = append(out, s...)
		}
		return out
	}
	_, err := Verify(release, VerifyOptions{Against: &Baseline{Name: "them", Rows: newest}})
	assert.True(t, errors.Is(err, ErrNoBaseline), "what was measured before the baseline alone is judged: %v", err)
	for _, tt := range []struct {
		name           string
		rows, baseline []store.Row
		same           bool
		verdict        string
		says           string // part of the text
	}{
		{"worse than the release", all(between, newest), release, false, Worse, "baseline      4.0 of 2026-10-01 02:00, 8 reports: rel0"},
		{"as the one before it", all(release, between, newest), between, false, NotWorse, "baseline      4.1-dev"},
		{"the baseline's reports match the filters too", all(release, newest), release, false, Worse, "8 reports: new0"},
		{"another branch", pull, release, false, NotWorse, "branch        pr"},
		{"a baseline of two revisions", newest, all(release, slower), false, Worse, "baseline      2026-10-01 02:00, 16 reports"},
		{"too few", newest, release[:5], false, CannotTell, "too few reports: 5 of the baseline and 8 of the newest; needed: 6 on both sides"},
		{"one workload is missing", all(newest, between), all(between, other), false, CannotTell, "the baseline alone has 8 reports of rate 50k/s, for 60s, acks all on kafka://127.0.0.1:9092"},
		{"another port is another system", all(newest, port), release, false, Worse, "newest        4.1 of 2026-10-03 02:00, 8 reports: new0"},
		{"any port", port, release, true, NotWorse, "8 reports: port0"},
		{"the newest died", dead, release, false, Worse, "died in 8 of 8 runs of the newest revision, and in none of 8 of the baseline"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := assert.Value(Verify(tt.rows, VerifyOptions{SameSystem: tt.same, Against: &Baseline{Name: "them", Rows: tt.baseline}}))(t)
			assert.True(t, len(v.Groups) == 1 && v.Verdict == tt.verdict,
				"got %d groups and %q, want 1 and %q", len(v.Groups), v.Verdict, tt.verdict)
			var b bytes.Buffer
			assert.OK(t, v.Text(&b, layout.Style{}))
			if text := strings.Join(strings.Fields(b.String()), " "); !strings.Contains(text, strings.Join(strings.Fields(tt.says), " ")) || !strings.HasPrefix(text, gateWords[tt.verdict]+" ") || !strings.Contains(text, " verify against them ") {
				t.Errorf("got\n%s\nwant %q in it", b.String(), tt.says)
			}
			checkPage(t, v.Text)
			checkJSON(t, v)
		})
	}
	for name, rows := range map[string][]store.Row{"only the baseline": release, "another workload": other, "another system": port} {
		v, err := Verify(rows, VerifyOptions{Against: &Baseline{Name: "them", Rows: release}})
		assert.True(t, errors.Is(err, ErrNoBaseline), "%s: got %+v, %v", name, v, err)
	}
}
