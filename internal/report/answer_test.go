package report

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"carronade/internal/layout"
	"carronade/internal/verdict/trust"
	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// late is a run whose response and end-to-end times other programs moved.
func late(others *trust.Others) Input {
	in := openLoop()
	in.Others = others
	in.Trust = measure.Trust{Level: measure.NotTrusted, Reasons: []string{
		"response p99 5.3 to 54 ms, since the generator was late: its process did not run for 109 ms at 1.28 s (other processes used the processors: a thread waited 109 ms for one); lower the rate, add --clients, or use a faster or quieter machine",
		"end to end p99 5.3 to 72.8 ms, since the generator was late",
	}}
	in.Result.Freezes = measure.Freezes{Count: 1, Longest: []measure.Freeze{{Who: "process", Cause: "other processes used the processors: a thread waited 109 ms for one"}}}
	return in
}

// The first line is the answer, in a word that agrees with the exit code.
func TestAnswer(t *testing.T) {
	holds, broken := Check{Name: "p99 < 20 ms", OK: true, Text: "7 ms"}, Check{Name: "lost = 0", Text: "3"}
	open := Check{Name: "steady", CannotTell: true, Text: "cannot tell: too short"}
	bad := measure.Trust{Level: measure.NotTrusted, Reasons: []string{"the clock was set"}}
	for _, tt := range []struct {
		name   string
		checks []Check
		change func(*Document)
		want   string
	}{
		{"no limits", nil, nil, "DONE"},
		{"holds", []Check{holds}, nil, "PASS  p99 < 20 ms: 7 ms"},
		{"broken", []Check{holds, broken}, nil, "FAIL  lost = 0: 3"},
		{"open", []Check{holds, open}, nil, "CANNOT TELL  steady: too short"},
		{"open and broken", []Check{open, broken}, nil, "FAIL  lost = 0: 3"},
		{"distrust in place of PASS", []Check{holds}, func(d *Document) { d.Trust = bad }, "NOT TRUSTED  the clock was set"},
		{"distrust without limits", nil, func(d *Document) { d.Trust = bad }, "NOT TRUSTED  the clock was set"},
		{"distrust, not in place of FAIL", []Check{broken}, func(d *Document) { d.Trust = bad }, "FAIL  lost = 0: 3"},
		{"interrupted", []Check{broken}, func(d *Document) { d.Stopped, d.Partial, d.Totals.ElapsedS = load.Interrupted, true, 3 }, "INTERRUPTED  after 3 s of the measurement; these are the results until then"},
		{"output", []Check{holds}, func(d *Document) { d.Problems = []string{"the disk is full"} }, "FAIL  the disk is full"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := build(openLoop())
			d.Checks = tt.checks
			if tt.change != nil {
				tt.change(d)
			}
			line, _, _ := strings.Cut(briefly(t, d), "\n")
			assert.Equal(t, line, tt.want)
		})
	}
}

// What others did to a run stands in its first three lines, in one sentence and once.
func TestAnswerBlamesTheMachine(t *testing.T) {
	t.Parallel()
	busy := &trust.Others{Processors: 2, Programs: 0.97, Disturb: true}
	for _, tt := range []struct {
		name   string
		others *trust.Others
		want   string
	}{
		{"seen before the run", busy, "NOT TRUSTED response p99 5.3 to 54 ms: other programs used 97% of the processors; stop them, or use a quieter machine"},
		{"seen in it", nil, "NOT TRUSTED response p99 5.3 to 54 ms: other programs used the processors; use a faster or quieter machine"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			text := briefly(t, build(late(tt.others)))
			first := flat(strings.Join(strings.SplitN(text, "\n", 4)[:3], "\n"))
			assert.True(t, strings.HasPrefix(first, tt.want), "the first three lines are\n%s\nwant\n%s", first, tt.want)
			assert.Equal(t, strings.Count(text, "5.3 to 54 ms"), 1, "mentions of the range in\n%s", text)
			assert.Equal(t, strings.Count(text, "used"), 1, "mentions of the cause in\n%s", text)
		})
	}
	in := openLoop()
	in.Others = busy
	text := flat(briefly(t, build(in)))
	assert.True(t, strings.Contains(text, "machine other programs used 97% of the processors before the run"), "a trusted run does not say it: %s", text)
}

