package report

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"carronade/internal/host"
	"carronade/internal/layout"
	"carronade/load"
	"carronade/test/testkit/assert"
)

// aScenario is the report of a scenario with one step of each outcome.
func aScenario(t *testing.T) *Document {
	t.Helper()
	at := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)
	d := &Document{
		Schema: ScenarioSchema, ID: "s1234567", RunID: "s1234567", Version: "devel", Target: "night.js", Op: "scenario", Mode: InScenario,
		StartedAt: at, EndedAt: at.Add(90 * time.Second), Stopped: ByScript, HostText: "a machine",
		Scenario: &Scenario{
			Script: "jobs/night.js", Args: []string{"5k/s", "a b"}, Seed: 7,
			Steps: []ScenarioStep{
				{Number: 1, Name: "fill", Kind: "run", At: "jobs/night.js:3:10", Target: "null://", Op: "produce", EndS: 10, Report: "aaaaaaaa", Hash: "00", EventsPerS: 5000, Result: "5,000/s acked"},
				{Number: 2, Kind: "run", At: "jobs/night.js:4:10", Target: "null://", StartS: 10, EndS: 20, Report: "bbbbbbbb", Exit: host.ExitUntrusted, EventsPerS: 10, Result: "10/s acked"},
				{Number: 3, Name: "gone", Kind: "find", At: "jobs/night.js:5:10", Target: "null://", StartS: 20, EndS: 21, Exit: host.ExitFailed, Fault: &ScenarioFault{At: "jobs/night.js:5:10", Text: "it is gone", Hint: "look for it"}},
			},
			Checks: []ScenarioCheck{
				{Check: Check{Name: "p99 < 50 ms", OK: true, Text: "12 ms"}, At: "jobs/night.js:6:1", Report: "aaaaaaaa", Step: 1},
				{Check: Check{Name: "failed = 0", Text: "3"}, At: "jobs/night.js:7:1", Report: "cccccccc"},
			},
			Marks: []ScenarioMark{{TimeS: 10, At: "jobs/night.js:4:1", Text: "the broker restarts"}, {TimeS: 30, At: "jobs/night.js:8:1", Text: "the end"}},
		},
	}
	assert.OK(t, d.Seal())
	return d
}

// The report of a scenario is written and read without a change, and its hash covers the steps.
func TestScenarioIsReadAgain(t *testing.T) {
	d := aScenario(t)
	var b bytes.Buffer
	assert.OK(t, d.WriteJSON(&b))
	got := assert.Value(Read(bytes.NewReader(b.Bytes())))(t)
	assert.OK(t, got.Check())
	assert.NoDiff(t, cmp.Diff(d.Scenario, got.Scenario, cmp.AllowUnexported(Check{})))
	assert.True(t, !strings.Contains(b.String(), `"intervals"`) && !got.IsRun() && len(got.Steps) == 0,
		"it has measurements")
	other := assert.Value(Read(strings.NewReader(strings.Replace(b.String(), `"fill"`, `"feel"`, 1))))(t)
	assert.True(t, other.Check() != nil, "another name of a step has the same hash")
}

func TestScenarioText(t *testing.T) {
	d := aScenario(t)
	var brief, full bytes.Buffer
	assert.OK(t, d.Brief(&brief, layout.Style{}))
	assert.OK(t, d.Text(&full, layout.Style{}))
	for _, want := range []string{
		"scenario jobs/night.js 5k/s a b",
		"3 steps in 1m30s, 2 of them did not end well, 1 of 2 checks not met",
		"failed        1 step: 3 gone; could not be done",
		"doubt         1 step: 2; not trusted: the generator was the limit",
		"holds         p99 < 50 ms: 12 ms (step 1)",
		"BROKEN        failed = 0: 3 (report cccccccc)",
		"the script came to its end",
		"it is gone",
		"mark", "at 10 s: the broker restarts",
	} {
		assert.True(t, strings.Contains(brief.String(), want) && strings.Contains(full.String(), want),
			"the text lacks %q:\n%s", want, brief.String())
	}
	for line := range strings.Lines(brief.String()) {
		assert.True(t, layout.Width(strings.TrimRight(line, "\n")) <= layout.Columns, "a line is too long: %q", line)
	}
	if cite := Cite(d); !strings.HasPrefix(cite, "3 steps in ") || !strings.Contains(cite, "jobs/night.js 5k/s 'a b'") {
		t.Errorf("cited: %s", cite)
	}
	many := aScenario(t)
	for n := 4; n <= 100; n++ {
		many.Scenario.Steps = append(many.Scenario.Steps, ScenarioStep{Number: n, Kind: "run", Exit: host.ExitBroken})
	}
	brief.Reset()
	assert.OK(t, many.Brief(&brief, layout.Style{}))
	if !strings.Contains(brief.String(), "and 72 more") || !strings.Contains(brief.String(), "97 steps: 4, 5, 6, 7, 8 and 92 more; a limit does not hold") {
		t.Errorf("many steps:\n%s", brief.String())
	}
}

