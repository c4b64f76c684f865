package report

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"carronade/internal/advice"
	"carronade/internal/layout"
)

// Cite is the report in one line: the result, and what is needed to judge and reproduce it.
func Cite(d *Document) string {
	parts := []string{layout.Clean(d.Headline()) + " over " + seconds(d.Totals.ElapsedS), d.CommandArgs()}
	if !d.IsRun() {
		parts[0] = layout.Clean(d.Headline())
	}
	if s := d.citedSystem(); s != "" {
		parts = append(parts, s)
	}
	if d.HostText != "" {
		parts = append(parts, "from "+d.HostText)
	}
	for _, v := range d.Verdicts() { // warnings come before the numbers
		if v.Mark >= Caution && v.On <= OnTrust && v.On != OnOutput {
			parts = append(parts, v.Label+": "+strings.Join(v.Texts, ", "))
		}
	}
	if d.Repetitions > 1 {
		parts = append(parts, fmt.Sprintf("repetition %d of %d", d.Repetition, d.Repetitions))
	}
	made := d.StartedAt.UTC().Format(time.DateTime) + " UTC, report " + d.ID
	if len(d.Hash) >= 12 {
		made += " (" + d.Hash[:12] + ")"
	}
	parts = append(parts, made, "carronade "+d.Version)
	return layout.Clean(strings.Join(parts, "; "))
}

// CommandArgs is the command line that repeats the run, after "carronade run":
// the target, and the independent settings that were chosen. Operations on
// topics have their own command, and so have searches, whose limits are added.
func (d *Document) CommandArgs() string {
	if s := d.Scenario; s != nil {
		args := make([]string, 0, 1+len(s.Args))
		for _, a := range append([]string{s.Script}, s.Args...) {
			args = append(args, advice.Quote(a))
		}
		return strings.Join(args, " ")
	}
	if d.OnTopics() {
		args, _ := d.TopicsArgs() // with a placeholder for what is missing
		for i := range args {
			args[i] = advice.Quote(args[i])
		}
		return "topics " + strings.Join(args, " ")
	}
	var b strings.Builder
	of := d.workloadOf()
	for _, s := range d.Settings {
		if !s.cited() || d.Search != nil && s.Name == "slo" {
			continue
		}
		for _, value := range s.flagArgs(of[s.Name]) {
			fmt.Fprintf(&b, " --%s%s", s.Name, value)
		}
	}
	if d.Search != nil {
		for _, l := range d.Search.Limits {
			b.WriteString(" --slo " + advice.Quote(strings.ReplaceAll(l, " ", "")))
		}
	}
	return advice.Quote(d.Target) + " --op " + d.Op + b.String()
}

// workloadOf is the workload by the names of its settings, also of a report that was not read
// from JSON.
func (d *Document) workloadOf() map[string]any {
	of, _ := d.Workload.(map[string]any) // if the report was read from JSON
	if of == nil {
		if text, err := json.Marshal(d.Workload); err == nil {
			_ = json.Unmarshal(text, &of) // without values if it is not an object
		}
	}
	return of
}

// cited reports whether a setting is part of the command line: it was chosen, and is neither the
// target nor the operation, which come first.
func (s *Setting) cited() bool {
	return s.Independent && !s.Default && s.Name != "target" && s.Name != "op" && s.Value != ""
}

// flagArgs are the arguments of a setting's flag, given its value in the
// workload: a list repeats the flag, and a switch has no argument.
func (s *Setting) flagArgs(value any) []string {
	switch v := value.(type) {
	case []any:
		var out []string
		for _, one := range v {
			out = append(out, " "+advice.Quote(fmt.Sprint(one)))
		}
		return out
	case bool:
		if v {
			return []string{""}
		}
		return []string{"=false"}
	}
	return []string{" " + advice.Quote(s.Value)}
}

// citedSystem is the version, branch and revision of the system, as far as they
// are known.
func (d *Document) citedSystem() string {
	var parts []string
	if v := versions(d.Facts); v != "" {
		parts = append(parts, "version "+v)
	}
	if d.System != nil {
		for _, name := range []string{"branch", "revision"} {
			if s, ok := d.System.Facts[name].(string); ok && s != "" {
				parts = append(parts, name+" "+s)
			}
		}
		if dirty, _ := d.System.Facts["unstaged_changes"].(bool); dirty {
			parts = append(parts, "with changes that were not committed")
		}
	}
	return strings.Join(parts, ", ")
}

// versions are the versions that the servers reported, each once.
func versions(facts map[string]any) string {
	var found []string
	add := func(v any) {
		if s, ok := v.(string); ok && s != "" && !slices.Contains(found, s) {
			found = append(found, s)
		}
	}
	add(facts["version"])
	for _, name := range slices.Sorted(maps.Keys(facts)) {
		list, _ := facts[name].([]any)
		for _, v := range list {
			if m, ok := v.(map[string]any); ok {
				add(m["version"])
			}
		}
	}
	return strings.Join(found, " and ")
}
