package report

import (
	"fmt"
	"math"

	"carronade/internal/layout"
	"carronade/load"
	"carronade/units"
)

// members prints what each of several readers read that divide the logs, up to most.
func (d *Document) members(p *layout.Page, most int) {
	if len(d.Members) < 2 {
		return
	}
	p.Section("Members")
	t := layout.Table{Headings: 1}
	t.Row("", "consumed", "rate", "partitions", "rebalances", "without assignment")
	row := func(name string, m *load.MemberResult) {
		t.Row(name, units.FormatCount(m.Consumed), units.FormatRate(m.EventsPerS), units.FormatCount(uint64(m.Partitions)), units.FormatCount(m.Rebalances), seconds(m.UnassignedS))
	}
	for i := range d.Members[:min(len(d.Members), most)] {
		row(fmt.Sprint(i+1), &d.Members[i])
	}
	p.Table(&t)
	if n := len(d.Members) - most; n > 0 {
		p.Note(fmt.Sprintf("and %s more, in the JSON", units.FormatCount(uint64(n))))
	}
}

// briefMembers says it if members did not read alike, or if their assignments changed.
func (d *Document) briefMembers(p *layout.Page) {
	if len(d.Members) < 2 {
		return
	}
	least, most, rebalances := math.Inf(1), 0.0, uint64(0)
	for i := range d.Members {
		m := &d.Members[i]
		least, most, rebalances = min(least, m.EventsPerS), max(most, m.EventsPerS), rebalances+m.Rebalances
	}
	if rebalances == 0 && most < 2*least {
		return
	}
	p.Pair("", "members", fmt.Sprintf("%d read %s to %s each, %s", len(d.Members), units.FormatRate(least), units.FormatRate(most), units.Plural(rebalances, "changed assignment")))
}