func TestScenarioExitCode(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(d *Document)
		want   int
	}{
		{"the worst step", func(*Document) {}, host.ExitFailed},
		{"a check", func(d *Document) { d.Scenario.Steps = d.Scenario.Steps[:2] }, host.ExitBroken},
		{"a check that cannot tell", func(d *Document) {
			d.Scenario.Steps, d.Scenario.Checks[1].CannotTell = d.Scenario.Steps[:1], true
		}, host.ExitCannotTell},
		{"trust", func(d *Document) { d.Scenario.Steps, d.Scenario.Checks = d.Scenario.Steps[:2], nil }, host.ExitUntrusted},
		{"nothing", func(d *Document) { d.Scenario.Steps, d.Scenario.Checks = d.Scenario.Steps[:1], nil }, host.ExitOK},
		{"a fault", func(d *Document) {
			d.Scenario.Steps, d.Scenario.Checks, d.Scenario.Fault = nil, nil, &ScenarioFault{Text: "no"}
		}, host.ExitFailed},
		{"an interruption", func(d *Document) { d.Stopped = load.Interrupted }, host.ExitInterrupted},
	} {
		d := aScenario(t)
		tt.change(d)
		assert.Equal(t, d.ExitCode(), tt.want, "%s", tt.name)
	}
}

// The report of a scenario whose program was killed has the steps that were stored. Steps that ran
// side by side keep each other.
func TestScenarioIsAssembled(t *testing.T) {
	d := aScenario(t)
	want := d.Scenario.Steps
	want[1].StartS, want[1].EndS = 2, 5 // within the first one
	var rows [][]byte
	phases := map[string]bool{}
	for _, i := range []int{1, 0, 2} {
		e := assert.Value(EncodeStep(&want[i]))(t)
		assert.True(t, !phases[e.Phase] && e.StartS == want[i].StartS && e.EndS == want[i].EndS, "step %d replaces another: %+v", i+1, e)
		phases[e.Phase] = true
		rows = append(rows, e.JSON)
	}
	checks, marks := d.Scenario.Checks, d.Scenario.Marks
	for i := range checks {
		e, err := EncodeCheck(i+1, &checks[i])
		assert.True(t, err == nil && !phases[e.Phase], "check %d: %v, %+v", i+1, err, e)
		phases[e.Phase] = true
		rows = append(rows, e.JSON)
	}
	for i := range marks {
		e, err := EncodeMark(i+1, &marks[i])
		assert.True(t, err == nil && !phases[e.Phase] && e.StartS == marks[i].TimeS, "mark %d: %v, %+v", i+1, err, e)
		phases[e.Phase] = true
		rows = append(rows, e.JSON)
	}
	d.Scenario.Steps, d.Scenario.Checks, d.Scenario.Marks = []ScenarioStep{}, []ScenarioCheck{}, nil
	head := assert.Value(d.Head())(t)
	read := assert.Value(Join(head, append(rows, []byte(`{"phase":"another program's"}`))))(t)
	got := Assemble(read, read.Intervals)
	assert.Same(t, got.Scenario.Steps, want, "steps")
	assert.NoDiff(t, cmp.Diff(checks, got.Scenario.Checks, cmp.AllowUnexported(Check{})), "checks")
	assert.Same(t, got.Scenario.Marks, marks, "marks")
	if err := got.Check(); err != nil || got.Stopped != load.Killed || !got.Partial || len(got.Intervals) > 0 || got.EndedAt.Sub(got.StartedAt) < 21*time.Second {
		t.Errorf("%v: got %s, %v, %d intervals, %v to %v", err, got.Stopped, got.Partial, len(got.Intervals), got.StartedAt, got.EndedAt)
	}
}
