package report

import (
	"fmt"
	"time"

	"carronade/internal/layout"
	"carronade/measure"
	"carronade/units"
)

// stageGauges are the counts of the system behind the acknowledgements, in the order of the events' way.
func (d *Document) stageGauges() (all []*Gauge) {
	for i := range d.Gauges {
		if d.Gauges[i].Stage && d.Gauges[i].After != nil {
			all = append(all, &d.Gauges[i])
		}
	}
	return all
}

// ackedBy is how many events were acked until an offset from the start of the run.
func (d *Document) ackedBy(at float64) (acked float64) {
	for i := range d.Intervals {
		if v := &d.Intervals[i]; v.EndS <= at {
			acked += float64(v.Acked)
		} else if v.StartS < at {
			acked += float64(v.Acked) * (at - v.StartS) / (v.EndS - v.StartS)
		}
	}
	return acked
}

// passedOn is the share of the acked events that the last stage had counted, over time; nil without stages.
func (d *Document) passedOn() *measure.Gauge {
	stages := d.stageGauges()
	if len(stages) == 0 {
		return nil
	}
	last := stages[len(stages)-1]
	out := &measure.Gauge{From: last.From, Name: last.Name + ", of acked", Unit: "%", Missed: last.Missed}
	share := func(count, at float64) (percent float64, ok bool) {
		acked := d.ackedBy(at)
		return 100 * count / acked, acked > 0
	}
	for _, p := range last.Points {
		if v, ok := share(p.Value, p.AtS); ok {
			out.Points = append(out.Points, measure.Point{At: time.Duration(p.AtS * float64(time.Second)), Value: v})
		}
	}
	if n := len(d.Intervals); n > 0 {
		if v, ok := share(*last.After, d.Intervals[n-1].EndS); ok {
			out.After = &v
		}
	}
	return out
}

// stages prints what the system counted of the events that it had acked.
func (d *Document) stages(p *layout.Page) {
	stages := d.stageGauges()
	if len(stages) == 0 {
		return
	}
	acked := 0.0
	if n := len(d.Intervals); n > 0 {
		acked = d.ackedBy(d.Intervals[n-1].EndS)
	}
	p.Section("Behind the acks")
	p.Pair("", "acked", wholeNumber(int64(acked+0.5)))
	for _, g := range stages {
		text := wholeNumber(int64(*g.After))
		if acked > 0 {
			text += fmt.Sprintf(", %s of acked", units.FormatPercent(*g.After/acked))
		}
		p.Pair("", g.Name, text)
	}
	p.Note("counted by the system since the run began, of all that it received")
}