// A report has at most 22 lines if all is well, and 30 otherwise.
func TestBriefLines(t *testing.T) {
	for name, most := range map[string]int{
		"open-loop": 22, "closed-loop": 22, "round-trip": 22, "full-speed": 22, "unacknowledged": 22,
		"untrusted": 30, "interrupted": 30, "losses": 30, "failing": 30, "refused": 30, "died-midway": 30, "system-died": 30, "noisy": 30,
	} {
		t.Run(fmt.Sprintf("%s in %d", name, most), func(t *testing.T) {
			text := briefly(t, build(inputs[name]()))
			assert.True(t, strings.Count(text, "\n") <= most, "%d lines:\n%s", strings.Count(text, "\n"), text)
		})
	}
}

// A run without limits says in its last line why its exit code is 0, and what changes that.
func TestLastLine(t *testing.T) {
	in := openLoop()
	c := &in.Result.Measurement.Counts
	c.Acked, c.Failed = c.Sent/4, c.Sent-c.Sent/4
	for _, tt := range []struct {
		limit, want string
	}{
		{"", "exit code 0: no limit was set; --slo 'failure-rate<1%' makes it 1"},
		{"p99 < 20 ms", "exit code 0: no limit is on failures; --slo 'failure-rate<1%' makes it 1"},
		{"failure-rate < 90%", "pictures      carronade report open k3v9x2ab"},
	} {
		d := build(in)
		if tt.limit != "" {
			d.Checks = []Check{{Name: tt.limit, OK: true, Text: "it holds"}}
		}
		lines := strings.Split(strings.TrimSuffix(briefly(t, d), "\n"), "\n")
		assert.Equal(t, strings.TrimSpace(lines[len(lines)-1]), tt.want, "with the limit %q", tt.limit)
	}
}

// The second rate of the headline is the one that was asked for. If a number of events took less time than they
// would at that rate, the headline says so.
func TestHeadlineTargetRate(t *testing.T) {
	for _, tt := range []struct {
		name          string
		stopped       load.Reason
		events        uint64
		elapsed, rate float64
		want          string
	}{
		{"five events", load.ByEvents, 5, 4, 1, "1.25/s of 1/s acked (5 events within 4 s), "},
		{"all at once", load.ByEvents, 200, 0.025, 200, "8 k/s of 200/s acked (200 events within 25 ms), "},
		{"many", load.ByEvents, 10_000, 10, 1000, "1 k/s of 1 k/s acked, "},
		{"a time", load.ByTime, 4990, 5, 1000, "998/s of 1 k/s acked, "},
		{"killed", load.Killed, 4990, 5, 0, "998/s of 998/s acked, "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := &Document{Mode: load.OpenLoop, Stopped: tt.stopped, Phases: []Phase{{Name: measure.Measurement, Rate: tt.rate}}}
			d.Totals = Totals{RateOf: RateAcked, ElapsedS: tt.elapsed, EventsPerS: float64(tt.events) / tt.elapsed, Counts: measure.Counts{Offered: tt.events, Sent: tt.events, Acked: tt.events}}
			assert.True(t, strings.HasPrefix(d.Headline(), tt.want), "headline %q, want it to begin with %q", d.Headline(), tt.want)
		})
	}
}

// The series says where it begins: all times of a report count from the start of the run, warm-up included. The rate of
// an interval in which a warm-up ended, or two steps met, is that of its parts. One event in the last 2 ms is not 500/s.
func TestSeriesRates(t *testing.T) {
	row := func(at, within float64, arrived uint64) Interval {
		iv := Interval{Phase: measure.Measurement, StartS: at, EndS: at + 1, WithinS: within, Arrived: arrived}
		iv.EventsPerS = float64(arrived) / within
		return iv
	}
	d := &Document{Mode: load.OpenLoop, Phases: []Phase{{Name: measure.Measurement, StartS: 10.5, EndS: 14}}}
	d.Totals.RateOf = RateAcked
	d.Intervals = []Interval{row(10, 0.5, 1000), row(11, 1, 2000), row(12, 0.25, 500), row(12, 0.75, 1500), row(13, 1, 2000), row(14, 0.002, 1)}
	d.Phases[0].EndS, d.Intervals[5].EndS = 14.002, 14.002
	var b strings.Builder
	assert.OK(t, d.Text(&b, layout.Style{ASCII: true}))
	assert.Has(t, strings.Join(strings.Fields(b.String()), " "), "from 10.5 s on", " 2 k/s 2 k/s ")
}

