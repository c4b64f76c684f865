package report

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"carronade/internal/host"
	"carronade/internal/layout"
	"carronade/load"
	"carronade/measure"
	"carronade/units"
)

// ScenarioSchema is the version of the format of a scenario: a report whose content is what
// became of its steps. Each step that measured has a report of its own.
const ScenarioSchema = "carronade.scenario/1"

// InScenario is the mode of the report of a scenario.
const InScenario load.Mode = "scenario"

// The labels of the reports of steps: which scenario, and which step of it.
const (
	ScenarioLabel     = "scenario"
	ScenarioStepLabel = "scenario-step"
)

// The reasons why a scenario ended that no run has.
const (
	ByScript load.Reason = "script"
	ByFault  load.Reason = "fault"
	BySteps  load.Reason = "steps"
)

// scenarioEnded says why a scenario ended.
func scenarioEnded(r load.Reason) string {
	switch r {
	case ByScript:
		return "the script came to its end"
	case ByFault:
		return "the script failed"
	case BySteps:
		return "--max-steps was reached"
	}
	return ended(r)
}

// A Scenario is the content of the report of a scenario.
type Scenario struct {
	Script string          `json:"script"` // its path, as it was given
	Args   []string        `json:"args"`
	Seed   uint64          `json:"seed"`
	Steps  []ScenarioStep  `json:"steps"` // those that ended, in that order
	Checks []ScenarioCheck `json:"checks"`
	Marks  []ScenarioMark  `json:"marks,omitempty"`
	Fault  *ScenarioFault  `json:"fault,omitempty"` // why the script failed; nil: it did not
}

// A ScenarioStep is one step that ended. Times are from the start of the scenario.
type ScenarioStep struct {
	Number     int            `json:"number"` // from 1
	Name       string         `json:"name,omitempty"`
	Kind       string         `json:"kind"`
	At         string         `json:"at"` // its place in the script
	Target     string         `json:"target"`
	Op         string         `json:"op,omitempty"`
	StartS     float64        `json:"start_s"`
	EndS       float64        `json:"end_s"`
	Report     string         `json:"report,omitempty"` // the id of its report; "" without one
	Hash       string         `json:"report_hash,omitempty"`
	Exit       int            `json:"exit"` // the exit code of the same command
	EventsPerS float64        `json:"events_per_s"`
	Result     string         `json:"result,omitempty"` // the headline of its report
	Fault      *ScenarioFault `json:"fault,omitempty"`  // why it has no report
}

// A ScenarioCheck is a limit that the script checked.
type ScenarioCheck struct {
	Check
	At     string `json:"at"`
	Report string `json:"report"`         // of which it was checked
	Step   int    `json:"step,omitempty"` // whose report that is; 0: none
}

// A ScenarioMark is a text that the script added at a time, from the start of the scenario.
type ScenarioMark struct {
	TimeS float64 `json:"time_s"`
	At    string  `json:"at"` // its place in the script
	Text  string  `json:"text"`
}

// A ScenarioFault is an error with its place in the script.
type ScenarioFault struct {
	At   string `json:"at"`
	Text string `json:"text"`
	Hint string `json:"hint,omitempty"`
}

// scenarioForm is the JSON of the report of a scenario.
type scenarioForm struct {
	formHead
	Problems []string `json:"problems"`
	Warnings []string `json:"warnings"`

	Scenario *Scenario `json:"scenario"`

	Workload    any          `json:"workload"`
	Settings    []Setting    `json:"settings"`
	Host        any          `json:"host"`
	HostText    string       `json:"host_text"`
	Attachments []Attachment `json:"attachments,omitempty"`
}

// IsRun reports whether a report is of a run, which measured: it is of neither a search nor a
// scenario, whose numbers are in the reports of their trials and steps.
func (d *Document) IsRun() bool { return d.Search == nil && d.Scenario == nil }

// scenarioForm is the value that encodes as the JSON of the report of a scenario.
func (d *Document) scenarioForm() *scenarioForm {
	return &scenarioForm{
		formHead: d.formHead(),
		Problems: orEmpty(d.Problems), Warnings: orEmpty(d.Warnings),
		Scenario: d.Scenario,
		Workload: d.Workload, Settings: orEmpty(d.Settings), Host: d.Host, HostText: d.HostText, Attachments: d.Attachments,
	}
}

// A scenarioPiece is a part of a scenario's report that is stored while the scenario goes on. A
// stored interval replaces those of its phase that it covers, so each piece has a phase of its own.
type scenarioPiece struct {
	Phase string `json:"phase"`
	ScenarioStep
	Check *ScenarioCheck `json:"check,omitempty"`
	Mark  *ScenarioMark  `json:"mark,omitempty"`
}

