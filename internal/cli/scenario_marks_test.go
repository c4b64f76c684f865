//go:build unix

package cli_test

import (
	"slices"
	"testing"

	"carronade/test/testkit/assert"
)

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
