package report

import (
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"
	"time"

	"carronade/internal/layout"
	"carronade/measure"
	"carronade/units"
)

// A System is the system under test, if the run started or found it, watched it and stopped
// it.
type System struct {
	// Facts describe it: command, flags, branch, revision, limits.
	Facts map[string]any `json:"facts"`

	Died      bool     `json:"died"`
	Exit      string   `json:"exit"`
	LastLines []string `json:"last_lines"`
	Output    *Output  `json:"output,omitempty"` // nil: it was not started by the run, or printed nothing

	// BuildOutput is the end of what its build printed, also if that was built before the run;
	// nil: the run built nothing, or the build printed nothing.
	BuildOutput *Output `json:"build_output,omitempty"`

	PeakRSSBytes uint64  `json:"peak_rss_bytes"`
	CPUS         float64 `json:"cpu_s"`

	EventsPerCPUS *float64 `json:"events_per_cpu_s"`
	Efficiency    *float64 `json:"memory_efficiency"`

	GCPauses    int     `json:"gc_pauses"`
	GCPauseS    float64 `json:"gc_pause_s"`
	GCPauseMaxS float64 `json:"gc_pause_max_s"`
}

// An Indexed is the number of documents that arrived in a store behind the system.
type Indexed struct {
	Where    string   `json:"where"`
	Store    string   `json:"store"`
	Nodes    int      `json:"nodes,omitempty"`
	Pattern  string   `json:"pattern"`
	Before   uint64   `json:"before"`
	After    uint64   `json:"after"`
	Docs     int64    `json:"documents"`
	Expected uint64   `json:"expected"`
	Share    *float64 `json:"share"`
	PerS     float64  `json:"documents_per_s"`
	WaitedS  float64  `json:"waited_s"`
	Still    bool     `json:"still"`
	Queued   *float64 `json:"queued"`

	HealthBefore string `json:"health_before"`
	HealthAfter  string `json:"health_after"`
	Note         string `json:"note"`
}

func indexed(x *measure.Indexed) *Indexed {
	if x == nil {
		return nil
	}
	out := &Indexed{
		Where: x.Address, Store: x.Store, Nodes: x.Nodes, Pattern: x.Pattern, Before: x.Before, After: x.After, Docs: x.Documents(),
		Expected: x.Expected, PerS: x.Rate(), WaitedS: x.Waited.Seconds(), Still: x.Stable, Queued: x.Queued,
		HealthBefore: x.HealthBefore, HealthAfter: x.HealthAfter, Note: x.Note,
	}
	if s, ok := x.Share(); ok {
		out.Share = &s
	}
	return out
}

// answers prints the number of batches by status code.
func (d *Document) answers(p *layout.Page) {
	all := d.Totals.Statuses
	if len(all) == 0 {
		return
	}
	var batches uint64
	for _, s := range all {
		batches += s.Batches
	}
	p.Section("Answers")
	t := layout.Table{Headings: 1, Elastic: []int{0}, Middle: true}
	t.Row("status", "batches", "share", "a second", "events")
	var events uint64
	row := func(name string, n, of uint64) {
		t.Row(name, units.FormatCount(n), share(n, batches), d.rateText(d.Totals.AnswerRate(n)), units.FormatCount(of))
	}
	for _, s := range all {
		events += s.Events
		row(strconv.Itoa(s.Code), s.Batches, s.Events)
	}
	row("total", batches, events)
	p.Table(&t)
	p.Note("of the batches of the measurement that were answered")
	if d.Totals.ElapsedS > 0 {
		_, pushed, wire := d.Totals.SendRates()
		p.Pair("", "pushed", volume(pushed, d.Totals.Bytes)+" of events, "+volume(wire, d.Totals.WireBytes)+" on the wire")
		p.Pair("", "accepted", volume(d.Totals.BytesPerS, d.Totals.AckedBytes)+" of events")
	}
}

// rateText is a rate in the measurement, if that has a length.
func (d *Document) rateText(perS float64) string {
	if d.Totals.ElapsedS <= 0 {
		return "-"
	}
	return units.FormatRate(perS)
}

// volume formats a rate in the measurement, and the bytes in total.
func volume(perS float64, bytes uint64) string {
	return fmt.Sprintf("%s/s (%s)", units.FormatSize(int64(perS)), units.FormatSize(int64(bytes)))
}

