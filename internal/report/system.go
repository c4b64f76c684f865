package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"carronade/measure"
	"carronade/units"
)

// A System is the system under test, where it belonged to the run: started or
// found, watched, and stopped by it.
type System struct {
	// Facts are what it is: command, flags, branch, revision, limits.
	Facts map[string]any `json:"facts"`

	Died      bool     `json:"died"`
	Exit      string   `json:"exit"`
	LastLines []string `json:"last_lines"`

	PeakRSSBytes uint64  `json:"peak_rss_bytes"`
	CPUS         float64 `json:"cpu_s"`

	EventsPerCPUS *float64 `json:"events_per_cpu_s"`
	Efficiency    *float64 `json:"memory_efficiency"`

	GCPauses    int     `json:"gc_pauses"`
	GCPauseS    float64 `json:"gc_pause_s"`
	GCPauseMaxS float64 `json:"gc_pause_max_s"`
}

// An Indexed is what arrived in a store behind the system.
type Indexed struct {
	Where    string   `json:"where"`
	Store    string   `json:"store"`
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
		Where: x.Where, Store: x.Store, Pattern: x.Pattern, Before: x.Before, After: x.After, Docs: x.Documents(),
		Expected: x.Expected, PerS: x.Rate(), WaitedS: x.Waited.Seconds(), Still: x.Still, Queued: x.Queued,
		HealthBefore: x.HealthBefore, HealthAfter: x.HealthAfter, Note: x.Note,
	}
	if s, ok := x.Share(); ok {
		out.Share = &s
	}
	return out
}

// answers is how often each status code came.
func (d *Document) answers(p *page) {
	all := d.Totals.Statuses
	if len(all) == 0 {
		return
	}
	var shots uint64
	for _, s := range all {
		shots += s.Shots
	}
	p.section("Answers")
	var t table
	t.row("status", "shots", "share", "per second", "events")
	for _, s := range all {
		rate := "-"
		if d.Totals.ElapsedS > 0 {
			rate = figure(float64(s.Shots) / d.Totals.ElapsedS)
		}
		t.row(strconv.Itoa(s.Code), units.FormatCount(s.Shots), share(s.Shots, shots), rate, units.FormatCount(s.Events))
	}
	p.table(&t, 1)
	p.note("of the shots of the hold that were answered")
}

// indexedText is what the store behind the system came to hold.
func (d *Document) indexedText(p *page) {
	x := d.Indexed
	if x == nil {
		return
	}
	p.section("Indexed")
	what := fmt.Sprintf("%s documents", whole(x.Docs))
	if x.Share != nil {
		what += fmt.Sprintf(", %.2f%% of the %s expected", 100**x.Share, units.FormatCount(x.Expected))
	}
	if x.PerS > 0 {
		what += fmt.Sprintf(", %s/s", figure(x.PerS))
	}
	p.pair("indexed", what)
	p.pair("before, after", units.FormatCount(x.Before)+", "+units.FormatCount(x.After)+" in "+x.Pattern)
	p.pair("store", joinNonEmpty(x.Store, x.Where, health(x.HealthBefore, x.HealthAfter)))
	waited := "the count stood still after " + seconds(x.WaitedS)
	if !x.Still {
		waited = "the count had not come to rest after " + seconds(x.WaitedS) + ": more may have come later"
	}
	if x.Queued != nil {
		waited += fmt.Sprintf("; the system still held %s", figure(*x.Queued))
	}
	p.pair("waited", waited)
	if x.Note != "" {
		p.pairIn(yellow, "note", x.Note)
	}
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

// underTest is the system under test, where it belonged to the run.
func (d *Document) underTest(p *page) {
	s := d.System
	if s == nil {
		return
	}
	p.section("System under test")
	if s.Died {
		p.pairIn(red, "DIED", "it ended by itself: "+s.Exit)
		for _, l := range s.LastLines[max(0, len(s.LastLines)-5):] {
			p.pair("", "| "+clean(l))
		}
	}
	for _, k := range sortedKeys(s.Facts) {
		p.pair(strings.ReplaceAll(k, "_", " "), fact(s.Facts[k]))
	}
	if s.PeakRSSBytes > 0 {
		p.pair("memory", units.FormatSize(int64(min(s.PeakRSSBytes, math.MaxInt64)))+" resident at most, in this run")
	}
	if s.CPUS > 0 {
		text := seconds(s.CPUS) + " of processor time"
		if s.EventsPerCPUS != nil {
			text += fmt.Sprintf(", %s acked events/s per core", figure(*s.EventsPerCPUS))
		}
		p.pair("CPU", text)
	}
	if s.Efficiency != nil {
		p.pair("efficiency", figure(*s.Efficiency)+" (accepted bytes a minute, before compression, over peak memory)")
	}
	if s.GCPauses > 0 {
		p.pair("collector", fmt.Sprintf("%s, %s in all, the longest %s", plural(uint64(s.GCPauses), "pause"), seconds(s.GCPauseS), seconds(s.GCPauseMaxS)))
	}
}
