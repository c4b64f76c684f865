package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"carronade/internal/layout"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/units"
)

// A Condition is one property of how a run was measured.
type Condition struct {
	Name string `json:"name"`
	Text string `json:"text"` // never empty
}

// Conditions are the operation, the settings, and the time of the run.
func (d *Document) Conditions() []Condition {
	var out []Condition
	add := func(name, text string) {
		if strings.TrimSpace(text) != "" {
			out = append(out, Condition{Name: name, Text: text})
		}
	}
	var set, usual []string
	for _, s := range d.Settings {
		switch {
		case s.Minor:
		case !s.Default:
			set = append(set, s.Name+" "+s.Value)
		case s.Value != "" && s.Value != "false": // unset switches are left out
			usual = append(usual, s.Name+" "+s.Value+d.dividedInFlight(&s))
		}
	}
	add("load", string(d.Mode))
	add("set", strings.Join(set, ", "))
	add("by default", strings.Join(usual, ", "))
	add("events", d.encodedText())
	add("labels", strings.Join(d.labels(), ", "))
	add("noted", layout.Clean(d.Note))
	var files []string
	for _, a := range d.Attachments {
		files = append(files, layout.Clean(a.Name)+" ("+units.FormatSize(int64(len(a.Text)))+")")
	}
	add("attached", strings.Join(files, ", "))
	if d.Repetitions > 1 {
		text := fmt.Sprintf("%d of %d", d.Repetition, d.Repetitions)
		if d.Replaces != "" {
			text += ", in place of " + layout.Clean(d.Replaces) + ", which was not trusted"
		}
		add("repetition", text)
	}
	if s := d.Search; s != nil {
		add("when", d.When()+": "+seconds(d.EndedAt.Sub(d.StartedAt).Seconds())+" of "+units.FormatDuration(s.Budget))
		return out
	}
	if d.Scenario != nil {
		add("when", d.When()+": "+seconds(d.EndedAt.Sub(d.StartedAt).Seconds())+"; "+scenarioEnded(d.Stopped))
		return out
	}
	var spans []string
	for i := range d.Phases {
		if ph := &d.Phases[i]; ph.EndS > ph.StartS {
			spans = append(spans, ph.Name+" "+seconds(ph.EndS-ph.StartS))
		}
	}
	add("when", d.When()+": "+strings.Join(spans, ", ")+"; "+ended(d.Stopped))
	return out
}

// dividedInFlight says what the default limit of batches in flight is on each connection, if that of a single client
// is divided among several.
func (d *Document) dividedInFlight(s *Setting) string {
	if s.Name != "max-in-flight" {
		return ""
	}
	one, err := units.ParseCount(s.Value)
	i := slices.IndexFunc(d.Settings, func(s Setting) bool { return s.Name == "clients" })
	if err != nil || i < 0 {
		return ""
	}
	clients, err := units.ParseCount(d.Settings[i].Value)
	if each := workload.InFlightEach(one, clients); err == nil && each < one {
		return fmt.Sprintf(" (%d on each connection of %s)", each, units.Plural(clients, "client"))
	}
	return ""
}

// When is the start of the run.
func (d *Document) When() string { return d.StartedAt.UTC().Format(time.DateTime) + " UTC" }

// Origin are the conditions that identify the machine, the program and the report.
func (d *Document) Origin() []Condition {
	out := []Condition{{Name: "machine", Text: d.HostText}, {Name: "program", Text: strings.TrimSpace("carronade "+d.Version) + ", run " + orWord(d.RunID, "without id")}}
	if d.ID != "" {
		text := d.ID
		if len(d.Hash) >= 12 {
			text += ", hash " + d.Hash[:12]
		}
		out = append(out, Condition{Name: "report", Text: text})
	}
	return slices.DeleteFunc(out, func(c Condition) bool { return c.Text == "" })
}

func (d *Document) labels() []string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(d.Labels)) {
		out = append(out, k+"="+d.Labels[k])
	}
	return out
}

// firstSettings are the settings that characterize a load best, in this order.
var firstSettings = []string{"shape", "rate", "concurrency", "for", "count", "bytes", "size"}

// Load describes the workload in at most this number of columns, by the settings that were
// chosen, the most important first.
func (d *Document) Load(columns int) string {
	rank := func(s Setting) int {
		if i := slices.Index(firstSettings, s.Name); i >= 0 {
			return i
		}
		return len(firstSettings)
	}
	chosen := slices.DeleteFunc(slices.Clone(d.Settings), func(s Setting) bool {
		return s.Default || s.Minor || s.Name == "op" || s.Name == "target" || s.Value == "" || s.Value == "false"
	})
	slices.SortStableFunc(chosen, func(a, b Setting) int { return rank(a) - rank(b) })
	var parts []string
	if d.Mode == load.FullSpeed {
		parts = append(parts, "full speed")
	}
	for _, s := range chosen {
		text := layout.Clean(s.Name + " " + s.Value)
		if s.Value == "true" {
			text = s.Name
		}
		parts = append(parts, text)
	}
	for n := len(parts); n > 0; n-- {
		text := strings.Join(parts[:n], ", ")
		if n < len(parts) {
			text += ", ..."
		}
		if layout.Width(text) <= columns {
			return text
		}
	}
	return ""
}

// endings are the reasons why a measurement ended, in words.
var endings = map[load.Reason]string{
	load.ByTime:        "the duration was reached",
	load.ByEvents:      "its number of events was reached",
	load.ByBytes:       "its number of bytes was reached",
	load.ByFailures:    "too many events had failed",
	load.ByFailureRate: "too large a share had failed",
	load.ByLimit:       "a limit was broken",
	load.BySchedule:    "the schedule ended",
	load.ByFeed:        "all of its items were done",
	load.ByIdle:        "no more events arrived",
	load.ByEnd:         "the end of the logs was reached",
	load.Interrupted:   "it was interrupted",
	load.ByTarget:      "the target failed",
	load.ByGenerator:   "a generator was lost",
	load.ByLease:       "its generators heard nothing of the program that commands them",
	load.BySystem:      "the system under test ended by itself",
	load.ByMemory:      "it needed more memory than a job of this server may have",
	load.ByDrain:       "its backlog was drained",
	load.ByBacklog:     "its backlog was not drained in time",
	load.ByLoss:        "its own fault left no connection",
	load.Killed:        "the program was killed",
}

// ended says why the measurement ended.
func ended(r load.Reason) string {
	if w, ok := endings[r]; ok {
		return w
	}
	return string(r) // of a report that another version made
}
