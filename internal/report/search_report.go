package report

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"carronade/internal/verdict/find"
	"carronade/load"
	"carronade/measure"
)

// The labels of the reports of a search: which one, and what the report is to it.
const (
	SearchLabel = "find"
	DemoLabel   = "demo" // of demos: nobody compares them
	RoleLabel   = "find-role"
	// AnswerRole is the role of the report of the search itself.
	AnswerRole = "answer"
)

// ofTrial are the settings that each trial has its own values of.
var ofTrial = []string{"rate", "concurrency", "for", "warmup", "interval", "label", "slo"}

// A Searched is a search that ended.
type Searched struct {
	ID           string
	Search       string // the id of the search whose trials they are, if it is another one
	Limits       []string
	Began, Ended time.Time
	Options      find.Options
	AtLeast      float64 // the rate that must hold, or 0
	Answer       *find.Answer
	Of           *Document // a trial at a rate, or else a probe
	Canceled     bool
}

// SearchReport makes the report of a search. What was searched, with which settings, by which machine
// and in which revision of the system, is that of its trials.
func SearchReport(s *Searched) (*Document, error) {
	t := s.Of
	d := &Document{
		Schema: SearchSchema, ID: s.ID, RunID: s.ID, Version: t.Version,
		Target: t.Target, Op: t.Op, Mode: Searching, Note: t.Note, Attachments: t.Attachments,
		Labels: maps.Clone(t.Labels), Repetition: 1, Repetitions: 1,
		StartedAt: s.Began.Round(0), EndedAt: s.Ended.Round(0),
		Stopped: load.Reason(s.Answer.Ending), Partial: s.Canceled || s.Answer.Ending == find.Died,
		Trust:    measure.Trust{OK: true, Level: measure.Trusted, Reasons: []string{}, Doubts: []string{}, Notes: []string{}, Bounds: []measure.Bound{}},
		Workload: withoutTrial(t.Workload), Settings: []Setting{},
		Facts: t.Facts, Host: t.Host, HostText: t.HostText, Hosts: t.Hosts,
		Search: &Search{
			Limits: s.Limits, Within: within(s), Budget: s.Options.Budget, From: s.Options.From, AtLeast: s.AtLeast, Answer: s.Answer,
		},
	}
	if s.Canceled {
		d.Stopped = load.Interrupted
	}
	if s.Answer.Ending == find.AtLeast || s.Answer.Ending == find.Busy {
		d.Trust.OK, d.Trust.Level, d.Trust.Reasons = false, measure.NotTrusted, []string{s.Answer.Why}
	}
	if d.Labels == nil {
		d.Labels = map[string]string{}
	}
	d.Labels[SearchLabel], d.Labels[RoleLabel] = cmp.Or(s.Search, s.ID), AnswerRole
	if t.System != nil {
		d.System = &System{Facts: t.System.Facts}
	}
	for i := range t.Settings {
		if !slices.Contains(ofTrial, t.Settings[i].Name) {
			d.Settings = append(d.Settings, t.Settings[i])
		}
	}
	// Ceilings are comparable only if they are of the same limits.
	d.Settings = append(d.Settings, Setting{Name: "slo", Type: "list", Value: strings.Join(s.Limits, ", "), Minor: true, Independent: true})
	return d, d.Seal()
}

// withoutTrial is a workload without what each trial has its own values of.
func withoutTrial(of any) map[string]any {
	out := map[string]any{}
	if text, err := json.Marshal(of); err == nil {
		_ = json.Unmarshal(text, &out) // without values if it is not an object
	}
	for _, name := range ofTrial {
		delete(out, name)
	}
	return out
}

// within are the limits on times, by the names of the times in the trials.
func within(s *Searched) []SearchLimit {
	out := make([]SearchLimit, 0, len(s.Options.Times))
	for _, l := range s.Options.Times {
		out = append(out, SearchLimit{Name: l.Name, Of: timeOf(l, s.Of), P: percent(l.Quantile), Within: l.Within})
	}
	return out
}
