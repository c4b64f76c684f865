package report

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"carronade/internal/host"
	"carronade/internal/layout"
	"carronade/internal/verdict/find"
	"carronade/internal/verdict/trust"
	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// searched is the report of a search.
func searched() *Document {
	trial := func(role find.Role, rate float64, result find.Result, p99 time.Duration) find.Tried {
		return find.Tried{
			Trial: find.Trial{Role: role, Rate: rate, Measure: 30 * time.Second}, Report: "abcd2345", Achieved: rate,
			Verdict: &find.Verdict{Result: result, Why: "0.3 % took longer than 50 ms"},
			Times:   []find.Quantile{{Of: "response", P: 99, At: p99, Least: p99 / 2, Most: 2 * p99}},
		}
	}
	return &Document{
		Schema: SearchSchema, ID: "f1234567", RunID: "f1234567", Version: "1.0.0", Target: "kafka://127.0.0.1:9092/orders", Op: "produce", Mode: Searching,
		Labels: map[string]string{"find": "f1234567"}, StartedAt: time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC), EndedAt: time.Date(2026, 3, 1, 9, 37, 0, 0, time.UTC),
		Trust:    measure.Trust{OK: true, Level: measure.Trusted},
		Settings: []Setting{{Name: "acks", Value: "all", Independent: true}, {Name: "slo", Value: "p99 < 50 ms", Minor: true, Independent: true}},
		Workload: map[string]any{"acks": "all"}, Facts: map[string]any{"version": "4.1"}, System: &System{Facts: map[string]any{"revision": "abc"}},
		Search: &Search{
			Limits: []string{"p99 < 50 ms"}, Within: []SearchLimit{{Name: "p99 < 50 ms", Of: "response", P: 99, Within: 50 * time.Millisecond}}, Budget: 10 * time.Minute,
			Answer: &find.Answer{
				Ending: find.Found, Holds: 948, HoldsConfirmed: true, Fails: 997, FailsConfirmed: true, Precision: 0.05, Wanted: 0.02, Why: "1.4 % took longer than 50 ms",
				Inversions: []string{"1.1 k/s holds although 997/s fails"},
				Trials:     []find.Tried{trial(find.Search, 500, find.Pass, 5*time.Millisecond), trial(find.Confirm, 948, find.Pass, 30*time.Millisecond), trial(find.Confirm, 997, find.Fail, 90*time.Millisecond)},
				Elapsed:    7 * time.Minute,
			},
		},
	}
}

// The report of a search is written and read like any other, with its hash, and has no numbers of a run.
func TestSearchReadBack(t *testing.T) {
	d := searched()
	assert.OK(t, d.Seal())
	var first bytes.Buffer
	assert.OK(t, d.WriteJSON(&first))
	var fields map[string]any
	assert.OK(t, json.Unmarshal(first.Bytes(), &fields))
	for _, name := range []string{"totals", "intervals", "response", "Search"} {
		_, ok := fields[name]
		assert.True(t, !ok, "it has the field %s", name)
	}
	read, err := Read(&first)
	assert.Must(t, err == nil && read.Check() == nil, "%v, %v", err, read.Check())
	assert.True(t, read.Search != nil && read.Search.Holds == 948 && len(read.Search.Trials) == 3 && read.System.Facts["revision"] == "abc" && read.ID == "f1234567",
		"got %+v", read)
	head := assert.Value(read.Head())(t)
	// Fields of a later program stay, and are part of the hash.
	later := strings.Replace(string(head), `"ending"`, `"later":1,"ending"`, 1)
	read, err = Join([]byte(later), nil)
	assert.True(t, err == nil && read.Check() != nil, "a change was not noticed: %v", err)
	var again bytes.Buffer
	if err := read.WriteJSON(&again); err != nil || !strings.Contains(again.String(), `"later"`) || strings.Contains(again.String(), `"intervals"`) {
		t.Errorf("%v: %s", err, again.String())
	}
	_, err = Join([]byte(`{"schema":"carronade.find/2"}`), nil)
	assert.ErrorHas(t, err, "carronade.find/2")
	_, err = Join([]byte(`{"schema":"carronade.find/1","trials":5}`), nil)
	assert.True(t, err != nil, "trials that are not a list were read")
}

// docs/report.md names every field of an answer.
func TestSearchIsDocumented(t *testing.T) {
	page := assert.Value(os.ReadFile("../../docs/report.md"))(t)
	_, section, _ := strings.Cut(string(page), "## Searches")
	section, _, _ = strings.Cut(section, "\n## ")
	var check func(typ reflect.Type)
	check = func(typ reflect.Type) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct {
			return
		}
		for f := range typ.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			assert.True(t, name == "" || strings.Contains(section, "`"+name+"`"),
				"docs/report.md does not have the field %s of %s", name, typ)
			check(f.Type)
		}
	}
	check(reflect.TypeFor[Search]())
}

