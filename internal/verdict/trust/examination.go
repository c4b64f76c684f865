package trust

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"carronade/internal/layout"
	"carronade/protocol"
	"carronade/units"
)

// ExaminationSchema names the form of an Examination as JSON.
const ExaminationSchema = "carronade.doctor/1"

// What a finding is about.
const (
	AboutMachine = "machine"
	AboutTarget  = "target"
)

// An ExaminationEntry is a finding of an examination.
type ExaminationEntry struct {
	About string `json:"about"`
	protocol.Finding
}

// UnmarshalJSON implements json.Unmarshaler. In examinations of before, a fix has the name mend.
func (e *ExaminationEntry) UnmarshalJSON(data []byte) error {
	type entry ExaminationEntry
	var x struct {
		entry
		Mend string `json:"mend"`
	}
	err := json.Unmarshal(data, &x)
	*e = ExaminationEntry(x.entry)
	e.Fix = cmp.Or(e.Fix, x.Mend)
	return err
}

// An Examination is everything that was found. Its JSON is documented in docs/doctor.md.
type Examination struct {
	Schema   string             `json:"schema"`
	Version  string             `json:"version"`          // of this program
	At       time.Time          `json:"at"`               // when it began
	Seconds  float64            `json:"seconds"`          // that it took
	Target   string             `json:"target,omitempty"` // without secrets
	Answered bool               `json:"answered"`         // the target did, as its kind expects; false without a target
	Worst    protocol.Level     `json:"worst"`            // level of all findings
	Findings []ExaminationEntry `json:"findings"`
}

// Add adds findings about a thing.
func (r *Examination) Add(about string, findings []protocol.Finding) {
	for _, f := range findings {
		r.Findings = append(r.Findings, ExaminationEntry{about, f})
		r.Worst = max(r.Worst, f.Level)
	}
}

// Spoils reports whether something would disturb a measurement.
func (r *Examination) Spoils() bool { return r.Worst >= protocol.LevelWarning }

// colors of levels.
var colors = map[protocol.Level]string{protocol.LevelOK: layout.Green, protocol.LevelNote: layout.Bold, protocol.LevelWarning: layout.Yellow, protocol.LevelError: layout.Red}

// Text prints the report: problems first, the worst at the top, then what is fine in a list. full
// prints each finding.
func (r *Examination) Text(w io.Writer, style layout.Style, columns int, full bool) error {
	p := &layout.Page{Style: style, MaxColumns: columns}
	p.Title(r.headline())
	if full {
		for _, part := range []struct{ about, title string }{{AboutMachine, "Machine"}, {AboutTarget, "Target"}} {
			var of []ExaminationEntry
			for _, e := range r.Findings {
				if e.About == part.about {
					of = append(of, e)
				}
			}
			if len(of) > 0 {
				p.Section(part.title)
				for i := range of {
					of[i].write(p)
				}
			}
		}
		return p.To(w)
	}
	problems := slices.Clone(r.Findings)
	problems = slices.DeleteFunc(problems, func(e ExaminationEntry) bool { return e.Level < protocol.LevelNote })
	slices.SortStableFunc(problems, func(a, b ExaminationEntry) int { return cmp.Compare(b.Level, a.Level) })
	for i := range problems {
		p.WriteByte('\n')
		problems[i].write(p)
	}
	p.WriteByte('\n')
	for _, l := range []struct {
		level protocol.Level
		label string
	}{{protocol.LevelOK, "fine"}, {protocol.LevelUnknown, "not known"}} {
		if names := r.checks(l.level); len(names) > 0 {
			p.Pair(colors[l.level], l.label, strings.Join(names, ", "))
		}
	}
	p.Pair("", "everything", "add --full")
	return p.To(w)
}

// checks are the names of checks with a level, and no worse one.
func (r *Examination) checks(level protocol.Level) []string {
	var names []string
	for _, e := range r.Findings {
		if e.Level == level && !slices.Contains(names, e.Check) {
			names = append(names, e.Check)
		}
	}
	return names
}

// write writes a finding with its effect, and what changes it.
func (e *ExaminationEntry) write(p *layout.Page) {
	p.Pair(colors[e.Level], e.Level.String(), e.Found)
	if e.Effect != "" {
		p.Pair(layout.Dim, "  effect", e.Effect)
	}
	if e.Fix == "" {
		return
	}
	// A command that does not fit next to its label has a line of its own, to be copied.
	if n := layout.Width(e.Fix); isCommand(e.Fix) && n > p.Columns()-labelIndent && n <= p.Columns()-belowIndent {
		p.Line(p.Paint(layout.Dim, "    fix"))
		p.Line(strings.Repeat(" ", belowIndent) + layout.Clean(e.Fix))
		return
	}
	p.Pair(layout.Dim, "  fix", e.Fix)
}

// isCommand reports whether a text of Fix is a command line and not a sentence: a known program,
// or a name with a dash that is followed by a flag.
func isCommand(text string) bool {
	name, rest, _ := strings.Cut(text, " ")
	return name == "echo" || name == "sudo" || strings.Contains(name, "-") && strings.HasPrefix(rest, "--")
}

// Columns where texts begin: next to a label of a page, and below it.
const labelIndent, belowIndent = 16, 4

// headline is the answer in a sentence.
func (r *Examination) headline() string {
	what := "this machine"
	if r.Target != "" {
		what += " and " + r.Target
	}
	if !r.Spoils() {
		text := "nothing was found that would disturb a measurement on " + what
		if r.Target != "" {
			text = "nothing was found on " + what + " that would disturb a measurement"
		}
		if n := r.count(protocol.LevelNote); n > 0 {
			text += fmt.Sprintf(" (%s)", units.Plural(n, "note"))
		}
		return text
	}
	var parts []string
	for _, l := range []protocol.Level{protocol.LevelError, protocol.LevelWarning, protocol.LevelNote} {
		if n := r.count(l); n > 0 {
			parts = append(parts, units.Plural(n, l.String()))
		}
	}
	return strings.Join(parts, ", ") + " on " + what
}

func (r *Examination) count(level protocol.Level) (n int) {
	for _, e := range r.Findings {
		if e.Level == level {
			n++
		}
	}
	return n
}
