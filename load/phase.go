package load

import (
	"math"
	"time"

	"carronade/measure"
)

// A phase is a span of the run that is reported separately: the warm-up, the
// measurement, or each step of a measurement with several. An event belongs to the
// phase of its due time, or of its sending if nothing schedules it.
type phase struct {
	name       string
	warm       bool
	rate       float64
	start, end time.Duration // end is Never while unknown
	from, to   uint64        // events of the schedule; to is exclusive
}

const noEnd = math.MaxUint64

// phases divides the plan into phases. With a schedule the boundaries are exact event
// numbers; without one they are times, or a number of events for a warm-up by count.
func (p *Plan) phases() []phase {
	var out []phase
	start, from := time.Duration(0), uint64(0)
	count := func(t time.Duration) uint64 {
		if p.Schedule == nil || t == Never {
			return noEnd
		}
		return p.Schedule.Count(t)
	}
	if p.WarmupTime > 0 {
		out = append(out, phase{name: measure.WarmUp, warm: true, end: p.WarmupTime, to: count(p.WarmupTime)})
		start, from = p.WarmupTime, out[0].to
	} else if p.WarmupEvents > 0 {
		out = append(out, phase{name: measure.WarmUp, warm: true, end: Never, to: p.WarmupEvents})
		from = p.WarmupEvents
	}
	end := Never
	if p.Schedule != nil {
		end = p.Schedule.End()
	}
	if p.Measurement.Time > 0 && start+p.Measurement.Time < end {
		end = start + p.Measurement.Time
	}
	to := count(end)
	if p.Measurement.Events > 0 && (p.Schedule == nil || p.Measurement.Events < to-from) {
		to = from + p.Measurement.Events
	}
	if len(p.Steps) < 2 || p.Schedule == nil {
		rate := 0.0
		if p.Schedule != nil {
			rate = p.Schedule.Rate(start)
		}
		return append(out, phase{name: measure.Measurement, rate: rate, start: start, end: end, from: from, to: to})
	}
	for _, s := range p.Steps {
		ph := phase{name: s.Name, rate: s.Rate, start: start + s.Start, end: min(start+s.End, end), from: from}
		if s.End == Never {
			ph.end = end
		}
		if ph.start >= end || from >= to {
			break
		}
		ph.to = min(count(ph.end), to)
		from = ph.to
		out = append(out, ph)
	}
	return out
}

// PhaseNames returns the names of a plan's phases by the index that batches carry: the
// warm-up, if any, then the measurement or each of its steps.
func (p *Plan) PhaseNames() []string {
	var names []string
	for _, ph := range p.phases() {
		names = append(names, ph.name)
	}
	return names
}
