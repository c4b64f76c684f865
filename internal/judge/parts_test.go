package judge

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"carronade/internal/layout"
	"carronade/test/testkit/assert"
)

func TestParts(t *testing.T) {
	const level, p99 = 50e3, 0.012
	whole := func(scale float64) fields {
		return fields{
			"response_mean": 0.058 * scale, "batching_mean": 0.002 * scale, "queueing_mean": 0.05 * scale, "send_delay_mean": 0.0001 * scale, "service_mean": 0.0049 * scale,
			"batching_p99": 0.005 * scale, "queueing_p99": 0.09 * scale, "send_delay_p99": 0.001 * scale, "service_p99": 0.02 * scale,
		}
	}
	closed := fields{"service_mean": 0.0049, "service_p99": 0.02}
	for _, c := range []struct {
		name            string
		base, candidate fields
		shown           bool
		say             string
	}{
		{"much longer", whole(1), whole(3), true, "Means add up to the response time; percentiles do not. The rest"},
		{"about as long", whole(1), whole(1.05), false, ""},
		{"only one has a response time", whole(1), closed, true, "The candidate has no response time, so it cannot be divided"},
		{"neither has", closed, closed, false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Compare(runs(1, "a", 6, level, p99, 0.01, c.base), runs(2, "b", 6, level, p99, 0.01, c.candidate), CompareOptions{BaseName: "a", CandidateName: "b"})
			assert.OK(t, err)
			list := got.Pairs[0].Parts
			for _, side := range []func(p *Part) *float64{func(p *Part) *float64 { return p.BaseMean }, func(p *Part) *float64 { return p.CandidateMean }} {
				sum := 0.0
				for i := range list {
					if m := side(&list[i]); m != nil && list[i].Time != responseTime {
						sum += *m
					}
				}
				if n := len(list); n > 0 && side(&list[n-1]) != nil && math.Abs(sum-*side(&list[n-1])) > 1e-12 {
					t.Errorf("the parts add up to %g, want %g", sum, *side(&list[n-1]))
				}
			}
			var b bytes.Buffer
			assert.OK(t, got.Text(&b, layout.Style{}))
			text := strings.Join(strings.Fields(b.String()), " ")
			if shown := strings.Contains(text, "of the response"); shown != c.shown || !strings.Contains(text, c.say) {
				t.Errorf("shown %v, want %v, with %q:\n%s", shown, c.shown, c.say, b.String())
			}
			if c.shown && c.candidate["response_mean"] != nil && !strings.Contains(text, "queueing 50 ms 150 ms 90 ms 270 ms") {
				t.Errorf("got\n%s", b.String())
			}
		})
	}
}
