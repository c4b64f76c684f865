package picture

import (
	"fmt"
	"math"
	"strconv"

	"carronade/internal/report"
	"carronade/load"
	"carronade/measure"
)

// rate makes a series of a count per second. some reports whether any row has a
// count.
func rate(rows []row, count func(*row) uint64) (x, y []float64, some bool) {
	for i := range rows {
		n := count(&rows[i])
		some = some || n > 0
		x = append(x, rows[i].middle())
		y = append(y, float64(n)/rows[i].length())
	}
	return x, y, some
}

// level makes a series of values at the ends of rows.
func level(rows []row, of func(*row) (float64, bool)) (x, y []float64) {
	for i := range rows {
		v, ok := of(&rows[i])
		if !ok {
			v = math.NaN()
		}
		x, y = append(x, rows[i].to), append(y, v)
	}
	return x, y
}

// A countLine is a line of a count per second. If reports are overlaid, the color
// is the report's.
type countLine struct {
	name   string
	tone   Tone
	dash   Dash
	always bool // otherwise only if the count is not 0 everywhere
	count  func(*row) uint64
}

func (p *plot) counts(f *Figure, i int, lines []countLine) {
	f.Middles = true
	rows := p.runs[i].rateRows()
	for _, c := range lines {
		x, y, some := rate(rows, c.count)
		if !some && !c.always {
			continue
		}
		s := Series{Name: p.seriesName(i, c.name), Tone: c.tone, Dash: c.dash, X: x, Y: y, Report: i}
		if p.several() {
			s.Tone = toneOf(i)
		}
		f.Series = append(f.Series, s)
	}
}

func offered(r *row) uint64  { return r.Offered }
func sent(r *row) uint64     { return r.Sent }
func acked(r *row) uint64    { return r.Acked }
func failed(r *row) uint64   { return r.Failed }
func consumed(r *row) uint64 { return r.Consumed }
func unknown(r *row) uint64  { return r.Unknown }
func dropped(r *row) uint64  { return r.Dropped }
func unsent(r *row) uint64   { return r.Unsent }

// throughput draws events per second.
func (p *plot) throughput() {
	f := p.overTime("throughput", "Throughput",
		"Events a second: offered by when they were due, sent by when they were sent, the rest by when they were done.",
		Axis{Label: "events a second", Unit: PerSecond, Zero: true})
	f.Limits = p.limits("", "throughput", false)
	for i, r := range p.runs {
		lines := []countLine{}
		scheduled := r.Mode == load.OpenLoop
		switch {
		case r.Mode == load.Consuming:
			lines = append(lines, countLine{name: "consumed", tone: Green, always: true, count: consumed})
		case p.several():
			if scheduled {
				lines = append(lines, countLine{name: "offered", dash: Dotted, always: true, count: offered})
			}
			main := countLine{name: "acked", always: true, count: acked}
			if r.Totals.RateOf == report.RateSent {
				main = countLine{name: "sent", always: true, count: sent}
			}
			lines = append(lines, main, countLine{name: "failed", dash: Dashed, count: failed})
		default:
			if scheduled {
				lines = append(lines, countLine{name: "offered", tone: Grey, dash: Dotted, always: true, count: offered})
			}
			lines = append(lines, countLine{name: "sent", tone: Orange, dash: Dashed, always: true, count: sent})
			if r.Totals.RateOf != report.RateSent {
				lines = append(lines, countLine{name: "acked", tone: Blue, always: true, count: acked})
			}
			lines = append(lines, countLine{name: "failed", tone: Red, dash: DashDot, count: failed},
				countLine{name: "consumed", tone: Green, dash: LongDash, count: consumed})
		}
		p.counts(&f, i, lines)
	}
	p.add(f)
}

// failures draws the events that were not acked, by outcome.
func (p *plot) failures() {
	f := p.overTime("failures", "Failures", "Events a second that were not acked, and batches that were retried, by when that was known.",
		Axis{Label: "events a second", Unit: PerSecond, Zero: true})
	for i, r := range p.runs {
		lines := []countLine{
			{name: "failed", tone: Red, count: failed},
			{name: "dropped", tone: Purple, dash: Dashed, count: dropped},
			{name: "unsent", tone: Grey, dash: LongDash, count: unsent},
			{name: "retries (batches)", tone: Blue, dash: DashDot, count: func(r *row) uint64 { return r.Retries }},
		}
		if r.Totals.RateOf != report.RateSent { // otherwise all are unknown
			lines = append(lines, countLine{name: "unknown", tone: Orange, dash: Dotted, count: unknown})
		}
		p.counts(&f, i, lines)
	}
	p.add(f)
	p.classes()
}

// classes draws the failures by error class.
func (p *plot) classes() {
	f := p.overTime("classes", "Failures by class", "Events a second that failed or are unknown, by the error.",
		Axis{Label: "events a second", Unit: PerSecond, Zero: true})
	for i, r := range p.runs {
		var all measure.Classes
		for k := range r.rows {
			all.Merge(r.rows[k].classes)
		}
		var lines []countLine
		for n, c := range all {
			line := countLine{name: c.Class, tone: []Tone{Red, Orange, Purple, Sky, Olive}[n%5], dash: Dash(n % int(dashes))}
			line.count = func(r *row) (events uint64) {
				for _, x := range r.classes {
					if x.Class == c.Class {
						events += x.Events
					}
				}
				return events
			}
			lines = append(lines, line)
		}
		p.counts(&f, i, lines)
	}
	p.add(f)
}

