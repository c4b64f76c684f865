//go:build unix

package cli_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"carronade/internal/cli"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// A scenarioReport is what the tests read of the report of a scenario.
type scenarioReport struct {
	Schema   string `json:"schema"`
	ID       string `json:"id"`
	Stopped  string `json:"stopped"`
	Partial  bool   `json:"partial"`
	Scenario struct {
		Steps []struct {
			Number int     `json:"number"`
			Name   string  `json:"name"`
			Report string  `json:"report"`
			Exit   int     `json:"exit"`
			StartS float64 `json:"start_s"`
			EndS   float64 `json:"end_s"`
		} `json:"steps"`
		Checks []struct {
			At string `json:"at"`
			OK bool   `json:"ok"`
		} `json:"checks"`
		Marks []struct {
			At   string `json:"at"`
			Text string `json:"text"`
		} `json:"marks"`
		Fault *struct {
			At   string `json:"at"`
			Text string `json:"text"`
		} `json:"fault"`
	} `json:"scenario"`
}

func (r *scenarioReport) steps() (out []string) {
	for _, s := range r.Scenario.Steps {
		if s.Report != "" {
			out = append(out, s.Name)
		}
	}
	return out
}

func startScenario(t *testing.T, source string, args ...string) (p *process, store string) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "test.js")
	assert.OK(t, os.WriteFile(path, []byte(source), 0o600))
	store = filepath.Join(dir, "reports.db")
	return startTrusted(t, append([]string{"scenario", path, "--store", store}, args...)...), store
}

// stored exports reports as JSON.
func stored(t *testing.T, store, reference string, into any) {
	t.Helper()
	out := assert.Value(exec.Command(carronade(t), "report", "export", reference, "--as", "json", "--store", store).Output())(t)
	assert.OK(t, json.Unmarshal(out, into), "%s", out)
}

// scenarioIn is the report of the only scenario in a store.
func scenarioIn(t *testing.T, store string) (r scenarioReport) {
	t.Helper()
	out := assert.Value(exec.Command(carronade(t), "report", "list", "mode=scenario", "--json", "--store", store).Output())(t)
	ids := regexp.MustCompile(`"id": ?"([a-z0-9]+)"`).FindSubmatch(out)
	assert.Must(t, ids != nil, "no scenario in %s", out)
	stored(t, store, string(ids[1]), &r)
	return r
}

const threeSteps = `import { run, check, mark } from "carronade";
await run("null://", { name: "one", count: 10 });
check(await run("null://", { name: "two", count: 10 }), "failed=0", "service.p50<1ns");
mark("two ended");
console.log("here");
await run("null://", { name: "three", rate: "100/s", interval: "50ms" });
`

// When the program is killed in the third step, the scenario has the first two, and so has the
// store, with the checks and marks between them.
func TestScenarioKilled(t *testing.T) {
	t.Parallel()
	p, store := startScenario(t, threeSteps)
	p.until(t, "step 3 three")
	p.until(t, "no limit was given")
	assert.OK(t, p.Process.Kill())
	_ = p.Wait()
	r := scenarioIn(t, store)
	assert.True(t, r.Schema == "carronade.scenario/1" && r.Stopped == "killed" && r.Partial &&
		slices.Equal(r.steps(), []string{"one", "two"}), "got %+v", r)
	c := r.Scenario.Checks
	assert.True(t, len(c) == 2 && c[0].OK && !c[1].OK && strings.HasSuffix(c[0].At, "test.js:3:6"), "the checks are %+v", c)
	m := r.Scenario.Marks
	assert.True(t, len(m) == 1 && m[0].Text == "two ended" && strings.HasSuffix(m[0].At, "test.js:4:5"), "the marks are %+v", m)
	for _, s := range r.Scenario.Steps {
		var d reported
		if stored(t, store, s.Report, &d); d.Partial || d.Labels["scenario"] != r.ID {
			t.Errorf("step %d: got %+v", s.Number, d)
		}
	}
	out, err := exec.Command(carronade(t), "report", "list", "label.scenario="+r.ID, "--store", store).CombinedOutput()
	assert.True(t, err == nil && strings.Contains(string(out), "scenario-step=1") &&
		strings.Contains(string(out), "scenario-step=2"), "%v: the steps in the store are:\n%s", err, out)
}

// Ctrl-C ends the step in progress, which reports, and then the scenario.
func TestScenarioInterrupted(t *testing.T) {
	t.Parallel()
	p, store := startScenario(t, threeSteps)
	p.until(t, "no limit was given")
	p.interrupt(t)
	p.exits(t, 130)
	r := scenarioIn(t, store)
	assert.True(t, r.Stopped == "interrupted" && r.Partial &&
		slices.Equal(r.steps(), []string{"one", "two", "three"}) && r.Scenario.Steps[2].Exit == 130, "got %+v", r)
}

// A step that the script stops, or the time of the scenario, was not interrupted.
func TestScenarioStops(t *testing.T) {
	t.Parallel()
	p, store := startScenario(t, `import { run } from "carronade";
const back = run("null://", { name: "back", rate: "100/s" });
await run("null://", { name: "beside", rate: "100/s", for: "300ms" });
back.stop();
await back;
await run("null://", { name: "last", rate: "100/s" });
`, "--for", "15s", "--quiet")
	p.exits(t, 0)
	r := scenarioIn(t, store)
	assert.True(t, r.Stopped == "time" && !r.Partial && slices.Equal(r.steps(), []string{"back", "beside", "last"}), "got %+v", r)
	background, foreground := r.Scenario.Steps[0], r.Scenario.Steps[1]
	assert.True(t, background.StartS <= foreground.StartS && background.EndS >= foreground.EndS, "they did not run side by side: %+v, %+v", background, foreground)
}

