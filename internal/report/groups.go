package report

import (
	"carronade/internal/layout"
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
	if len(d.Groups) == 0 {
		return
	}
	p.Section("Groups")
	t := layout.Table{Headings: 2, Elastic: []int{0}}
	t.Row("group", "consumed", "backlog", "backlog", "unread", "end to", "end to", "end to", "without")
	t.Row("", "", "at end", "most", "", "end p50", "end p99", "end max", "assignment")
	for i := range d.Groups[:min(len(d.Groups), most)] {
		g := &d.Groups[i]
		t.Row(layout.Clean(g.Name), units.FormatRate(g.EventsPerS),
			units.FormatCountShort(g.Backlog), units.FormatCountShort(g.BacklogMost), units.FormatCountShort(g.Unread),
			percentile(g.EndToEnd, 50), percentile(g.EndToEnd, 99), exact(g.EndToEnd.Largest()), seconds(g.UnassignedS))
	}
	p.Table(&t)
	if n := len(d.Groups) - most; n > 0 {
		p.Note("and " + units.FormatCount(uint64(n)) + " more")
	}
}
