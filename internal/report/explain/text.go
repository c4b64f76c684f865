package explain

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"carronade/internal/layout"
	"carronade/units"
)

// Row limits of the text; the rest is counted. The JSON has everything.
const (
	mostListed   = 3 // incidents named one by one
	mostFindings = 5 // of a group
)

// Text writes the explanation. The error is that of w.
func (x *Explanation) Text(w io.Writer, style layout.Style) error {
	p := &layout.Page{Style: style}
	p.Title(fmt.Sprintf("%s %s, report %s: seconds %s to %s", x.Op, x.Target, x.ID, number(x.StartS), number(x.EndS)))
	if x.Nothing != "" {
		p.Line("")
		p.Note(x.Nothing)
	}
	for i := range x.Groups {
		x.group(p, &x.Groups[i])
	}
	if x.Indexing != nil {
		p.Section(fmt.Sprintf("%s of the accepted events were found in the store", units.FormatPercent(x.Indexing.Share)))
		p.Pair("", x.Indexing.Verdict, x.Indexing.Text)
	}
	x.watched(p)
	return p.To(w)
}

// group prints the incidents of a kind and what coincided with them.
func (x *Explanation) group(p *layout.Page, g *Group) {
	p.Section(g.title())
	g.unconnected(p)
	for i := range min(len(g.Findings), mostFindings) {
		f := &g.Findings[i]
		label := "coincided"
		switch {
		case f.Sign:
			label = "came with"
		case f.Also:
			label = "also"
		}
		code := layout.Green
		if f.Sign || f.Also {
			code = ""
		}
		p.Pair(code, label, f.Text)
	}
	if n := len(g.Findings) - mostFindings; n > 0 {
		p.Pair("", "", fmt.Sprintf("and %d more: --json has them", n))
	}
	scheduled, compared, freezes := 0, 0, 0
	var left, frozen []string
	for i := range g.Incidents {
		in := &g.Incidents[i]
		if in.Scheduled {
			scheduled++
			continue
		}
		compared++
		switch {
		case in.Explained:
		case in.alone():
		case in.freezes > 0:
			freezes += in.freezes
			frozen = append(frozen, duration(in.FrozenS)+" of its "+in.text(g.Kind))
		default:
			left = append(left, in.text(g.Kind))
		}
	}
	if scheduled > 0 {
		p.Pair("", "the schedule", "made "+counted(scheduled, len(g.Incidents))+": the target rate changed")
	}
	if len(frozen) > 0 {
		what := "a freeze of the generator overlaps "
		if freezes > 1 {
			what = "freezes of the generator overlap "
		}
		if compared > 1 {
			what = counted(len(frozen), compared) + ": " + what
		}
		p.Pair(layout.Yellow, "frozen", what+list(frozen)+"; nothing else that was watched explains "+them(len(frozen)))
	}
	switch {
	case len(left) == 0:
	case len(left) == compared:
		p.Pair(layout.Yellow, "unexplained", "nothing that was watched explains "+them(compared)+": "+list(left))
	default:
		p.Pair(layout.Yellow, "unexplained", fmt.Sprintf("%d of %d: %s", len(left), compared, list(left)))
	}
	if g.NeededS > 0 {
		what := "a series"
		if g.Kind == step { // means are placed better than that
			what = "a series of readings"
		}
		each := "with each once"
		if compared == 1 {
			each = "once with it"
		}
		p.Pair("", "too short", fmt.Sprintf("%s that changes %s may be chance in a run of %s; in one of %s or longer it would show",
			what, each, duration(x.EndS-x.StartS), duration(g.NeededS)))
	}
}

// alone reports whether a client had no connection in most of a stall, which explains it before anything that coincided.
func (in *Incident) alone() bool { return in.AloneS > in.LengthS/2 && in.AloneS >= in.FrozenS }

// unconnected prints the stalls in which a client had no connection.
func (g *Group) unconnected(p *layout.Page) {
	var alone []string
	for i := range g.Incidents {
		in := &g.Incidents[i]
		if !in.alone() {
			continue
		}
		text := duration(in.AloneS) + " of its " + in.text(g.Kind)
		if in.FrozenS > 0 {
			text += ", in which the generator was frozen for " + duration(in.FrozenS)
		}
		alone = append(alone, text)
	}
	if len(alone) == 0 {
		return
	}
	what := "a client had no connection for "
	if n := len(g.Incidents); n > 1 {
		what = counted(len(alone), n) + ": " + what
	}
	p.Pair(layout.Green, "unconnected", what+list(alone))
}

// count is how many incidents, with their name.
func (g *Group) count(n int) string {
	if n == 1 {
		return "1 " + names[g.Kind].one
	}
	return units.FormatCount(uint64(n)) + " " + names[g.Kind].many
}

// names are those of the kinds of incidents.
var names = map[string]struct{ one, many string }{
	stall: {"stall", "stalls"},
	spike: {"spike of p99", "spikes of p99"},
	step:  {"step in throughput", "steps in throughput"},
}

