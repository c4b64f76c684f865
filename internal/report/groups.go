package report

import (
	"cmp"
	"slices"
	"strings"

	"carronade/internal/layout"
	"carronade/internal/verdict/trust"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/measure"
	"carronade/units"
)

// A Group is what one of several consumer groups read of the measurement's events, of which each group reads all.
type Group struct {
	Name       string  `json:"name"`
	Consumed   uint64  `json:"consumed"`
	Unread     uint64  `json:"unread"`
	EventsPerS float64 `json:"events_per_s"` // consumed while the measurement lasted
	BytesPerS  float64 `json:"bytes_per_s"`
	// Backlog is what was acked and not read when the measurement ended, BacklogMost its maximum at the ends of the
	// measurement's intervals.
	Backlog     uint64  `json:"backlog_events"`
	BacklogMost uint64  `json:"backlog_most_events"`
	UnassignedS float64 `json:"unassigned_s"` // without an assignment, the mean over the members

	EndToEnd      *measure.Summary `json:"end_to_end"`
	EndToEndLower *measure.Summary `json:"end_to_end_lower"`
	AckedToRead   *measure.Summary `json:"acked_to_read"`
}

// A GroupInterval is a group's part of a row of the series. Backlog is at its end.
type GroupInterval struct {
	Consumed    uint64  `json:"consumed"`
	Backlog     uint64  `json:"backlog_events"`
	UnassignedS float64 `json:"unassigned_s,omitempty"`
}

// groups builds the sections of the groups.
func (b *builder) groups(of []load.GroupResult) []Group {
	var all []Group
	for i := range of {
		r := &of[i]
		t := b.times(&r.Tally)
		all = append(all, Group{
			Name: r.Name, Consumed: r.Consumed, Unread: r.Unread, EventsPerS: r.EventsPerSecond(), BytesPerS: r.BytesPerSecond(),
			Backlog: r.Backlog, BacklogMost: r.MostBacklog, UnassignedS: r.Unassigned.Seconds(),
			EndToEnd: t.EndToEnd, EndToEndLower: t.EndToEndLower, AckedToRead: t.AckedToRead,
		})
	}
	return all
}

func groupIntervals(of []measure.GroupInterval) []GroupInterval {
	var all []GroupInterval
	for _, g := range of {
		all = append(all, GroupInterval{g.Consumed, g.Backlog, g.Unassigned.Seconds()})
	}
	return all
}

// GroupRows is the table of groups, with headings in the first row; nil if there are none.
func (d *Document) GroupRows() [][]string {
	if len(d.Groups) == 0 {
		return nil
	}
	rows := [][]string{{"group", "consumed", "volume", "backlog", "backlog most", "unread", "end to end p50", "end to end p99", "end to end max", "unassigned"}}
	for i := range d.Groups {
		g := &d.Groups[i]
		rows = append(rows, []string{
			layout.Clean(g.Name), units.FormatRate(g.EventsPerS), units.FormatSize(int64(g.BytesPerS)) + "/s",
			units.FormatCountShort(g.Backlog), units.FormatCountShort(g.BacklogMost), units.FormatCountShort(g.Unread),
			percentile(g.EndToEnd, 50), percentile(g.EndToEnd, 99), exact(g.EndToEnd.Largest()), seconds(g.UnassignedS),
		})
	}
	return rows
}

// mostGroups is the maximum number of rows of groups in the brief report.
const mostGroups = 5

// groups prints a row for each group, up to most.
func (d *Document) groups(p *layout.Page, most int) {
	rows := d.GroupRows()
	if rows == nil {
		return
	}
	p.Section("Groups")
	t := layout.Table{Headings: 2, Elastic: []int{0}, Middle: true}
	t.Row("group", "consumed", "backlog", "backlog", "unread", "end to", "end to", "end to", "without")
	t.Row("", "", "at end", "most", "", "end p50", "end p99", "end max", "assignment")
	for _, r := range rows[1:][:min(len(d.Groups), most)] {
		t.Row(slices.Delete(r, 2, 3)...) // without the volume
	}
	p.Table(&t)
	if n := len(d.Groups) - most; n > 0 {
		p.Note("and " + units.FormatCount(uint64(n)) + " more")
	}
}