// Both forms of the text begin with the answer and fit 80 columns.
func TestSearchText(t *testing.T) {
	d := searched()
	d.Search.Deciding = &find.Deciding{Trials: 5, Noisy: 2}
	var brief, full bytes.Buffer
	assert.OK(t, d.Brief(&brief, layout.Style{}, Condition{Name: "report", Text: "f1234567"}))
	assert.OK(t, d.Text(&full, layout.Style{}))
	for _, text := range []string{brief.String(), full.String()} {
		assert.True(t, strings.HasPrefix(text, "DONE  ceiling 948 to 997/s (p99 < 50 ms)\nlimited by:"), "it begins with %.60s", text)
		assert.Has(t, text, "inversion", "knee", "precision", "trust         of 5 trials that the answer rests on, 2 were noisy", "produce kafka://127.0.0.1:9092/orders, acks all", "holds: 0.3 %")
		for line := range strings.SplitSeq(text, "\n") {
			assert.True(t, layout.Width(line) <= layout.Columns, "%d columns: %s", layout.Width(line), line)
		}
	}
	got := Cite(d)
	assert.True(t, strings.Contains(got, "kafka://127.0.0.1:9092/orders --op produce --acks all --slo 'p99<50ms'") && !strings.Contains(got, "over 0"), "cited as %s", got)
}

// Verdicts are those of a search, also where no ceiling was found.
func TestSearchVerdicts(t *testing.T) {
	for _, tt := range []struct {
		ending  find.Ending
		atLeast float64
		want    string
	}{
		{find.Found, 0, "confirmed: the limits hold at 948/s and fail at 997/s"},
		{find.Found, 900, "holds: at-least: 900/s was asked for, and holds"},
		{find.Found, 999, "BROKEN: at-least: 999/s was asked for, and does not hold"},
		{find.Stopped, 960, "cannot tell: at-least: 960/s was asked for, and is not confirmed"},
		{find.AtLeast, 0, "at least: 1.4 %"},
		{find.Died, 0, "died: 1.4 %"},
		{find.Stopped, 0, "not confirmed: 1.4 %"},
	} {
		d := searched()
		d.Search.Ending, d.Search.AtLeast = tt.ending, tt.atLeast
		got := ""
		for _, v := range d.Verdicts() {
			got += v.Label + ": " + strings.Join(v.Sentences(), "; ") + "\n"
		}
		assert.True(t, strings.Contains(got, tt.want), "%s: got\n%s", tt.ending, got)
	}
}

func TestSearchExitCode(t *testing.T) {
	for _, tt := range []struct {
		a       find.Answer
		atLeast float64
		want    int
	}{
		{find.Answer{Ending: find.Found, Holds: 900, HoldsConfirmed: true, Fails: 950, FailsConfirmed: true}, 0, 0},
		{find.Answer{Ending: find.Found, Holds: 900, HoldsConfirmed: true, Fails: 950, FailsConfirmed: true}, 900, 0},
		{find.Answer{Ending: find.Found, Holds: 900, HoldsConfirmed: true, Fails: 950, FailsConfirmed: true}, 1000, 1},
		{find.Answer{Ending: find.AtLeast, Holds: 900, HoldsConfirmed: true}, 0, 3},
		{find.Answer{Ending: find.AtLeast, Holds: 900, HoldsConfirmed: true}, 800, 0},
		{find.Answer{Ending: find.AtLeast, Holds: 900, HoldsConfirmed: true}, 1000, 3},
		{find.Answer{Ending: find.Stopped, Holds: 900}, 800, 4},
		{find.Answer{Ending: find.Stopped, Holds: 900, HoldsConfirmed: true}, 800, 0},
		{find.Answer{Ending: find.Stopped, Fails: 700, FailsConfirmed: true}, 800, 1},
		{find.Answer{Ending: find.None}, 0, 1},
		{find.Answer{Ending: find.Irregular}, 0, 4},
		{find.Answer{Ending: find.Died, Holds: 900}, 0, 2},
	} {
		assert.Equal(t, (&Search{Answer: &tt.a, AtLeast: tt.atLeast}).ExitCode(), tt.want, "%s, at least %v", tt.a.Ending, tt.atLeast)
	}
}