// Many steps: their number does not add up to memory.
func TestScenarioOfManySteps(t *testing.T) {
	t.Parallel()
	p, store := startScenario(t, `import { run } from "carronade"; for (let i = 0; i < 100; i++) await run("null://", { count: 1, drain: "1s" });`, "--quiet")
	p.exits(t, 0)
	r := scenarioIn(t, store)
	assert.True(t, len(r.steps()) == 100 && r.Stopped == "script", "got %d steps, %+v", len(r.steps()), r.Stopped)
}

// Each example of the documents runs against stand-ins, as the command in its first lines says, with
// shorter times. The documents mention all of them.
func TestExampleScenarios(t *testing.T) {
	t.Parallel()
	page := assert.Value(os.ReadFile(root + "/docs/scenarios.md"))(t)
	files, err := filepath.Glob(root + "/examples/scenarios/*.js")
	assert.Must(t, err == nil && len(files) == 13, "got %d and %v, want thirteen", len(files), err)
	swaps := []string{`slo: "p99<50ms", budget: "5m"`, `slo: "p99<20ms", budget: "6s"`, `"30s"`, `"500ms"`, `"10s"`, `"300ms"`, `"5s"`, `"200ms"`, `"2s"`, `"20ms"`, `"5m"`, `"6s"`, `p99<50ms`, `p99<1h`, `100_000`, `2000`, `const limit = 50_000`, `const limit = 1e12`}
	for _, s := range [][]string{{"kafka", "127.0.0.1:9092"}, {"riemann", "127.0.0.1:5555"}, {"apm", "127.0.0.1:8200"}} {
		server := child(t, s[0])
		swaps = append(swaps, s[1], server.Addr())
	}
	collector := child(t, "otlp").Addr() // takes gRPC too
	swaps = append(swaps, "127.0.0.1:4317", collector, "127.0.0.1:8888", collector)
	swap := strings.NewReplacer(swaps...)
	store := filepath.Join(t.TempDir(), "reports.db")
	for _, path := range files {
		name := filepath.Base(path)
		t.Run(name, func(t *testing.T) {
			text := assert.Value(os.ReadFile(path))(t)
			assert.True(t, strings.Contains(string(page), "("+"../examples/scenarios/"+name+")"), "docs/scenarios.md does not have it")
			command := regexp.MustCompile(`(?m)^//   (.*carronade scenario ` + regexp.QuoteMeta(name) + `.*)$`).FindSubmatch(text)
			assert.Must(t, command != nil, "it does not say how it is run")
			dir := t.TempDir()
			assert.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(swap.Replace(string(text))), 0o600))
			if name == "09-baseline.js" { // a run that is comparable, on a machine of any speed
				before := exec.Command(carronade(t), "run", "null://", "--rate", "1/s", "--for", "2s", "--store", store)
				before.Env = append(os.Environ(), "CARRONADE_TEST_UNTRUSTED=none")
				out, err := before.CombinedOutput()
				assert.Must(t, err == nil, "%v\n%s", err, out)
			}
			c := exec.Command("sh", "-c", swap.Replace(string(command[1]))+" --store "+store)
			c.Dir = dir
			c.Env = []string{"CARRONADE_TEST_UNTRUSTED=none", "PATH=" + filepath.Dir(carronade(t)) + ":" + os.Getenv("PATH")}
			p := begin(t, c)
			switch code := p.end(t); {
			case code == 0:
			case name == "08-ceiling.js" && (code == 1 || code == 3 || code == 4): // what a busy machine holds is not known
			default:
				t.Errorf("exit code %d; it said:\n%s", code, p.said.String())
			}
			assert.True(t, strings.Contains(p.out.String(), "scenario "+name), "it printed:\n%s", p.out.String())
		})
	}
}

// The declarations for editors are those of the golden file: `-update` writes it.
func TestTypes(t *testing.T) {
	var out strings.Builder
	p := &cli.Program{Kinds: cli.Kinds(), Args: []string{"scenario", "--types"}, Out: &out, Err: os.Stderr}
	code := p.Main()
	assert.Must(t, code == 0, "exit code %d", code)
	testkit.Golden(t, "testdata/carronade.d.ts", out.String())
}

// A script marks the runs in progress that take marks, and no others.
func TestScenarioMarksFaults(t *testing.T) {
	t.Parallel()
	p, store := startScenario(t, `import { run, sleep, mark } from "carronade";
const plain = run("null://", { name: "plain", rate: "100/s" });
const marked = run("null://", { name: "marked", rate: "100/s", marks: true });
for (let begun = false; !begun; ) {
  try {
    mark("fault", "the plug");
    begun = true;
  } catch (e) {
    if (!String(e).includes("no step that takes marks is in progress")) throw e;
    await sleep("20ms");
  }
}
mark("heal", "the plug");
plain.stop();
marked.stop();
const text = (d) => JSON.stringify((d.faults?.marks ?? []).map((m) => [m.kind, m.name, m.by]));
console.log("plain", text(await plain), "marked", text(await marked));
try {
  mark("broken", "x");
} catch (e) {
  console.log(e);
}
mark("fault", "too late");
`)
	code := p.end(t)
	said := p.said.String()
	assert.Has(t, said,
		`plain [] marked [["fault","the plug","scenario"],["heal","the plug","scenario"]]`,
		`a mark is a fault, a heal or a note, not`,
		`no step that takes marks is in progress`, `start it with marks: true`)
	assert.Equal(t, code, 2, "exit code")
	r := scenarioIn(t, store)
	var marks []string
	for _, m := range r.Scenario.Marks {
		marks = append(marks, m.Text)
	}
	want := []string{"fault the plug", "heal the plug"}
	assert.True(t, slices.Equal(marks, want), "the report has the marks %q, want %q", marks, want)
}
