package omb

import (
	"math"
	"slices"
	"time"

	"carronade/internal/dropin"
	"carronade/internal/report"
	"carronade/load"
	"carronade/measure"
)

// A period is what a line has: rates a second, and times.
type period struct {
	middle                    time.Duration // of the span, since the run started
	published, publishedBytes float64
	failed                    float64
	consumed, consumedBytes   float64
	backlog                   float64 // messages that groups have not read, so far
	latency, delay, endToEnd  times
}

// A meter makes the lines and the lists of a result from the intervals of a run.
type meter struct {
	r   *pair
	log *logger

	phase   string   // of the last line
	periods []period // of the measurement
	all     measure.Set
}

// latency are the publish times: since messages were due. With --strict they are since batches were sent.
func (m *meter) latency(s *measure.Set) *measure.Histogram {
	if m.r.strict || s.Response == nil {
		return s.Service
	}
	return s.Response
}

// endToEnd are the times until messages were consumed.
func (m *meter) endToEnd(s *measure.Set) *measure.Histogram {
	if m.r.strict {
		return truncated(s.EndToEnd)
	}
	return s.EndToEnd
}

// interval prints the lines of an interval: one for each phase that lies in it.
func (m *meter) interval(s load.Snapshot) {
	rows := s.Rows
	if len(rows) == 0 {
		rows = []measure.Interval{s.Interval}
	}
	for i := range rows {
		if rows[i].Phase == measure.Measurement {
			m.all.Merge(&rows[i].Set)
		}
	}
	var late measure.Counts // answers to events of a phase that is over
	for i := range rows {
		if rows[i].Within == 0 && rows[i].Phase != measure.Drain {
			late.Add(rows[i].Counts)
		}
	}
	for i := range rows {
		r := &rows[i]
		if r.Within == 0 || r.Phase == measure.Drain {
			continue
		}
		counts := r.Counts
		counts.Add(late)
		late = measure.Counts{}
		m.begin(r.Phase)
		p := m.period(&counts, &r.Set, r.Within)
		p.middle = (r.Start + r.End) / 2
		p.backlog = max(0, float64(s.Total.Acked)*float64(m.r.groups)-float64(s.Total.Consumed))
		if len(m.r.a.workers) > 0 && m.r.groups > 0 {
			p.consumed, p.consumedBytes, p.backlog = math.NaN(), math.NaN(), math.NaN()
		}
		m.log.info(ofGenerator, "%s", periodLine(&p))
		if r.Phase == measure.Measurement {
			m.periods = append(m.periods, p)
		} else if s.Interval.End >= m.r.minutes(m.r.warmup) {
			m.begin(measure.Measurement)
		}
	}
}

// consumed replaces what consumers read by what the report says: with workers it is known only at the end. An interval
// of a report may have the length of several periods, which then share its rate.
func (m *meter) consumed(d *report.Document) {
	rows := slices.DeleteFunc(slices.Clone(d.Intervals), func(iv report.Interval) bool { return iv.Phase != measure.Measurement || iv.WithinS == 0 })
	for i := range m.periods {
		p := &m.periods[i]
		for len(rows) > 1 && rows[0].EndS <= p.middle.Seconds() {
			rows = rows[1:]
		}
		if len(rows) == 0 {
			return
		}
		p.consumed = dropin.PerSecond(float64(rows[0].Consumed), rows[0].WithinS)
		p.consumedBytes = p.consumed * float64(m.r.size)
		p.endToEnd.reported(rows[0].EndToEnd)
	}
}

// first is the phase in which a run begins.
func (m *meter) first() string {
	if m.r.minutes(m.r.warmup) > 0 {
		return measure.WarmUp
	}
	return measure.Measurement
}

// begin prints that a phase begins.
func (m *meter) begin(phase string) {
	if phase == m.phase {
		return
	}
	m.phase = phase
	switch phase {
	case measure.WarmUp:
		m.log.info(ofGenerator, "----- Starting warm-up traffic (%sm) ------", shortNumber(m.r.minutes(m.r.warmup).Minutes()))
	case measure.Measurement:
		m.log.info(ofGenerator, "----- Starting benchmark traffic (%sm)------", shortNumber(m.r.minutes(m.r.lasts).Minutes()))
	}
}

// backlog prints that a stage of a backlog began, and how long the one before took.
func (m *meter) backlog(state string, took time.Duration) {
	switch state {
	case report.BacklogBuilding:
		m.log.info(ofGenerator, "Stopping all consumers to build backlog")
		m.log.info(ofWorker, "Pausing consumers")
	case report.BacklogDraining:
		m.log.info(ofGenerator, "--- Completed backlog build in %s s ---", dropin.JavaDouble(took.Seconds()))
		m.log.info(ofGenerator, "--- Start draining backlog ---")
		m.log.info(ofWorker, "Resuming consumers")
	case report.BacklogDrained:
		m.log.info(ofGenerator, "--- Completed backlog draining in %s s ---", dropin.JavaDouble(took.Seconds()))
	}
}

// period is what counts and times of a span of time are.
func (m *meter) period(c *measure.Counts, s *measure.Set, within time.Duration) period {
	size := float64(m.r.size)
	p := period{
		published: dropin.Per(float64(c.Acked), within), failed: dropin.Per(float64(c.Failed+c.Unknown), within), consumed: dropin.Per(float64(c.Consumed), within),
		latency: timesOf(m.latency(s)), delay: timesOf(s.SendDelay), endToEnd: timesOf(m.endToEnd(s)),
	}
	p.publishedBytes, p.consumedBytes = p.published*size, p.consumed*size
	return p
}

// end prints the line at the end, and returns the result.
func (m *meter) end(d *report.Document) *result {
	latency, delay, endToEnd := timesOf(m.latency(&m.all)), timesOf(m.all.SendDelay), timesOf(m.endToEnd(&m.all))
	latency.withQuantiles(m.latency(&m.all))
	delay.withQuantiles(m.all.SendDelay)
	endToEnd.withQuantiles(m.endToEnd(&m.all))
	if len(m.r.a.workers) > 0 && m.r.groups > 0 {
		m.consumed(d)
		endToEnd.quantilesOf(d.EndToEnd)
	}
	if !m.r.strict {
		latency.reported(d.Response)
		delay.reported(d.SendDelay)
		endToEnd.reported(d.EndToEnd)
	}
	m.log.info(ofGenerator, "%s", totalLine(&latency, &delay))
	return &result{pair: m.r, periods: m.periods, latency: latency, delay: delay, endToEnd: endToEnd}
}
