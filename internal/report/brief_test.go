package report

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"carronade/internal/layout"
	"carronade/internal/verdict/trust"
	"carronade/measure"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

func briefly(t *testing.T, d *Document) string {
	t.Helper()
	var b bytes.Buffer
	assert.OK(t, d.Brief(&b, layout.Style{}, Condition{"report", "k3v9x2ab in reports.db"}, Condition{"everything", "carronade report show k3v9x2ab --full"}, Condition{"pictures", "carronade report open k3v9x2ab"}))
	return b.String()
}

// flat is a text in one line, to find sentences that were wrapped.
func flat(s string) string { return strings.Join(strings.Fields(s), " ") }

// TestBriefFits: the brief report fits 22 lines of 80 columns if all is well, else 30, and begins with the answer.
func TestBriefFits(t *testing.T) {
	for name, input := range inputs {
		t.Run(name, func(t *testing.T) {
			d := build(input())
			text := briefly(t, d)
			lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
			most := 30
			if (d.Answer().Word == Passed || d.Answer().Word == Done) && d.unusual(layout.Style{}) == "" && d.TrustLevel() == measure.Trusted {
				most = 22
			}
			assert.True(t, len(lines) <= most, "%d lines, want %d at most:\n%s", len(lines), most, text)
			for i, l := range lines {
				assert.True(t, layout.Width(l) <= layout.Columns, "line %d has %d columns: %q", i+1, layout.Width(l), l)
			}
			assert.True(t, strings.HasPrefix(lines[0], d.Answer().Word), "the first line is %q, want the answer", lines[0])
		})
	}
}

// TestBriefHidesNothing: everything that speaks against a run is in the brief
// report, too, or is counted there.
func TestBriefHidesNothing(t *testing.T) {
	for name, input := range inputs {
		t.Run(name, func(t *testing.T) {
			d := build(input())
			d.Warnings = append(d.Warnings, "one more")
			text, missing, left := flat(briefly(t, d)), 0, 0
			if _, rest, some := strings.Cut(text, " and "); some {
				_, _ = fmt.Sscanf(rest, "%d more with --full", &left)
			}
			for _, want := range slices.Concat(d.Warnings, d.Problems, d.Trust.Reasons, d.Trust.Doubts, d.Trust.Notes) {
				if d.TrustLevel() == measure.NotTrusted && slices.Contains(d.Trust.Doubts, want) {
					continue
				}
				want, _, _ = strings.Cut(want, ": its ") // what the generator did is in the complete report
				want, _, _ = strings.Cut(want, trust.Late)
				if !strings.Contains(text, flat(layout.Clean(want))) {
					missing++
					assert.True(t, missing <= left, "no %q in\n%s", want, text)
				}
			}
		})
	}
}

// TestBriefSays: the brief report of each kind of run has what users look for.
func TestBriefSays(t *testing.T) {
	testkit.Need(t, "a second")
	for _, tt := range []struct {
		name        string
		says, never []string
	}{
		{"open-loop", []string{
			"produce kafka://127.0.0.1:9092/bench, rate 50000/s, for 20s, warmup 2s", "50 k/s of 50 k/s acked, 4.77 MiB/s, response p99 7.00 ms, no failures",
			"response 3.10 ms 4.86 ms 7.00 ms 9.10 ms 12.1 ms from due to its answer",
			"everything carronade report show k3v9x2ab --full",
		}, []string{"by default", "Generator", "Ledger", "stall", "trusted", "steady"}},
		{"stalled", []string{"no failures, 2 stalls", "stalls 2, 10.5% of the measurement; longest 1.1 s (at 14.5 s)"}, nil},
		{"overloaded", []string{"12,345 failed, 7,655 unknown", "timeout: 12,000 events in 50 batches: REQUEST_TIMED_OUT", "10 lost", "FAIL dropped = 0: 4,000; verify: 10 events lost", ">= is a lower bound"}, nil},
		{"failing", []string{"19,990 failed, 10 unknown", "timeout: 10 events", "throttled: 19,990 events in 80 batches", "FAIL failure-rate", "retries 80, of 4,000 batches"}, []string{"10 unknown, 0"}},
		{"untrusted", []string{"NOT TRUSTED response p99 5.6 to 7 ms: the generator stood still (stopped and continued); use a faster or quieter machine"}, []string{"trusted the generator kept up", "freezes"}},
		{"losses", []string{"137 lost", "FAIL verify: 137 events lost", "Ledger", "bench-0"}, []string{"bench-1"}},
		{"round-trip", []string{"ledger 1,000,000 acked, 1,000,000 read back: each once and in order", "end to end 5.00 ms"}, []string{"duplicated", "Ledger"}},
		{"consume", []string{"1.9 M/s consumed, 181 MiB/s, 1,000,000 missing", "rebalancing 310 ms", "lag 6,370,000 events in 14 logs at the end, most in bench-n (910,000)"}, []string{"Times", "in flight"}},
		{"closed-loop", []string{"concurrency 16, for 20s", "service p99 2.15 ms", "a closed loop has no schedule"}, []string{"response p99"}},
		{"unacknowledged", []string{"50 k/s of 50 k/s sent", "nothing is acknowledged, the server counted", "send delay"}, []string{"in flight"}},
		{"steps", []string{"4 steps, at most 60 k/s of 80 k/s acked", "Steps"}, []string{"Times"}},
		{"system-died", []string{"NOT TRUSTED the system under test ended by itself", "out of memory"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := briefly(t, build(inputs[tt.name]()))
			assert.Has(t, flat(text), tt.says...)
			for _, not := range tt.never {
				assert.True(t, !strings.Contains(flat(text), not), "it says %q:\n%s", not, text)
			}
		})
	}
}

// The workload is cut if there is too little room, and shows that.
func TestLoadInFewWords(t *testing.T) {
	d := &Document{Settings: []Setting{
		{Name: "op", Value: "produce"}, {Name: "verify", Value: "true"}, {Name: "size", Value: "100"}, {Name: "rate", Value: "10k/s"}, {Name: "linger", Value: "5ms", Default: true},
	}}
	for _, tt := range []struct {
		columns int
		want    string
	}{{80, "rate 10k/s, size 100, verify"}, {27, "rate 10k/s, size 100, ..."}, {15, "rate 10k/s, ..."}, {3, ""}} {
		assert.Equal(t, d.Load(tt.columns), tt.want, "%d columns", tt.columns)
	}
}
