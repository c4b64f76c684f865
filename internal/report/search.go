package report

import (
	"fmt"
	"strings"
	"time"

	"carronade/internal/host"
	"carronade/internal/layout"
	"carronade/internal/verdict/find"
	"carronade/load"
	"carronade/measure"
	"carronade/units"
)

// SearchSchema is the version of the format of a search: a report whose content is the answer
// of a search for a ceiling, and not a measurement.
const SearchSchema = "carronade.find/1"

// Searching is the mode of the report of a search.
const Searching load.Mode = "find"

// A Search is the content of the report of a search. The trials' own reports have the
// measurements.
type Search struct {
	Limits  []string      `json:"limits"`
	Within  []SearchLimit `json:"time_limits"` // those on times
	Budget  time.Duration `json:"budget_ns"`
	From    float64       `json:"from,omitempty"`
	AtLeast float64       `json:"at_least,omitempty"`
	*find.Answer
}

// A SearchLimit is a limit on a time.
type SearchLimit struct {
	Name   string        `json:"name"`
	Of     string        `json:"of"` // the time
	P      float64       `json:"p"`  // 99 for p99, 100 for the maximum
	Within time.Duration `json:"within_ns"`
}

// formHead is the start of the JSON of reports that are not of runs, in the order of its keys.
type formHead struct {
	Schema  string `json:"schema"`
	ID      string `json:"id"`
	Hash    string `json:"hash"`
	Version string `json:"version"`
	RunID   string `json:"run_id"`

	Target string            `json:"target"`
	Op     string            `json:"op"`
	Mode   load.Mode         `json:"mode"`
	Labels map[string]string `json:"labels,omitempty"`
	Note   string            `json:"note,omitempty"`

	StartedAt time.Time     `json:"started_at"`
	EndedAt   time.Time     `json:"ended_at"`
	Stopped   load.Reason   `json:"stopped"`
	Partial   bool          `json:"partial"`
	Trust     measure.Trust `json:"trust"`
}

func (d *Document) formHead() formHead {
	return formHead{
		Schema: d.Schema, ID: d.ID, Hash: d.Hash, Version: d.Version, RunID: d.RunID,
		Target: d.Target, Op: d.Op, Mode: d.Mode, Labels: d.Labels, Note: d.Note,
		StartedAt: d.StartedAt, EndedAt: d.EndedAt, Stopped: d.Stopped, Partial: d.Partial, Trust: d.Trust,
	}
}

// searchForm is the JSON of the report of a search: the fields that it shares with other
// reports, and the answer.
type searchForm struct {
	formHead
	*Search

	Workload    any            `json:"workload"`
	Settings    []Setting      `json:"settings"`
	System      any            `json:"system,omitempty"`
	Facts       map[string]any `json:"facts"`
	Host        any            `json:"host"`
	HostText    string         `json:"host_text"`
	Hosts       []any          `json:"hosts,omitempty"`
	Attachments []Attachment   `json:"attachments,omitempty"`
}

// form is the value that encodes as the document's JSON, without intervals in its head.
func (d *Document) form() any {
	if d.Scenario != nil {
		return d.scenarioForm()
	}
	if d.Search == nil {
		return d
	}
	f := &searchForm{
		formHead: d.formHead(),
		Search:   d.Search,
		Workload: d.Workload, Settings: d.Settings, Facts: d.Facts, Host: d.Host, HostText: d.HostText, Hosts: d.Hosts, Attachments: d.Attachments,
	}
	if d.System != nil {
		f.System = map[string]any{"facts": d.System.Facts}
	}
	return f
}

// KnownSchema reports whether this program reads reports of a schema.
func KnownSchema(schema string) bool {
	return schema == Schema || schema == SearchSchema || schema == ScenarioSchema
}

// ExitCode is the exit code of a search.
func (s *Search) ExitCode() int { return s.Answer.ExitCode(s.AtLeast) }

// headline is the answer in a line.
func (s *Search) headline() string { return s.Headline(strings.Join(s.Limits, ", ")) }

// verdicts are what the search says besides its answer.
func (s *Search) verdicts() []Verdict {
	var out []Verdict
	say := func(on Subject, mark Mark, label, text string) {
		v := Verdict{On: on, Mark: mark, Label: label, Texts: []string{text}}
		if on == OnLimit {
			v.Limit = "at-least"
		}
		out = append(out, v)
	}
	switch s.Ending {
	case find.Found:
		say(OnEnd, Good, "confirmed", fmt.Sprintf("the limits hold at %s and fail at %s", units.FormatRate(s.Holds), units.FormatRate(s.Fails)))
	case find.AtLeast:
		say(OnTrust, Bad, "at least", s.Why)
	case find.Busy:
		say(OnTrust, Bad, "too busy", s.Why)
	case find.Died:
		say(OnSystem, Bad, "died", s.Why)
	default:
		say(OnEnd, Caution, "not confirmed", s.Why)
	}
	if s.AtLeast > 0 {
		switch wanted := units.FormatRate(s.AtLeast); s.ExitCode() {
		case host.ExitOK:
			say(OnLimit, Good, "holds", wanted+" was asked for, and holds")
		case host.ExitBroken:
			say(OnLimit, Bad, "BROKEN", wanted+" was asked for, and does not hold")
		default:
			say(OnLimit, Open, cannotTell, wanted+" was asked for, and is not confirmed")
		}
	}
	for _, r := range s.Remarks() {
		on, mark := OnSystem, Remark
		switch r.Name {
		case find.Inversion:
			mark = Caution
		case find.Doubtful:
			on, mark = OnGenerator, Caution
		}
		say(on, mark, r.Name, r.Text)
	}
	return out
}

// SearchWord is the word that answers for a search, or several, and its color. asked: a rate was asked for.
func SearchWord(exit int, asked bool) (word, color string) {
	switch exit {
	case host.ExitOK:
		if word = Done; asked {
			word = Passed
		}
		return word, layout.Bold
	case host.ExitInterrupted:
		return CutShort, layout.Yellow
	case host.ExitUntrusted:
		return Distrust, layout.Red
	case host.ExitCannotTell:
		return Undecided, layout.Yellow
	}
	return Failed, layout.Red
}

// searchText prints a search: the answer, what is known next to it, and the trials.
func (d *Document) searchText(p *layout.Page) {
	a := d.Answer()
	find.Head(p, answerColor(a.Mark), a.Word, d.Search.headline())
	target := d.Op + " " + d.Target
	if load := d.Load(layout.Columns); load != "" {
		target += ", " + load
	}
	p.Title(layout.Clean(target))
	d.Search.Details(p)
	p.Line("")
	p.Pair("", "when", d.When())
}