// What other programs used is what neither the generator nor the system that was watched did, with what was stolen.
func TestOthersOfATrial(t *testing.T) {
	d := trialReport(0)
	d.Totals.ElapsedS = 10
	d.Host = map[string]any{"os": "linux", "cores": 4}
	d.Generator.CPUS = 5
	gauge := func(from, name string, mean, most float64) {
		g := Gauge{From: from, Name: name, Mean: &mean, Max: &most}
		for i := range 45 { // of 100 ms; one second is busy, and a tenth of another is more so
			p := Point{AtS: 0.05 + float64(i)/10, Value: mean}
			switch {
			case i >= 20 && i < 30:
				p.Value = most + 0.5*float64(1-2*(i%2))
			case i == 5:
				p.Value = 4
			}
			g.Points = append(g.Points, p)
		}
		d.Gauges = append(d.Gauges, g)
	}
	gauge("host", "CPU", 2.5, 3.5)
	gauge("host", "steal", 5, 10)
	gauge("system", "CPU", 1.2, 2)
	limits := limitsOf(t, "p99<50ms")
	for _, role := range []find.Role{find.Probe, find.Search} {
		out := TrialOutcome(&find.Options{Times: TimeLimits(limits)}, find.Trial{Role: role, Rate: 100, Measure: 4 * time.Second, Slot: time.Second}, d, limits, time.Second)
		u := out.Others
		assert.True(t, math.Abs(u.Used-1) <= 1e-9 && u.Bound == 4 && math.Abs(out.OthersMost-2) <= 1e-9, "%s: got %+v, at most %v", role, u, out.OthersMost)
	}
	d.Gauges = nil
	u, most := others(d)
	assert.True(t, u.Bound == 0 && most == 0, "got %+v, %v of an unknown machine", u, most)
}

// The report of a search that a busy machine ended is not trusted, and says so.
func TestReportOfABusyMachine(t *testing.T) {
	const why = "this machine is too busy to decide (other programs use 1.9 of 2 processors)"
	d := assert.Value(SearchReport(&Searched{
		ID: "f1234567", Limits: []string{"p99 < 50 ms"}, Of: stored(find.Confirm, 0),
		Answer: &find.Answer{Ending: find.Busy, Why: why, Holds: 900, HoldsConfirmed: true, Trials: []find.Tried{{Report: "abcd2345"}}},
	}))(t)
	assert.True(t, !d.Trust.OK && d.Trust.Level == measure.NotTrusted && d.ExitCode() == host.ExitUntrusted, "got %+v, exit code %d", d.Trust, d.ExitCode())
	assert.True(t, strings.HasPrefix(d.Headline(), "no confirmed ceiling (p99 < 50 ms): "+why+"; 900/s holds; "), "got %q", d.Headline())
	v := d.Search.verdicts()[0]
	assert.True(t, v.Mark == Bad && v.Label == "too busy" && v.Texts[0] == why, "got %+v", v)
}

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
	assert.True(t, !strings.Contains(b.String(), `"intervals"`) && !got.IsRun() && len(got.Steps) == 0, "it has measurements")
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
	cite := Cite(d)
	assert.True(t, strings.HasPrefix(cite, "3 steps in ") && strings.Contains(cite, "jobs/night.js 5k/s 'a b'"), "cited: %s", cite)
	many := aScenario(t)
	for n := 4; n <= 100; n++ {
		many.Scenario.Steps = append(many.Scenario.Steps, ScenarioStep{Number: n, Kind: "run", Exit: host.ExitBroken})
	}
	brief.Reset()
	assert.OK(t, many.Brief(&brief, layout.Style{}))
	assert.True(t, strings.Contains(brief.String(), "and 72 more") && strings.Contains(brief.String(), "97 steps: 4, 5, 6, 7, 8 and 92 more; a limit does not hold"),
		"many steps:\n%s", brief.String())
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

// The report of a scenario whose program was killed has the steps that were stored. Steps that ran side by side keep each other.
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

// screens are first pages that inputs has no run for.
var screens = map[string]func(t *testing.T) *Document{
	"busy": func(*testing.T) *Document {
		return build(late(&trust.Others{Processors: 2, Programs: 0.97, Disturb: true}))
	},
	"limit-open": func(*testing.T) *Document {
		d := build(noisy())
		d.Checks = []Check{{Name: "p99 < 6 ms", CannotTell: true, Text: "5.6 to 7 ms (the generator was late)"}}
		return d
	},
	"mostly-failed": func(*testing.T) *Document {
		in := openLoop()
		c := &in.Result.Measurement.Counts
		c.Acked, c.Failed = c.Sent*29/100, c.Sent*71/100
		d := build(in)
		d.Checks = []Check{{Name: "p99 < 20 ms", OK: true, Text: "7 ms"}}
		return d
	},
	"parts": func(*testing.T) *Document {
		d := build(openLoop())
		for _, name := range []string{"orders", "audit"} {
			d.Parts = append(d.Parts, Part{Name: name, Op: d.Op, Target: d.Target, Share: 0.5, Got: 0.5, Totals: d.Totals, Times: d.Times})
		}
		return d
	},
	"faults": func(*testing.T) *Document {
		d := build(openLoop())
		d.Faults = faulty().Faults
		return d
	},
	"faults-and-stalls": func(*testing.T) *Document {
		d := build(stalled())
		d.Faults, d.Problems = faulty().Faults, []string{"the system ended early"}
		d.Faults.Scores = append(d.Faults.Scores, d.Faults.Scores[0])
		d.Warnings = []string{"the broker created the topic s with 3 partitions: check the name, or use --create-topic to choose them", "another warning"}
		return d
	},
	"fleet": func(*testing.T) *Document {
		d := build(openLoop())
		d.Others = &trust.Others{Machine: "b", Processors: 4, Programs: 0.6, Disturb: true}
		d.Fleet = &Fleet{SkewUS: 420}
		for i, name := range []string{"a", "b"} {
			d.Fleet.Agents = append(d.Fleet.Agents, Agent{
				Name: name, From: 3 * i, To: 3*i + 3, State: "complete", Level: measure.Trusted, ClockBoundUS: 210,
				Counts: measure.Counts{Sent: 500_000, Acked: 500_000}, EventsPerS: 25_000, SendDelayP99: 71, CPUShare: 0.12,
			})
		}
		return d
	},
	"scenario": aScenario,
	"search":   func(*testing.T) *Document { return searched() },
}

