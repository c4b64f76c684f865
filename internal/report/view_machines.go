package report

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"carronade/internal/host"
	"carronade/internal/layout"
	"carronade/units"
)

// Machines are machines of the same kind, which differ at most in their names.
type Machines struct {
	Title string      `json:"title"` // "Machine of the generator"
	Rows  []Condition `json:"rows"`
}

// Machines are the machines of a run: the generator's, then those described with
// --system-host.
func (d *Document) Machines() []Machines { return MachinesOf(d) }

// MachinesOf are the machines of several runs, each once.
func MachinesOf(ds ...*Document) []Machines {
	var generators, systems machineKinds
	for _, d := range ds {
		generators.add(d.Host)
		for _, h := range d.Hosts {
			systems.add(h)
		}
	}
	return append(generators.rows("generator"), systems.rows("system")...)
}

// machineKinds are machines, grouped by what they consist of.
type machineKinds []machineKind

type machineKind struct {
	first host.Host // as it was described
	alike host.Host
	names []string
	count int
}

// add adds a description in the form that it has in a report.
func (k *machineKinds) add(description any) {
	h, ok := hostOf(description)
	if !ok {
		return
	}
	alike := h.Alike()
	i := slices.IndexFunc(*k, func(x machineKind) bool { return reflect.DeepEqual(x.alike, alike) })
	if i < 0 {
		*k, i = append(*k, machineKind{first: h, alike: alike}), len(*k)
	}
	x := &(*k)[i]
	switch {
	case h.Name != "" && slices.Contains(x.names, h.Name), h.Name == "" && x.count > len(x.names):
		return // the same machine, in another run
	case h.Name != "":
		x.names = append(x.names, layout.Clean(h.Name))
	}
	x.count++
}

// Machine is the generator's machine, if it was described.
func (d *Document) Machine() (host.Host, bool) { return hostOf(d.Host) }

// hostOf decodes a description: that of a report that was read is plain JSON.
func hostOf(description any) (h host.Host, ok bool) {
	switch x := description.(type) {
	case nil:
		return h, false
	case host.Host:
		return x, x.Describes()
	}
	data, err := json.Marshal(description)
	if err != nil || json.Unmarshal(data, &h) != nil {
		return host.Host{}, false
	}
	return h, h.Describes()
}

func (k machineKinds) rows(of string) []Machines {
	var out []Machines
	for i := range k {
		x := &k[i]
		m, h := Machines{Title: "Machine of the " + of}, x.first
		if x.count > 1 {
			m.Title, h = "Machines of the "+of, x.alike
		}
		names := strings.Join(x.names, ", ")
		switch {
		case x.count > 1 && names == "":
			names = units.Plural(x.count, "machine") + " alike"
		case x.count > 1:
			names += fmt.Sprintf(" (%d alike)", x.count)
		}
		h.Name = ""
		if names != "" {
			m.Rows = append(m.Rows, Condition{"names", names})
			if x.count == 1 {
				m.Rows[0].Name = "name"
			}
		}
		for _, p := range h.Properties() {
			m.Rows = append(m.Rows, Condition{layout.Clean(p.Name), layout.Clean(p.Text)})
		}
		out = append(out, m)
	}
	return out
}

// machines prints the machines.
func (d *Document) machines(p *layout.Page) {
	for _, m := range d.Machines() {
		p.Section(m.Title)
		for _, r := range m.Rows {
			p.Pair("", r.Name, r.Text)
		}
	}
}