// maxCodes limits the lines of status codes.
const maxCodes = 8

// answers draws batches per second by the answer's status code.
func (p *plot) answers() {
	f := p.overTime("answers", "Answers by status code", "Answered batches a second.", Axis{Label: "batches a second", Unit: PerSecond, Zero: true})
	for i, r := range p.runs {
		var all measure.Statuses
		for k := range r.rows {
			all.Merge(r.rows[k].statuses)
		}
		var lines []countLine
		bad := 0
		for n, s := range all {
			c := countLine{name: strconv.Itoa(s.Code), tone: Blue, always: true}
			if s.Code >= 300 {
				c.tone, c.dash = []Tone{Red, Orange, Purple, Sky, Olive}[bad%5], Dash(1+bad%(int(dashes)-1))
				bad++
			} else if n > 0 {
				c.tone, c.dash = Green, Dashed
			}
			if p.several() {
				c.dash = Dash(n % int(dashes))
			}
			last := n == maxCodes-1 && len(all) > maxCodes
			if last {
				c.name = "others"
			}
			c.count = func(r *row) (count uint64) {
				for _, x := range r.statuses {
					if x.Code == s.Code || last && x.Code > s.Code {
						count += x.Batches
					}
				}
				return count
			}
			lines = append(lines, c)
			if last {
				break
			}
		}
		p.counts(&f, i, lines)
	}
	p.add(f)
}

// outstanding draws events in flight and their slope.
func (p *plot) outstanding() {
	f := p.overTime("outstanding", "Outstanding", "Events sent and not yet done, at the end of each interval. A slope that does not level out is a queue that grows.",
		Axis{Label: "events in flight", Unit: Events, Zero: true})
	for i, r := range p.runs {
		if r.Mode == load.Consuming || r.Totals.RateOf == report.RateSent {
			continue // nothing is in flight
		}
		x, y := level(r.rows, func(r *row) (float64, bool) { return float64(r.inFlight), true })
		s := Series{Name: p.seriesName(i, "in flight"), Tone: Blue, X: x, Y: y, Report: i}
		if p.several() {
			s.Tone = toneOf(i)
		}
		f.Series = append(f.Series, s)
		if st := r.Steady; st.Known && !p.several() {
			if from, to, ok := r.measurement(); ok {
				mean, rise := r.meanLevel(from, to), st.InFlightSlope*(to-from)
				f.Series = append(f.Series, Series{
					Name: fmt.Sprintf("slope %s events a second", Signed(st.InFlightSlope)), Tone: Orange, Dash: Dashed, Report: i,
					X: []float64{from, to}, Y: []float64{max(mean-rise/2, 0), max(mean+rise/2, 0)},
				})
			}
		}
	}
	p.add(f)
}

// meanLevel is the mean of the events in flight at the ends of intervals. These are
// drawn, so the slope is drawn through their mean. The mean over time differs if
// batches begin and end within an interval.
func (r *run) meanLevel(from, to float64) float64 {
	sum, n := 0.0, 0
	for i := range r.rows {
		if x := &r.rows[i]; x.from >= from && x.to <= to {
			sum += float64(x.inFlight)
			n++
		}
	}
	return sum / max(float64(n), 1)
}

// measurement is the time of the measurement.
func (r *run) measurement() (from, to float64, ok bool) {
	for i := range r.Phases {
		if ph := &r.Phases[i]; ph.Name == measure.Measurement && ph.EndS > ph.StartS {
			return ph.StartS, ph.EndS, true
		}
	}
	return 0, 0, false
}

// maxLogs limits the lines of logs.
const maxLogs = 6

// behind draws how far a consumer is behind the ends of the logs.
func (p *plot) behind() {
	f := p.overTime("behind", "Behind", "Consumer lag: events between what was read and the ends of the logs; with a backlog, events acked and not read.", Axis{Label: "events behind", Unit: Events, Zero: true})
	for i, r := range p.runs {
		name := "all logs"
		if r.Backlog != nil {
			name = "backlog"
		} else if r.Mode != load.Consuming {
			continue
		}
		x, y := level(r.rows, func(r *row) (float64, bool) { return float64(r.behind), r.behind >= 0 })
		s := Series{Name: p.seriesName(i, name), Tone: Blue, X: x, Y: y, Report: i}
		if p.several() {
			s.Tone = toneOf(i)
		}
		f.Series = append(f.Series, s)
		if p.several() || r.Backlog != nil || len(r.Logs) < 2 || len(r.Logs) > maxLogs {
			continue
		}
		for k := range r.Logs {
			x, y := level(r.rows, func(r *row) (float64, bool) {
				if k >= len(r.logs) || r.logs[k] < 0 {
					return 0, false
				}
				return float64(r.logs[k]), true
			})
			f.Series = append(f.Series, Series{
				Name: r.Logs[k].Log, Tone: Tone(1 + k%(int(Grey)-1)), Dash: Dash(1 + k%(int(dashes)-1)), X: x, Y: y, Report: i,
			})
		}
	}
	p.add(f)
}