// TestScreens: the first pages fit 80 columns, and begin with the answer.
func TestScreens(t *testing.T) {
	for name, of := range screens {
		t.Run(name, func(t *testing.T) {
			d := of(t)
			var b bytes.Buffer
			most := 30
			if name == "parts" { // all is well
				most = 22
			}
			assert.OK(t, d.Brief(&b, layout.Style{}, Condition{"report", "k3v9x2ab in reports.db"}))
			assert.True(t, strings.HasPrefix(b.String(), d.Answer().Word), "it does not begin with the answer:\n%s", b.String())
			assert.True(t, strings.Count(b.String(), "\n") <= most, "%d lines:\n%s", strings.Count(b.String(), "\n"), b.String())
			for line := range strings.Lines(b.String()) {
				assert.True(t, layout.Width(strings.TrimRight(line, "\n")) <= layout.Columns, "wider than 80 columns: %s", line)
			}
			testkit.Golden(t, filepath.Join("testdata", "screens", name+".txt"), b.String())
		})
	}
}

// TestFairness: Jain's index of the shares that parts got acked.
func TestFairness(t *testing.T) {
	part := func(weight float64, offered, acked uint64) Part {
		p := Part{Weight: weight}
		p.Totals.Offered, p.Totals.Acked = offered, acked
		return p
	}
	for _, tt := range []struct {
		name  string
		parts []Part
		want  float64 // 0: none
	}{
		{"none", nil, 0},
		{"all", []Part{part(1, 100, 100), part(9, 900, 900)}, 1},
		{"the same share", []Part{part(1, 100, 50), part(9, 900, 450)}, 1},
		{"one of four", []Part{part(1, 100, 100), part(1, 100, 0), part(1, 100, 0), part(1, 100, 0)}, 0.25},
		{"half as much", []Part{part(1, 100, 100), part(1, 200, 100)}, 0.9},
		{"a part without events", []Part{part(1, 100, 100), part(0, 0, 0), part(1, 200, 100)}, 0.9},
		{"nothing acked", []Part{part(1, 100, 0), part(1, 100, 0)}, 0},
	} {
		got := fairness(tt.parts)
		assert.True(t, (got != nil) == (tt.want > 0) && (got == nil || math.Abs(*got-tt.want) <= 1e-9),
			"%s: %v, want %v", tt.name, got, tt.want)
	}
}

// build makes the report of a made-up run, whose intervals lie in their phases, and that sends nothing in the drain.
func build(in Input) *Document {
	if r := in.Result; r != nil {
		madeWithin(r)
		madeSends(&r.Measurement)
		for i := range r.Steps {
			madeSends(&r.Steps[i])
		}
	}
	return Build(in)
}

func madeSends(t *measure.Tally) {
	if t.Sends == 0 {
		t.Sends, t.SendBytes, t.SendWire, t.Answers = t.Sent, t.Bytes, t.WireBytes, t.Answered
	}
}

func madeWithin(r *load.Result) {
	meet := map[time.Duration]int{} // rows of the same interval
	for i := range r.Intervals {
		meet[r.Intervals[i].Start]++
	}
	for i := range r.Intervals {
		iv := &r.Intervals[i]
		if iv.Within > 0 {
			continue
		}
		if iv.Within = iv.Length() / time.Duration(meet[iv.Start]); iv.Start >= r.Measurement.End && iv.Phase == measure.Measurement {
			iv.Within = 0 // the drain
			continue
		}
		switch {
		case r.Mode == load.Consuming:
			iv.Arrived = iv.Consumed
		case r.Unanswered:
			iv.Arrived = iv.Sent
		default:
			iv.Arrived = iv.Acked
		}
	}
}
