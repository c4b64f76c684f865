package report

import (
	"strings"
	"testing"
	"time"

	"carronade/internal/layout"
	"carronade/internal/verdict/find"
	"carronade/internal/workload"
	"carronade/test/testkit/assert"
)

// TestBand: the band of each report has the word and the color of its answer, three to five numbers (two, if
// nothing was measured), and no number that wraps.
func TestBand(t *testing.T) {
	for name, input := range inputs {
		t.Run(name, func(t *testing.T) {
			d := build(input())
			b := d.Band()
			a := d.Answer()
			assert.Equal(t, b.Word+" "+b.Mark, a.Word+" "+a.Mark.Name(), "the answer")
			assert.True(t, b.Text != "" && len(b.Facts) >= 2 && len(b.Facts) <= MostFacts && len(b.Notes) <= MostNotes, "band: %+v", b)
			for _, f := range b.Facts {
				assert.True(t, f.Name != "" && f.Value != "" && layout.Width(f.Value) <= 16, "fact: %+v", f)
			}
			assert.True(t, b.More == 0 || len(b.Notes) == MostNotes, "%d more after %d", b.More, len(b.Notes))
		})
	}
}

// TestBandFacts: the numbers of bands, with their limits.
func TestBandFacts(t *testing.T) {
	withLimit := func(in Input, text string) *Document {
		l := assert.Value(workload.ParseLimit(text))(t)
		in.Limits = []workload.Limit{l}
		return build(in)
	}
	search := &Document{Search: &Search{
		Within: []SearchLimit{{Name: "p99 < 50 ms", Of: "response", P: 99, Within: 50 * time.Millisecond}}, AtLeast: 900,
		Answer: &find.Answer{
			Ending: find.Found, Holds: 948, HoldsConfirmed: true, Fails: 997, FailsConfirmed: true, Elapsed: time.Minute,
			Trials: []find.Tried{{Trial: find.Trial{Rate: 948, Measure: time.Second}, Achieved: 948, Verdict: &find.Verdict{Result: find.Pass}, Times: []find.Quantile{{Of: "response", P: 99, At: 20 * time.Millisecond}}}},
		},
	}}
	scenario := &Document{Scenario: &Scenario{Steps: []ScenarioStep{{}, {Exit: 1}}, Checks: []ScenarioCheck{{Check: Check{OK: true}}}}}
	for _, tt := range []struct {
		name string
		d    *Document
		want string
	}{
		{"a limit that holds", withLimit(openLoop(), "p99<20ms"), "acked: 50 k/s (100% of 50 k/s); response p99: 7.00 ms (limit 20 ms) good; failures and losses: 0 (of 1,000,000 events) good; measurement: trusted (the generator kept up) good"},
		{"one that does not, on another percentile", withLimit(stalled(), "p99.9<5ms"), "acked: 50 k/s (100% of 50 k/s); response p99.9: 900 ms (limit 5 ms) bad; failures and losses: 0 (of 1,000,000 events) good; measurement: trusted (the generator kept up) good"},
		{"failures", build(failing()), "acked: 49 k/s (98% of 50 k/s); response p99: 7.00 ms (max 12.1 ms); failures and losses: 20 k (19,990 failed, 10 unknown) bad; measurement: trusted (the generator kept up) good"},
		{"a time that may be too long", withLimit(noisy(), "p99<6ms"), "acked: 50 k/s (100% of 50 k/s); response p99: 5.6 to 7 ms (limit 6 ms) open; failures and losses: 0 (of 1,000,000 events) good; measurement: noisy (p99: up to 1.40 ms from this machine) caution"},
		{"a search", search, "ceiling: 948 to 997/s (confirmed); asked for: 900/s (holds) good; response p99 at 948/s: 20.0 ms (limit 50 ms) good; trials: 1 (in 1m00s)"},
		{"a scenario", scenario, "steps: 1 of 2 (ended well) bad; checks: 1 of 1 (met) good; time: 0 s ()"},
	} {
		var got []string
		for _, f := range tt.d.Band().Facts {
			got = append(got, strings.TrimSpace(f.Name+": "+f.Value+" ("+f.Note+") "+f.Mark))
		}
		assert.Equal(t, strings.Join(got, "; "), tt.want, "%s", tt.name)
	}
}

// TestLineOf: a limit on a percentile of a time is a line in that time's charts.
func TestLineOf(t *testing.T) {
	for text, want := range map[string]LimitLine{
		"p99<20ms":            {Text: "p99 < 20 ms", Time: "response", Percentile: 99, Name: "p99", Upper: true, Value: 0.02},
		"service.max<=1s":     {Text: "service.max <= 1 s", Time: "service", Percentile: 100, Name: "service.max", Upper: true, Value: 1},
		"throughput>=10k/s":   {Text: "throughput >= 10 k/s", Name: "throughput", Value: 10000},
		"send-delay.p99<10ms": {Text: "send-delay.p99 < 10 ms", Time: "send_delay", Percentile: 99, Name: "send-delay.p99", Upper: true, Value: 0.01},
	} {
		l := assert.Value(workload.ParseLimit(text))(t)
		assert.Same(t, LineOf(&l, "response"), want, "%s", text)
	}
}
