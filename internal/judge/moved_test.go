package judge

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"carronade/internal/layout"
	"carronade/internal/store"
	"carronade/internal/verdict/stats"
	"carronade/test/testkit/assert"
)

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

// A verdict on noisy runs stays if it would be the same with their lower
// values, and its interval includes those.
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
			if r.Field != "response_p99" || r.Verdict != tt.want || r.Widened != tt.widened || (r.Why == movedWords) != (tt.want == stats.Unknown) {
				t.Errorf("%s: got %q (%s), widened %v; want %q, %v", r.Field, r.Verdict, r.Why, r.Widened, tt.want, tt.widened)
			}
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
			assert.Equal(t, strings.Contains(text, movedWords), tt.want == stats.Unknown,
				"the text says why it cannot tell")
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
			if r := rowOf(c, "throughput"); r.Field != "throughput" || r.Verdict != tt.want {
				t.Errorf("%s: got %q (%s), want %q", r.Field, r.Verdict, r.Why, tt.want)
			}
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
