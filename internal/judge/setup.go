package judge

import (
	"io"
	"slices"
	"strings"

	"carronade/internal/layout"
	"carronade/internal/report"
)

// A Setup is what the runs of tables were measured with: the machines, the
// software and the settings, which a written report has above its tables.
type Setup struct {
	Machines []report.Machines `json:"machines"`
	Software []Shared          `json:"software"`
	Settings []Shared          `json:"settings"`
}

// A Shared is a property, with the runs that have this value of it.
type Shared struct {
	Name string   `json:"name"`
	Text string   `json:"text"`
	Runs []string `json:"runs,omitempty"` // ids; empty: all runs
	// Default is set for a setting that none of these runs was given.
	Default bool `json:"default,omitempty"`
}

// SetupOf collects the setup of runs.
func SetupOf(ds ...*report.Document) *Setup {
	s := &Setup{Machines: report.MachinesOf(ds...), Software: []Shared{}, Settings: []Shared{}}
	if s.Machines == nil {
		s.Machines = []report.Machines{}
	}
	for _, d := range ds {
		for _, c := range d.Software() {
			s.Software = share(s.Software, c.Name, c.Text, d.ID, false)
		}
		for _, x := range d.Settings {
			if x.Minor || x.Value == "" || x.Default && x.Value == "false" || x.Name == "target" || x.Name == "system-host" {
				continue // or elsewhere on the page
			}
			s.Settings = share(s.Settings, x.Name, x.Value, d.ID, x.Default)
		}
	}
	s.Software, s.Settings = tidied(s.Software, len(ds)), tidied(s.Settings, len(ds))
	return s
}

// share adds a run to the runs with this value.
func share(all []Shared, name, text, id string, usual bool) []Shared {
	name, text = layout.Clean(name), layout.Clean(text)
	i := slices.IndexFunc(all, func(s Shared) bool { return s.Name == name && s.Text == text })
	if i < 0 {
		return append(all, Shared{name, text, []string{id}, usual})
	}
	all[i].Default = all[i].Default && usual
	if !slices.Contains(all[i].Runs, id) {
		all[i].Runs = append(all[i].Runs, id)
	}
	return all
}

// tidied leaves out the runs of what all have, and puts the values of each name
// together.
func tidied(all []Shared, runs int) []Shared {
	first := map[string]int{}
	for i := range all {
		if _, ok := first[all[i].Name]; !ok {
			first[all[i].Name] = i
		}
		if len(all[i].Runs) == runs {
			all[i].Runs = nil
		}
	}
	slices.SortStableFunc(all, func(a, b Shared) int { return first[a.Name] - first[b.Name] })
	return all
}

// value is the text, and whether it is the default.
func (s *Shared) value() string {
	if s.Default {
		return s.Text + " (by default)"
	}
	return s.Text
}

// runs are the runs in words.
func (s *Shared) runs() string {
	if len(s.Runs) == 0 {
		return "all"
	}
	return strings.Join(s.Runs, ", ")
}

// Text writes the setup for people.
func (s *Setup) Text(w io.Writer, style layout.Style) error {
	p := &layout.Page{Style: style}
	begin := p.Title
	for _, m := range s.Machines {
		begin(m.Title)
		begin = p.Section
		for _, r := range m.Rows {
			p.Pair("", r.Name, r.Text)
		}
	}
	for _, part := range s.parts() {
		if len(part.rows) == 0 {
			continue
		}
		begin(part.title)
		begin = p.Section
		for i := range part.rows {
			r := &part.rows[i]
			text := r.value()
			if len(r.Runs) > 0 {
				text += "  [" + r.runs() + "]"
			}
			label := r.Name
			if i > 0 && part.rows[i-1].Name == r.Name {
				label = ""
			}
			p.Pair("", label, text)
		}
	}
	p.Line("")
	return p.To(w)
}

type setupPart struct {
	title string
	rows  []Shared
}

func (s *Setup) parts() []setupPart {
	return []setupPart{{"Software", s.Software}, {"Settings", s.Settings}}
}

// Markdown writes the setup as Markdown.
func (s *Setup) Markdown(w io.Writer) error {
	var b strings.Builder
	for _, m := range s.Machines {
		b.WriteString("### " + m.Title + "\n\n")
		t := layout.Table{Left: []int{1}}
		t.Row("machine", "")
		for _, r := range m.Rows {
			t.Row(layout.Markdown(r.Name), layout.Markdown(r.Text))
		}
		b.WriteString(t.Markdown() + "\n")
	}
	for _, part := range s.parts() {
		if len(part.rows) == 0 {
			continue
		}
		b.WriteString("### " + part.title + "\n\n")
		t := layout.Table{Left: []int{1, 2}}
		t.Row(strings.ToLower(part.title), "", "runs")
		for i := range part.rows {
			r := &part.rows[i]
			t.Row(layout.Markdown(r.Name), layout.Markdown(r.value()), layout.Markdown(r.runs()))
		}
		b.WriteString(t.Markdown() + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