// checkGroups adds to the check of a time that the groups have what the worst of them says: a limit on such a time
// holds if it holds for all events together, and for those of each group.
func (d *Document) checkGroups(l *workload.Limit, f finding) finding {
	if l.Stat == workload.NoStat || l.Time != "end_to_end" && l.Time != "acked_to_read" || len(d.Groups) < 2 {
		return f
	}
	worst, name := finding{holds: true}, ""
	for i := range d.Groups {
		g := &d.Groups[i]
		of := d.checkTime(l, &Times{EndToEnd: g.EndToEnd, EndToEndLower: g.EndToEndLower, AckedToRead: g.AckedToRead})
		if of.holds || !worst.holds && (worst.open != of.open && of.open || worst.value != nil && of.value != nil && *worst.value >= *of.value) {
			continue
		}
		worst, name = of, g.Name
	}
	switch {
	case worst.holds || !f.holds && worst.open:
	case f.holds || f.open:
		worst.text = "group " + layout.Clean(name) + ": " + worst.text
		return worst
	default:
		f.text += "; most in group " + layout.Clean(name) + ": " + worst.text
	}
	return f
}

// groupsKeepUp checks whether every group keeps up with writing, and names one that does not.
func (d *Document) groupsKeepUp() finding {
	end := d.measurementEnd()
	all := finding{holds: true}
	for i := range d.Groups {
		b := trust.Backlog{}
		for k := range d.Intervals {
			iv := &d.Intervals[k]
			if iv.Phase == measure.Measurement && iv.StartS < end && i < len(iv.Groups) {
				b.Add(units.Seconds(iv.EndS), units.Seconds(iv.EndS-iv.StartS), float64(iv.Groups[i].Backlog), float64(iv.Sent))
			}
		}
		known, ok, text := b.KeepsUp()
		switch {
		case !known:
			return undecided("%s", strings.TrimPrefix(text, cannotTell+": "))
		case !ok:
			return d.blame(finding{text: "group " + layout.Clean(d.Groups[i].Name) + ": " + text})
		}
		all.text = text
	}
	return all
}

// byGroup says which groups did not get every event once; "" if all did.
func (d *Document) byGroup() string {
	var parts []string
	for i := range d.Ledger.Groups {
		g := &d.Ledger.Groups[i]
		var of []string
		for _, c := range []struct {
			n    uint64
			what string
		}{{g.Lost, "lost"}, {g.Unread, "unread"}, {g.Corrupted, "corrupted"}, {g.Duplicated, "duplicated"}} {
			if c.n > 0 {
				of = append(of, units.FormatCount(c.n)+" "+c.what)
			}
		}
		if len(of) > 0 {
			parts = append(parts, layout.Clean(g.Group)+" "+strings.Join(of, ", "))
		}
	}
	return strings.Join(parts, "; ")
}

// worst is the largest, or the smallest, of a number of the groups.
func (d *Document) worst(of func(g *Group) float64, pick func(a, b float64) float64) (float64, string) {
	if len(d.Groups) == 0 {
		return 0, "the run has no groups (--groups)"
	}
	x := of(&d.Groups[0])
	for i := range d.Groups {
		x = pick(x, of(&d.Groups[i]))
	}
	return x, ""
}

// slowest names the group that read least of the measurement's events; "" if there are none.
func (d *Document) slowest() string {
	if len(d.Groups) == 0 {
		return ""
	}
	return layout.Clean(slices.MinFunc(d.Groups, func(a, b Group) int { return cmp.Compare(a.EventsPerS, b.EventsPerS) }).Name)
}
