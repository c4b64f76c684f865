package report

import (
	"strings"
	"testing"
	"time"

	"carronade/internal/host"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// first returns the labels and sentences of the verdicts before the one on trust.
func first(d *Document) string {
	var out []string
	for _, v := range d.Verdicts() {
		if v.On == OnTrust {
			break
		}
		out = append(out, v.Label+" "+strings.Join(v.Sentences(), " "))
	}
	return strings.Join(out, "\n")
}

// TestNeverStored: with acks, events that were neither acked nor found are not lost, and the
// report says that an application loses them.
func TestNeverStored(t *testing.T) {
	for _, c := range []struct {
		name                     string
		recovered, retries, lost uint64
		want                     string
	}{
		{"all found", 40, 0, 0, ""},
		{"some missing", 5, 0, 0, "MISSING 35 of 40,000 events were never acked and never stored: without retries an application loses them"},
		{"despite retries", 5, 7, 0, "MISSING 35 of 40,000 events were never acked and never stored: an application that retries as often loses them"},
		{"lost", 40, 0, 3, "BROKEN verify: 3 events lost, 40 recovered"},
	} {
		in := openLoop()
		r := in.Result
		counts := measure.Counts{Offered: 40_000, Sent: 40_000, Acked: 39_960, Failed: 30, Unknown: 10, Retries: c.retries}
		r.Warmup, r.Drain = measure.Tally{}, measure.Tally{}
		r.Measurement.Counts = counts
		in.Ledger = &measure.Ledger{Acked: 39_960, Read: 39_960 + c.recovered, Recovered: c.recovered, Lost: c.lost, Complete: true}
		d := build(in)
		assert.Equal(t, first(d), c.want, "%s", c.name)
		code := host.ExitOK
		if c.lost > 0 {
			code = host.ExitBroken
		}
		d.Trust.OK = c.lost == 0 // a loss goes before what the generator did
		assert.Equal(t, d.ExitCode(), code, "%s: exit", c.name)
	}
}

// TestMostlyFailed: if most events failed, the report says so, and why, before anything else.
func TestMostlyFailed(t *testing.T) {
	for _, c := range []struct {
		failed uint64
		want   string
	}{
		{8, "failed 8 of 10 events were not accepted: too-large (MESSAGE_TOO_LARGE: The message is too large.)"},
		{5, ""},
	} {
		in := openLoop()
		r := in.Result
		r.Intervals = r.Intervals[:1]
		r.Measurement.Counts = measure.Counts{Offered: 10, Sent: 10, Acked: 10 - c.failed, Failed: c.failed}
		r.Classes = map[string]uint64{"too-large": c.failed, "timeout": 1}
		r.Failures = []measure.Failure{{Class: "timeout", Text: "late"}, {Class: "too-large", Text: "MESSAGE_TOO_LARGE: The message is too large."}}
		in.Trust = measure.Trust{Reasons: []string{"the generator was late"}}
		assert.Equal(t, first(build(in)), c.want, "%d failed", c.failed)
	}
}

// TestNoLimit: a run without a limit whose events failed, or that had an outage, says why its exit code
// is 0, and which limit changes that.
func TestNoLimit(t *testing.T) {
	failing := func(failed uint64, change func(in *Input)) *Document {
		in := openLoop()
		in.Trust = measure.Trust{OK: true, Level: measure.Trusted}
		in.Result.Measurement.Counts = measure.Counts{Offered: 1000, Sent: 1000, Acked: 1000 - failed, Failed: failed}
		if change != nil {
			change(&in)
		}
		return build(in)
	}
	const failures, steady = "0: no limit was set; --slo 'failure-rate<1%' makes it 1", "0: no limit was set; --slo steady makes it 1"
	died := diedMidway()
	died.Trust = measure.Trust{OK: true, Level: measure.Trusted}
	limit := func(text string) func(in *Input) { return func(in *Input) { in.Limits = limitsOf(t, text) } }
	onTopics := failing(100, nil)
	onTopics.Op = TopicsOp + "list"
	for _, c := range []struct {
		name string
		d    *Document
		want string
		code int
	}{
		{"a tenth", failing(100, nil), failures, host.ExitOK},
		{"less", failing(99, nil), "", host.ExitOK},
		{"an outage", build(died), steady, host.ExitOK},
		{"a limit that holds", failing(100, limit("failure-rate<20%")), "", host.ExitOK},
		{"the limit that it names", failing(100, limit("failure-rate<1%")), "", host.ExitBroken},
		{"not trusted", failing(100, func(in *Input) { in.Trust.OK = false }), "", host.ExitUntrusted},
		{"a trial of a search", failing(100, func(in *Input) { in.Labels = map[string]string{SearchLabel: "s1"} }), "", host.ExitOK},
		{"a load on topics", onTopics, "", host.ExitOK},
	} {
		got := ""
		for _, v := range c.d.Verdicts() {
			if v.Label == "exit code" {
				got = strings.Join(v.Texts, "; ")
			}
		}
		if got != c.want || c.d.ExitCode() != c.code {
			t.Errorf("%s: got %q and exit code %d, want %q and %d", c.name, got, c.d.ExitCode(), c.want, c.code)
		}
	}
}

// TestOutageText: an outage has a beginning, a length, a cost, and an end of its consequences.
func TestOutageText(t *testing.T) {
	row := func(i int, p99 time.Duration, c measure.Counts) Interval {
		iv := Interval{Phase: measure.Measurement, StartS: float64(i), EndS: float64(i + 1), Counts: c}
		if p99 > 0 {
			iv.Response = measure.Summarize(histogram(100, p99, p99, 0), nil, nil)
		}
		return iv
	}
	const ms = time.Millisecond
	for _, c := range []struct {
		name string
		p99  []time.Duration // of each second; the outage is from second 3 to 5
		want string
	}{
		{"back", []time.Duration{5 * ms, 6 * ms, 5 * ms, 0, 0, 900 * ms, 300 * ms, 9 * ms, 5 * ms}, "it began at 3 s and lasted 2 s; in it 20 failed, 8 without an answer; p99 was back at 7 s, 2 s after its end (before it 5 ms)"},
		{"never back", []time.Duration{5 * ms, 6 * ms, 5 * ms, 0, 0, 900 * ms, 300 * ms}, "it began at 3 s and lasted 2 s; in it 20 failed, 8 without an answer; p99 was not back to its value before (5 ms) when the run ended"},
	} {
		d := &Document{Steady: measure.Steady{Outage: "x", OutageAt: 3, OutageLength: 2}}
		for i, p := range c.p99 {
			counts := measure.Counts{Acked: 100}
			if p == 0 {
				counts = measure.Counts{Failed: 10, Unknown: 4}
			}
			d.Intervals = append(d.Intervals, row(i, p, counts))
		}
		assert.Equal(t, d.outageText(), c.want, "%s", c.name)
	}
	if got := (&Document{Steady: measure.Steady{Outage: "x"}}).outageText(); got != "" { // an older report
		t.Errorf("got %q without a time", got)
	}
}