// indexedText prints what the store behind the system contained.
func (d *Document) indexedText(p *layout.Page) {
	x := d.Indexed
	if x == nil {
		return
	}
	p.Section("Indexed")
	what := fmt.Sprintf("%s documents", wholeNumber(x.Docs))
	if x.Share != nil {
		what += fmt.Sprintf(", %.2f%% of the %s expected", 100**x.Share, units.FormatCount(x.Expected))
	}
	if x.PerS > 0 {
		what += ", " + units.FormatRate(x.PerS)
	}
	p.Pair("", "indexed", what)
	if text := d.refusedText(); text != "" {
		p.Pair(layout.Yellow, "refused", text+", which are not indexed")
	}
	p.Pair("", "in", fmt.Sprintf("%s: %s before, %s after", strings.ReplaceAll(x.Pattern, ",", ", "), units.FormatCount(x.Before), units.FormatCount(x.After)))
	p.Pair("", "store", joinNonEmpty(x.Store, x.Where, x.nodes(), health(x.HealthBefore, x.HealthAfter)))
	p.Pair("", "waited", x.waited())
	if x.Note != "" {
		p.Pair(layout.Yellow, "note", x.Note)
	}
}

// waited is how long the run waited for the count.
func (x *Indexed) waited() string {
	text := "the count stopped rising after " + seconds(x.WaitedS)
	if !x.Still {
		text = "the count was still rising after " + seconds(x.WaitedS) + ": more may have come later"
	}
	if x.Queued != nil {
		queued := "nothing"
		if *x.Queued > 0 {
			queued = units.Plural(uint64(*x.Queued), "event")
		}
		text += "; the system's own queue had " + queued + " left"
	}
	return text
}

func (x *Indexed) nodes() string {
	if x.Nodes == 0 {
		return ""
	}
	return units.Plural(uint64(x.Nodes), "node")
}

func health(before, after string) string {
	switch {
	case before == "" && after == "":
		return ""
	case before == after:
		return "health " + after
	}
	return "health " + orWord(before, "unknown") + ", then " + orWord(after, "unknown")
}

// underTest prints the system under test.
func (d *Document) underTest(p *layout.Page) {
	s := d.System
	if s == nil || !s.Died && len(s.Facts) == 0 && s.PeakRSSBytes == 0 && s.CPUS == 0 && s.GCPauses == 0 && s.Output == nil && s.BuildOutput == nil {
		return // its own metrics are among the gauges
	}
	p.Section("System under test")
	if s.Died {
		s.death(p)
	}
	for _, c := range s.what() {
		p.Pair("", c.Name, c.Text)
	}
	d.outputText(p)
	if s.PeakRSSBytes > 0 {
		p.Pair("", "memory", size(s.PeakRSSBytes)+" resident at most, in this run")
	}
	if s.CPUS > 0 {
		text := seconds(s.CPUS) + " of processor time"
		if s.EventsPerCPUS != nil {
			text += fmt.Sprintf(", %s acked per core", units.FormatRate(*s.EventsPerCPUS))
		}
		p.Pair("", "CPU", text)
	}
	if s.Efficiency != nil {
		a := *s.Efficiency * float64(s.PeakRSSBytes)
		p.Pair("", "efficiency", fmt.Sprintf("%s of memory: %s a minute accepted, before compression, over its peak", ratio(*s.Efficiency), size(uint64(a))))
	}
	if s.GCPauses > 0 {
		p.Pair("", "collector", fmt.Sprintf("%s, %s in all, the longest %s", units.Plural(s.GCPauses, "pause"), seconds(s.GCPauseS), seconds(s.GCPauseMaxS)))
	}
}

// death prints how the system ended during the run.
func (s *System) death(p *layout.Page) {
	p.Pair(layout.Red, "DIED", "the system under test ended by itself: "+s.Exit)
	s.lastLines(p, "")
}

// lastLines prints the last lines of the system's output.
func (s *System) lastLines(p *layout.Page, label string) {
	for _, l := range s.LastLines[max(0, len(s.LastLines)-briefLines):] {
		p.Pair("", label, "| "+layout.Clean(l))
		label = ""
	}
}

