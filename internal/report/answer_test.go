package report

import (
	"fmt"
	"strings"
	"testing"

	"carronade/internal/verdict/trust"
	"carronade/load"
	"carronade/measure"
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
	t.Parallel()
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
			t.Parallel()
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
	t.Parallel()
	for name, most := range map[string]int{
		"open-loop": 22, "closed-loop": 22, "round-trip": 22, "full-speed": 22, "unacknowledged": 22,
		"untrusted": 30, "interrupted": 30, "losses": 30, "failing": 30, "refused": 30, "died-midway": 30, "system-died": 30, "noisy": 30,
	} {
		t.Run(fmt.Sprintf("%s in %d", name, most), func(t *testing.T) {
			t.Parallel()
			text := briefly(t, build(inputs[name]()))
			assert.True(t, strings.Count(text, "\n") <= most, "%d lines:\n%s", strings.Count(text, "\n"), text)
		})
	}
}

// A run without limits says in its last line why its exit code is 0, and what changes that.
func TestLastLine(t *testing.T) {
	t.Parallel()
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
