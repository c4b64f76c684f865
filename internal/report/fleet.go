package report

import (
	"fmt"
	"strconv"
	"time"

	"carronade/internal/layout"
	"carronade/load"
	"carronade/measure"
	"carronade/units"
)

// A Fleet describes the generators of a run that several fired together.
type Fleet struct {
	SkewUS float64 `json:"skew_us"` // the starts of any two differ by at most this
	// EndToEndBoundUS is by how much end-to-end times may be wrong, since a generator that
	// sends and the one that reads have two clocks; 0 if there are none of several generators.
	EndToEndBoundUS float64 `json:"end_to_end_bound_us,omitempty"`
	Agents          []Agent `json:"agents"`
	// Limit is the name of the generator that was the limit; "" if none was.
	Limit string `json:"limit,omitempty"`
}

// An Agent is one of several generators.
type Agent struct {
	Name    string        `json:"name"`
	Version string        `json:"version,omitempty"` // of the program
	From    int           `json:"from"`              // its clients: From up to To, To excluded
	To      int           `json:"to"`
	Reads   bool          `json:"reads,omitempty"` // it sends nothing, and reads what the others send
	State   string        `json:"state"`           // "complete", or what happened to it
	Fault   string        `json:"fault,omitempty"`
	Level   measure.Level `json:"level"` // trust in it alone

	// Its clock minus that of the program that commanded the run, and how wrong that is at
	// most, at the start and at the end.
	ClockOffsetUS   float64 `json:"clock_offset_us"`
	ClockBoundUS    float64 `json:"clock_bound_us"`
	ClockBoundEndUS float64 `json:"clock_bound_end_us"`
	ShortestRTTUS   float64 `json:"shortest_rtt_us"`

	measure.Counts
	ElapsedS     float64 `json:"elapsed_s"`
	EventsPerS   float64 `json:"events_per_s"`
	SendDelayP99 float64 `json:"send_delay_p99_us"`
	Processors   int     `json:"processors"`
	CPUShare     float64 `json:"cpu_share"` // of its processors
	Busy         float64 `json:"busy"`
}

// Measured adds what an agent measured.
func (a *Agent) Measured(r *load.Result, processors int) {
	m := &r.Measurement
	a.Counts, a.ElapsedS, a.EventsPerS = m.Counts, m.Length().Seconds(), m.EventsPerSecond()
	if r.Unanswered {
		a.EventsPerS, _, _ = m.SentPerSecond()
	}
	a.SendDelayP99 = measure.Micros(m.SendDelay.Percentile(99))
	if m.SendDelay.Count() == 0 {
		a.SendDelayP99 = 0
	}
	a.Processors, a.Busy = processors, r.Busy
	if processors > 0 && a.ElapsedS > 0 {
		a.CPUShare = r.Usage.CPU.Seconds() / (a.ElapsedS * float64(processors))
	}
}

// fleetOf returns nil without agents.
func fleetOf(agents []Agent, skew, apart time.Duration) *Fleet {
	if len(agents) == 0 {
		return nil
	}
	f := &Fleet{SkewUS: measure.Micros(skew), EndToEndBoundUS: measure.Micros(apart), Agents: agents}
	for i := range agents {
		if agents[i].Level == measure.NotTrusted && f.Limit == "" {
			f.Limit = agents[i].Name
		}
	}
	return f
}

// FleetTable is the table of the generators: its head, a row for each, and remarks. It is
// empty if this program alone generated the load.
func (d *Document) FleetTable() (head []string, rows [][]string, remarks []string) {
	f := d.Fleet
	if f == nil {
		return nil, nil, nil
	}
	head = []string{"generator", "clients", "sent", "acked", "events/s", "send delay p99", "CPU", "trust"}
	reads := d.Mode == load.Consuming
	if reads {
		head = []string{"generator", "clients", "consumed", "events/s", "CPU", "trust"}
	}
	bound := 0.0
	for i := range f.Agents {
		a := &f.Agents[i]
		delay := "-"
		if a.SendDelayP99 > 0 {
			delay = units.FormatDuration(nanos(a.SendDelayP99))
		}
		level := string(a.Level)
		if a.State != "complete" {
			level = a.State
		}
		clients := strconv.Itoa(a.To - a.From)
		if a.Reads {
			clients = "reads"
		}
		row := []string{layout.Clean(a.Name), clients}
		if a.Reads {
			row = append(row, "-", "-", units.FormatRate(a.EventsPerS), "-")
		} else if reads {
			row = append(row, units.FormatCount(a.Consumed), units.FormatRate(a.EventsPerS))
		} else {
			row = append(row, units.FormatCount(a.Sent), units.FormatCount(a.Acked), units.FormatRate(a.EventsPerS), delay)
		}
		rows = append(rows, append(row, units.FormatPercent(a.CPUShare), level))
		if a.Fault != "" {
			remarks = append(remarks, layout.Clean(a.Name+": "+a.Fault))
		}
		bound = max(bound, a.ClockBoundUS, a.ClockBoundEndUS)
	}
	if f.SkewUS > 0 {
		remarks = append(remarks, fmt.Sprintf("they started at most %s apart; their clocks are known to within %s",
			units.FormatDuration(nanos(f.SkewUS)), units.FormatDuration(nanos(bound))))
	}
	if f.EndToEndBoundUS > 0 {
		remarks = append(remarks, fmt.Sprintf("end-to-end times are between two clocks: each is right to within %s", units.FormatDuration(nanos(f.EndToEndBoundUS))))
	}
	if d.Mode == load.ClosedLoop {
		remarks = append(remarks, "each had its part of the concurrency: callers of one do not wait for those of another, so queues differ from those of a single generator")
	}
	return head, rows, remarks
}

func nanos(us float64) time.Duration { return time.Duration(us * float64(time.Microsecond)) }

// fleet prints the table of the generators.
func (d *Document) fleet(p *layout.Page) {
	head, rows, remarks := d.FleetTable()
	if head == nil {
		return
	}
	p.Section("Generators")
	t := layout.Table{Headings: 1, Elastic: []int{0}}
	t.Row(head...)
	for _, row := range rows {
		t.Row(row...)
	}
	p.Table(&t)
	for _, r := range remarks {
		p.Note(r)
	}
}