// what are the properties of the system: known ones with fixed labels, all others by name.
func (s *System) what() []Condition {
	var out []Condition
	f := facts(maps.Clone(s.Facts))
	for _, name := range []string{"command", "engine", "image", "container"} {
		if text, ok := f.take(name); ok {
			out = append(out, Condition{name, text})
		}
	}
	for _, row := range []Condition{
		{"flags", f.flags()}, {"branch", f.text("branch")}, {"revision", f.revision()}, {"build", f.build()}, {"limits", f.limits()}, {"process", f.process()},
	} {
		if row.Text != "" {
			out = append(out, row)
		}
	}
	for _, k := range sortedKeys(f) {
		out = append(out, Condition{strings.ReplaceAll(k, "_", " "), fact(f[k])})
	}
	return out
}

// Software are the versions and properties of all programs in a run: the generator, the
// target as it describes itself, and the system under test if the run started or found it.
// A fact with parts has a row for each, so that runs can be compared.
func (d *Document) Software() []Condition {
	out := []Condition{{"generator", strings.TrimSpace("carronade " + d.Version)}, {"target", d.Target}}
	for _, k := range sortedKeys(d.Facts) {
		name := strings.ReplaceAll(k, "_", " ")
		parts, ok := d.Facts[k].(map[string]any)
		if !ok {
			out = append(out, Condition{name, fact(d.Facts[k])})
		}
		for _, part := range sortedKeys(parts) {
			out = append(out, Condition{name + " " + strings.ReplaceAll(part, "_", " "), fact(parts[part])})
		}
	}
	if d.System != nil {
		for _, c := range d.System.what() {
			if c.Name != "process" && c.Name != "build" { // of the one run
				out = append(out, Condition{"system " + c.Name, c.Text})
			}
		}
	}
	return out
}

// facts are the properties that were not printed yet.
type facts map[string]any

// take removes a fact and returns it as text.
func (f facts) take(name string) (text string, ok bool) {
	v, ok := f[name]
	if !ok {
		return "", false
	}
	delete(f, name)
	return fact(v), true
}

func (f facts) text(name string) string {
	text, _ := f.take(name)
	return text
}

// number removes a fact, and returns it if it is a number.
func (f facts) number(name string) (n float64, ok bool) {
	v, ok := f[name]
	delete(f, name)
	switch x := v.(type) {
	case int:
		return float64(x), ok
	case int64:
		return float64(x), ok
	case float64: // after JSON decoding
		return x, ok
	}
	return 0, false
}

// isTrue removes a fact, and returns whether it is true.
func (f facts) isTrue(name string) bool {
	is, _ := f[name].(bool)
	delete(f, name)
	return is
}

func (f facts) flags() string {
	flags, ok := f["flags"].(map[string]any)
	if !ok {
		return ""
	}
	delete(f, "flags")
	var parts []string
	for _, k := range sortedKeys(flags) {
		parts = append(parts, fmt.Sprintf("%s=%v", k, flags[k]))
	}
	return strings.Join(parts, ", ")
}

// revision formats the checked-out revision, with its date and uncommitted changes.
func (f facts) revision() string {
	text, ok := f.take("revision")
	if !ok {
		return ""
	}
	if date, ok := f.take("revision_date"); ok {
		if at, err := time.Parse(time.RFC3339, date); err == nil {
			date = at.UTC().Format(time.DateTime) + " UTC"
		}
		text += " of " + date
	}
	if f.isTrue("unstaged_changes") {
		text += ", and unstaged changes"
	}
	return text
}

func (f facts) build() string {
	took, ok := f.number("build_s")
	switch {
	case !ok:
		return ""
	case f.isTrue("build_cached"):
		return "was reused from an earlier run"
	}
	return "took " + seconds(took)
}

func (f facts) limits() string {
	var limits []string
	if n, ok := f.number("memory_limit_bytes"); ok {
		limits = append(limits, size(uint64(n))+" of memory")
	}
	if n, ok := f.number("cpu_limit"); ok {
		limits = append(limits, strconv.FormatFloat(n, 'g', -1, 64)+" processors")
	}
	return strings.Join(limits, ", ")
}

func (f facts) process() string {
	text := f.text("process")
	if pid, ok := f.number("pid"); ok {
		text = joinNonEmpty(text, fmt.Sprintf("pid %.0f", pid))
	}
	if after, ok := f.number("ready_after_s"); ok && after >= 0.001 {
		text = joinNonEmpty(text, "ready after "+seconds(after))
	}
	return text
}

// ratio prints a plain number with three significant digits.
func ratio(v float64) string {
	if math.Abs(v) < 0.9995 {
		return strconv.FormatFloat(v, 'f', 3, 64)
	}
	return figure(v)
}

func size(n uint64) string { return units.FormatSize(int64(min(n, math.MaxInt64))) }