func (p scenarioPiece) encode() (Encoded, error) {
	text, err := json.Marshal(p)
	if err != nil {
		return Encoded{}, fmt.Errorf("encode %s: %w", p.Phase, err)
	}
	return Encoded{Phase: p.Phase, StartS: p.StartS, EndS: p.EndS, JSON: text, Sum: sha256.Sum256(text)}, nil
}

// EncodeStep encodes a step that ended, to be stored while the scenario goes on.
func EncodeStep(s *ScenarioStep) (Encoded, error) {
	return scenarioPiece{Phase: "step " + strconv.Itoa(s.Number), ScenarioStep: *s}.encode()
}

// EncodeCheck encodes the n-th check in the same way.
func EncodeCheck(n int, c *ScenarioCheck) (Encoded, error) {
	return scenarioPiece{Phase: "check " + strconv.Itoa(n), Check: c}.encode()
}

// EncodeMark encodes the n-th mark in the same way.
func EncodeMark(n int, m *ScenarioMark) (Encoded, error) {
	at := ScenarioStep{StartS: m.TimeS, EndS: m.TimeS}
	return scenarioPiece{Phase: "mark " + strconv.Itoa(n), ScenarioStep: at, Mark: m}.encode()
}

// assembleScenario makes the report of a scenario whose program died, from the pieces that were
// stored until then. Those that cannot be decoded are left out.
func (d *Document) assembleScenario() {
	of := *d.Scenario
	of.Steps, of.Checks, of.Marks = []ScenarioStep{}, []ScenarioCheck{}, nil
	for i := range d.Intervals {
		var p scenarioPiece
		if json.Unmarshal(d.Intervals[i].raw, &p) != nil {
			continue
		}
		switch {
		case p.Check != nil:
			of.Checks = append(of.Checks, *p.Check)
		case p.Mark != nil:
			of.Marks = append(of.Marks, *p.Mark)
		case p.Number > 0:
			of.Steps = append(of.Steps, p.ScenarioStep)
		}
	}
	slices.SortStableFunc(of.Steps, func(a, b ScenarioStep) int { return a.Number - b.Number })
	d.Scenario, d.Intervals = &of, []Interval{}
	d.Trust = measure.Trust{OK: true, Level: measure.Trusted, Reasons: []string{}, Doubts: []string{}, Notes: []string{}, Bounds: []measure.Bound{}}
	d.Warnings = append(slices.Clone(d.Warnings), "the program was killed: this report has what had ended until then")
}

// ExitCode is that of the worst step, check or fault.
func (s *Scenario) ExitCode() int {
	code := host.ExitOK
	for i := range s.Steps {
		code = host.WorseExit(code, s.Steps[i].Exit)
	}
	for i := range s.Checks {
		switch c := &s.Checks[i]; {
		case c.OK:
		case c.CannotTell:
			code = host.WorseExit(code, host.ExitCannotTell)
		default:
			code = host.WorseExit(code, host.ExitBroken)
		}
	}
	if s.Fault != nil {
		code = host.WorseExit(code, host.ExitFailed)
	}
	return code
}

// scenarioHeadline is the result in a line.
func (d *Document) scenarioHeadline() string {
	s := d.Scenario
	text := fmt.Sprintf("%s in %s", units.Plural(len(s.Steps), "step"), seconds(d.EndedAt.Sub(d.StartedAt).Seconds()))
	bad := 0
	for i := range s.Steps {
		if s.Steps[i].Exit != host.ExitOK {
			bad++
		}
	}
	broken := 0
	for i := range s.Checks {
		if !s.Checks[i].OK {
			broken++
		}
	}
	switch {
	case bad > 0:
		text += fmt.Sprintf(", %d of them did not end well", bad)
	case len(s.Steps) > 0:
		text += ", each of them ended well"
	}
	if broken > 0 {
		text += fmt.Sprintf(", %d of %s not met", broken, units.Plural(len(s.Checks), "check"))
	}
	if s.Fault != nil {
		text = "the script failed: " + text
	}
	return text
}

// Title is the number and name of a step.
func (s *ScenarioStep) Title() string {
	return strings.TrimSpace(strconv.Itoa(s.Number) + " " + layout.Clean(s.Name))
}

// Outcome is what became of a step, in words.
func (s *ScenarioStep) Outcome() string {
	if s.Fault != nil {
		return s.Fault.Text
	}
	return s.Result
}

// endsBadly are the exit codes of steps in the order in which a report mentions them.
var endsBadly = []struct {
	code    int
	on      Subject
	mark    Mark
	label   string
	meaning string
}{
	{host.ExitFailed, OnSystem, Bad, "failed", "could not be done"},
	{host.ExitBroken, OnSystem, Bad, "BROKEN", "a limit does not hold, or the system took nothing"},
	{host.ExitInterrupted, OnEnd, Caution, "cut short", "interrupted"},
	{host.ExitUntrusted, OnSystem, Caution, "doubt", "not trusted: the generator was the limit"},
	{host.ExitCannotTell, OnSystem, Open, cannotTell, "whether a limit holds"},
}