// title names the incidents of a group and the largest.
func (g *Group) title() string {
	n := len(g.Incidents) + g.Left
	most := slices.MaxFunc(g.Incidents, func(a, b Incident) int {
		switch d := a.size(g.Kind) - b.size(g.Kind); {
		case d < 0:
			return -1
		case d > 0:
			return 1
		}
		return 0
	})
	text := g.count(n) + ": "
	if n > 1 {
		text = g.count(n) + ", the largest: "
	}
	text += most.text(g.Kind)
	if g.Left > 0 {
		text += fmt.Sprintf(" (the %d largest were compared)", len(g.Incidents))
	}
	return text
}

func (in *Incident) size(kind string) float64 {
	switch kind {
	case spike:
		return *in.P99US
	case step:
		return max(*in.AfterPerS, *in.BeforePerS) - min(*in.AfterPerS, *in.BeforePerS)
	}
	return in.LengthS
}

// text describes an incident.
func (in *Incident) text(kind string) string {
	at := " at " + number(in.AtS) + " s"
	switch kind {
	case spike:
		return fmt.Sprintf("%s, usually %s,%s", duration(*in.P99US/1e6), duration(*in.UsualUS/1e6), at)
	case step:
		return units.FormatRate(*in.BeforePerS) + " to " + units.FormatRate(*in.AfterPerS) + at
	}
	return duration(in.LengthS) + at
}

// sentence says what coincided, how often, and by which chance.
func (f *Finding) sentence(kind string) string {
	how := map[string]string{stall: "began", spike: "came", step: "came"}[kind]
	where := "at"
	if f.WithinS > 0 {
		where = "within " + duration(f.WithinS) + " of"
	}
	return fmt.Sprintf("%s %s %s %s; by chance in %s", counted(f.Hits, f.Of), how, where, f.what(), chance(f.Corrected))
}

// phrases are the moments that the program itself knows.
var phrases = map[string]string{
	"GC pause": "a GC pause", "connection lost": "a lost connection", "leader changed": "a change of leaders",
	"rebalance": "a rebalance", "freeze": "a freeze", "end of the system": "its end", noConnection: "no connection",
}

// what names the cause.
func (f *Finding) what() string {
	name := f.Name
	switch {
	case f.Change != "":
		name = "a " + f.Change + " of " + f.Name
	case phrases[f.Name] != "":
		name = phrases[f.Name]
	}
	from := map[string]string{"host": "this machine", "system": "the system", "server": "the server", "client": "the clients", "generator": "this program", "mark": "a mark"}[f.From]
	if from == "" {
		from = f.From
	}
	return name + " (" + from + ")"
}

// watched prints what was compared, what was not, and what was not watched.
func (x *Explanation) watched(p *layout.Page) {
	p.Section("Watched")
	compared := map[string][]string{}
	reasons := map[string][]string{}
	var froms, whys []string
	for _, w := range x.Watched {
		if w.NotTried == "" {
			if compared[w.From] == nil {
				froms = append(froms, w.From)
			}
			compared[w.From] = append(compared[w.From], w.Name)
			continue
		}
		if reasons[w.NotTried] == nil {
			whys = append(whys, w.NotTried)
		}
		reasons[w.NotTried] = append(reasons[w.NotTried], w.From+" "+w.Name)
	}
	if len(froms) == 0 {
		p.Note("nothing that could be compared")
	}
	for _, from := range froms {
		p.Pair("", from, strings.Join(compared[from], ", "))
	}
	if len(whys) > 0 {
		p.Section("Not compared")
		for _, why := range whys {
			p.Note(why + ": " + strings.Join(reasons[why], ", "))
		}
	}
	if len(x.NotWatched) > 0 {
		p.Section("Not watched")
		for _, m := range x.NotWatched {
			p.Note(m.What + ": " + m.Way)
		}
	}
	p.Line("")
	m := &x.Method
	text := fmt.Sprintf("Chances are those of %s shifts in time, corrected for all that was compared: the smallest possible is %s", units.FormatCount(uint64(m.Shifts)), chance(m.LeastChance))
	if length := x.EndS - x.StartS; x.intervalS > 0 && length > 0 {
		text += fmt.Sprintf(", and for a series with a value every %s about %s", duration(x.intervalS), chance(min(1, x.intervalS/length)))
	}
	p.Note(text + ". A coincidence is not a cause.")
}

// counted is "11 of 12", or "it" of a single one.
func counted(n, of int) string {
	if of == 1 {
		return "it"
	}
	if n == of {
		return fmt.Sprintf("all %d", of)
	}
	return fmt.Sprintf("%d of %d", n, of)
}

func them(n int) string {
	if n == 1 {
		return "it"
	}
	return fmt.Sprintf("the %d", n)
}

// list joins a few texts; the rest is counted.
func list(texts []string) string {
	n := len(texts) - mostListed
	if n <= 0 {
		return strings.Join(texts, "; ")
	}
	return fmt.Sprintf("%s; and %d more", strings.Join(texts[:mostListed], "; "), n)
}

func duration(s float64) string { return units.FormatDuration(units.Seconds(s)) }

// number is a time in seconds, to the hundredth.
func number(s float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", s), "0"), ".")
}

// chance is a probability as a percentage.
func chance(p float64) string { return units.FormatPercent(p) }
