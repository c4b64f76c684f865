package report

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"carronade/internal/host"
	"carronade/internal/layout"
	"carronade/internal/verdict/trust"
	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// diedMidway is a run whose system was gone from second 8 to the end.
func diedMidway() Input {
	in := openLoop()
	r := in.Result
	r.Measurement.Counts.Sent, r.Measurement.Counts.Acked, r.Measurement.Counts.Unsent = 300_000, 300_000, 700_000
	r.Measurement.Arrived, r.Measurement.ArrivedBytes = 300_000, 30_000_000
	r.Measurement.Censored = spread(7*time.Second, 0.4, 700)
	for i := range r.Intervals {
		if i >= 8 {
			iv := &r.Intervals[i]
			iv.Counts = measure.Counts{Offered: 50_000}
			iv.Response, iv.Service, iv.InFlight = nil, nil, 0
		}
	}
	r.Stall = measure.Stall{Longest: 24 * time.Second, LongestAt: 8 * time.Second, Share: 0.7}
	r.Steady = trust.Steady(r)
	return in
}

// refused is a run of which the system accepted nothing, with a late generator.
func refused() Input {
	in := openLoop()
	r := in.Result
	r.Measurement.Counts.Acked, r.Measurement.Counts.Failed, r.Measurement.Counts.Answered = 0, 1_000_000, 4000
	r.Measurement.Arrived, r.Measurement.ArrivedBytes = 0, 0
	r.Measurement.FailedService = r.Measurement.Service
	r.Measurement.Response, r.Measurement.Service = nil, nil
	r.Warmup.Acked, r.Warmup.Failed = 0, r.Warmup.Acked
	r.Failures = []measure.Failure{{Class: "denied", Text: "TOPIC_AUTHORIZATION_FAILED: Not authorized to access topics: [Topic authorization failed.]", Events: 1_100_000, Batches: 4400}}
	r.Classes = map[string]uint64{"denied": 1_100_000}
	for i := range r.Intervals {
		iv := &r.Intervals[i]
		iv.Acked, iv.Failed, iv.Response, iv.Service = 0, iv.Sent, nil, nil
	}
	r.Steady = trust.Steady(r)
	return in
}

// TestTheSystemComesFirst: if the system failed, the headline begins with that,
// and so do the verdicts, before the one on the generator.
func TestTheSystemComesFirst(t *testing.T) {
	noticed := func(in Input) Input {
		in.Notice = "the broker created the topic"
		return in
	}
	for _, tt := range []struct {
		name     string
		in       Input
		sentence string
		line     string // before the verdict on trust
		code     int
	}{
		{"died midway", diedMidway(), "nothing was answered from second 8 to second 22: 15 k/s of 50 k/s acked", "not steady", host.ExitOK},
		{"refused", refused(), "the system accepted no event: 0/s of 50 k/s acked", "BROKEN        taken: the system accepted no event: 1,000,000 failed", host.ExitBroken},
		{"calm", openLoop(), "50 k/s of 50 k/s acked", "", host.ExitOK},
		{"noticed", noticed(openLoop()), "the broker created the topic: 50 k/s of 50 k/s acked", "", host.ExitOK},
		{"noticed, but refused", noticed(refused()), "the system accepted no event: 0/s of 50 k/s acked", "", host.ExitBroken},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := build(tt.in)
			got := d.Headline()
			assert.True(t, strings.HasPrefix(got, tt.sentence), "got %q, want it to begin with %q", got, tt.sentence)
			var b bytes.Buffer
			assert.OK(t, d.Text(&b, layout.Style{}))
			first, _, _ := strings.Cut(b.String(), "trusted ")
			assert.True(t, strings.Contains(first, tt.line), "%q does not come before trust:\n%.600s", tt.line, b.String())
			assert.True(t, strings.Count(b.String(), "not steady ") <= 1 && strings.Count(b.String(), "taken: ") <= 1,
				"repeated:\n%.900s", b.String())
			assert.Equal(t, d.ExitCode(), tt.code, "exit")
			if d.Mode != load.OpenLoop || len(d.Limits()) != 0 {
				t.Errorf("limits: %+v", d.Limits())
			}
		})
	}
}