// The conditions say what the default limit of what is in flight is for each of several clients.
func TestConditionsDivideInFlight(t *testing.T) {
	for _, tt := range []struct{ clients, want string }{
		{"1", "max-in-flight 1000"},
		{"8", "max-in-flight 1000 (125 on each connection of 8 clients)"},
	} {
		d := &Document{Settings: []Setting{{Name: "max-in-flight", Value: "1000", Default: true}, {Name: "clients", Value: tt.clients}}}
		got := ""
		for _, c := range d.Conditions() {
			if c.Name == "by default" {
				got = c.Text
			}
		}
		assert.Same(t, got, tt.want)
	}
}

// What the server's output refused stands next to the share that was indexed.
func TestRefusedByTheOutput(t *testing.T) {
	t.Parallel()
	in := underTest()
	d := build(in)
	before, after := 10.0, 175.0
	d.Gauges = append(d.Gauges, Gauge{From: "server", Name: "output failed", Total: true, Before: &before, After: &after})
	assert.True(t, strings.Contains(d.Headline(), "% indexed, the server's output failed for 165 events"), "headline %q", d.Headline())
	var full, brief strings.Builder
	assert.OK(t, d.Text(&full, layout.Style{}))
	assert.OK(t, d.Brief(&brief, layout.Style{}))
	for _, text := range []string{full.String(), brief.String()} {
		assert.True(t, strings.Contains(strings.Join(strings.Fields(text), " "), "the server's output failed for 165 events, which are not indexed"), "got\n%s", text)
	}
}

// A run of which most events have no certain answer fails, whatever limits it has.
func TestMostlyUnknownFails(t *testing.T) {
	for _, tt := range []struct {
		name                     string
		acked, unknown, exitCode int
		change                   func(*load.Result)
	}{
		{"most", 400, 600, 1, nil},
		{"half", 500, 500, 0, nil},
		{"nothing is acknowledged", 0, 1000, 0, func(r *load.Result) { r.Unanswered = true }},
		{"interrupted at once", 0, 1000, 130, func(r *load.Result) {
			r.Stopped, r.Measurement.End = load.Interrupted, r.Measurement.Start+time.Millisecond
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := openLoop()
			m := &in.Result.Measurement
			m.Counts = measure.Counts{Offered: 1000, Sent: 1000, Acked: uint64(tt.acked), Unknown: uint64(tt.unknown)}
			m.Arrived = m.Acked
			if tt.change != nil {
				tt.change(in.Result)
			}
			d := build(in)
			assert.Equal(t, d.ExitCode(), tt.exitCode, "exit code, with the checks %+v", d.Checks)
		})
	}
}

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

// TestBriefHidesNothing: everything that speaks against a run is in the brief report, too, or is counted there.
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

// TestEachReasonOnce: what other programs took stands in the first reason alone, and a warning that says why there is
// nothing comes first, in place of the notice.
func TestEachReasonOnce(t *testing.T) {
	d := build(late(&trust.Others{Processors: 2, Programs: 0.97, Disturb: true}))
	d.Trust.Reasons = append(d.Trust.Reasons, "the generator did not run for 40% of the measurement: its process did not run for 1 s")
	got := strings.Join(d.distrust(d.Trust.Reasons), "; ")
	assert.True(t, strings.Count(got, "other programs used") == 1 && strings.HasSuffix(got, "; the generator did not run for 40% of the measurement"), "got %q", got)
	d.Notice, d.Warnings = "nothing was read", []string{"another", "nothing was read: the topic is empty"}
	first, _ := d.firstPage()
	assert.True(t, first[0].Texts[0] == d.Warnings[1] && !strings.Contains(d.unusual(layout.Style{}), "note"), "got %+v", first)
}