// stepsNamed is how many steps a verdict names.
const stepsNamed = 5

// scenarioVerdicts are what a report says besides its steps.
func (d *Document) scenarioVerdicts() []Verdict {
	s := d.Scenario
	var out []Verdict
	say := func(on Subject, mark Mark, label, text string) {
		out = append(out, Verdict{On: on, Mark: mark, Label: label, Texts: []string{text}})
	}
	if f := s.Fault; f != nil {
		text := f.Text
		if f.At != "" {
			text = f.At + ": " + text
		}
		say(OnOutput, Bad, "fault", text)
	}
	for _, end := range endsBadly {
		var of []string
		for i := range s.Steps {
			if s.Steps[i].Exit == end.code {
				of = append(of, s.Steps[i].Title())
			}
		}
		if n := len(of); n > 0 {
			named := strings.Join(of[:min(n, stepsNamed)], ", ")
			if n > stepsNamed {
				named += fmt.Sprintf(" and %d more", n-stepsNamed)
			}
			say(end.on, end.mark, end.label, units.Plural(n, "step")+": "+named+"; "+end.meaning)
		}
	}
	for i := range s.Checks {
		c := &s.Checks[i]
		v := c.verdict()
		v.Texts[0] += " (" + c.of() + ")"
		out = append(out, v)
	}
	if d.Partial || d.Stopped == load.Interrupted {
		say(OnEnd, Caution, "partial", "cut short ("+scenarioEnded(d.Stopped)+"); these are the steps until then")
	}
	for _, text := range d.Problems {
		say(OnOutput, Bad, "problem", text)
	}
	for _, text := range d.Warnings {
		say(OnWarning, Remark, "warning", text)
	}
	return out
}

// of says what a check is of.
func (c *ScenarioCheck) of() string {
	if c.Step > 0 {
		return "step " + strconv.Itoa(c.Step)
	}
	return "report " + c.Report
}

// Rows are the steps and marks as a table, by the time of their starts: the headings, and a row for
// each.
func (s *Scenario) Rows() [][]string {
	out := [][]string{{"step", "kind", "rate", "for", "report", "result"}}
	marks := s.Marks
	until := func(t float64) {
		for ; len(marks) > 0 && marks[0].TimeS <= t; marks = marks[1:] {
			out = append(out, []string{"", "mark", "", "", "", "at " + seconds(marks[0].TimeS) + ": " + layout.Clean(marks[0].Text)})
		}
	}
	for i := range s.Steps {
		one := &s.Steps[i]
		until(one.StartS)
		rate := ""
		if one.EventsPerS > 0 {
			rate = units.FormatRate(one.EventsPerS)
		}
		out = append(out, []string{one.Title(), one.Kind, rate, seconds(one.EndS - one.StartS), one.Report, layout.Clean(one.Outcome())})
	}
	until(math.Inf(1))
	return out
}

// briefScenario is how many steps the brief report shows.
const briefScenario = 30

// scenarioText prints a scenario: the result, the verdicts and the steps, at most some of them.
func (d *Document) scenarioText(p *layout.Page, most int) {
	a := d.Answer()
	p.Answer(answerColor(a.Mark), a.Word, d.Headline())
	p.Title("scenario " + layout.Clean(strings.Join(append([]string{d.Scenario.Script}, d.Scenario.Args...), " ")))
	if v := d.Verdicts(); len(v) > 0 {
		slices.SortStableFunc(v, func(a, b Verdict) int { return cmp.Compare(b.Mark, a.Mark) }) // the most important first
		p.Line("")
		verdicts(p, v)
	}
	rows := d.Scenario.Rows()
	if len(rows) > 1 {
		p.Section("Steps")
		t := &layout.Table{Headings: 1, Left: []int{0, 1, 4, 5}, Elastic: []int{0, 5}, Keep: []int{12, 20}, Wrapped: []int{5}}
		for _, row := range rows[:min(len(rows), most+1)] {
			t.Row(row...)
		}
		p.Table(t)
		if n := len(rows) - 1 - most; n > 0 {
			p.Note(fmt.Sprintf("and %d more", n))
		}
	}
	p.Line("")
	p.Pair("", "when", d.When()+": "+seconds(d.EndedAt.Sub(d.StartedAt).Seconds())+"; "+scenarioEnded(d.Stopped))
}

// Slim is the JSON of a report in one line, without its intervals: those of a long run would fill
// the memory of a script.
func (d *Document) Slim() ([]byte, error) {
	of := *d
	of.Intervals = nil
	text, err := json.Marshal(of.form())
	if err != nil {
		return nil, fmt.Errorf("encode report %s: %w", d.ID, err)
	}
	return text, nil
}
