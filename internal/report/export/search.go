package export

import (
	"io"
	"strconv"

	"carronade/internal/layout"
	"carronade/internal/report"
)

// search writes what the report of a search has in place of measurements.
func (m *markdown) search(d *report.Document) {
	m.section("Trials")
	rows := d.Search.Rows()
	m.table(true, rows[0], escaped(rows[1:]))
}

// scenario writes what the report of a scenario has in place of measurements.
func (m *markdown) scenario(d *report.Document) {
	m.section("Steps")
	rows := d.Scenario.Rows()
	m.table(true, rows[0], escaped(rows[1:]))
}

// stepColumns are the columns of a scenario as CSV: a row for each step.
var stepColumns = []string{"id", "step", "name", "kind", "at", "target", "op", "start_s", "end_s", "report", "exit", "events_per_s", "result", "fault"}

// writeSteps writes the steps of scenarios.
func writeSteps(w io.Writer, rs Reports) error {
	return writeRows(w, stepColumns, rs, func(d *report.Document, put func(row ...string) error) error {
		if d.Scenario == nil {
			return &MissingError{ID: d.ID, What: "it is not a scenario, and a file has either the steps of scenarios or the series of runs"}
		}
		for i := range d.Scenario.Steps {
			s := &d.Scenario.Steps[i]
			fault := ""
			if s.Fault != nil {
				fault = s.Fault.Text
			}
			if err := put(
				d.ID, strconv.Itoa(s.Number), s.Name, s.Kind, s.At, s.Target, s.Op, number(s.StartS), number(s.EndS),
				s.Report, strconv.Itoa(s.Exit), number(s.EventsPerS), s.Result, fault,
			); err != nil {
				return err
			}
		}
		for _, m := range d.Scenario.Marks {
			if err := put(d.ID, "", "", "mark", m.At, "", "", number(m.TimeS), number(m.TimeS), "", "", "", m.Text, ""); err != nil {
				return err
			}
		}
		return nil
	})
}

// trialColumns are the columns of a search as CSV: a row for each trial and percentile.
var trialColumns = []string{
	"id", "trial", "role", "rate_per_s", "concurrency", "settle_s", "measure_s", "answered_per_s", "report", "result", "why",
	"late_share", "late_share_from", "late_share_to", "time", "percentile", "us", "from_us", "to_us",
}

// writeTrials writes the trials of searches: a row for each of the percentiles of each trial,
// and one for a trial without any.
func writeTrials(w io.Writer, rs Reports) error {
	return writeRows(w, trialColumns, rs, func(d *report.Document, put func(row ...string) error) error {
		if d.Search == nil {
			return &MissingError{ID: d.ID, What: "it is not a search, and a file has either the trials of searches or the series of runs"}
		}
		for i := range d.Search.Trials {
			t := &d.Search.Trials[i]
			row := []string{
				d.ID, strconv.Itoa(i + 1), string(t.Role), number(t.Rate), strconv.Itoa(t.Concurrency), number(t.Settle.Seconds()), number(t.Measure.Seconds()),
				number(t.Achieved), t.Report,
			}
			if v := t.Verdict; v != nil {
				row = append(row, string(v.Result), v.Why, number(v.Share), number(v.Least), number(v.Most))
			} else {
				row = append(row, "", "", "", "", "")
			}
			if len(t.Times) == 0 {
				if err := put(append(row, "", "", "", "", "")...); err != nil {
					return err
				}
			}
			for _, q := range t.Times {
				if err := put(append(row[:len(row):len(row)], q.Of, number(q.P), number(float64(q.At)/1e3), number(float64(q.Least)/1e3), number(float64(q.Most)/1e3))...); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// heading is the title of a report in Markdown.
func heading(d *report.Document) string {
	if d.Search != nil {
		return layout.Markdown("Ceiling of " + d.Target)
	}
	if d.Scenario != nil {
		return layout.Markdown("Scenario " + d.Scenario.Script)
	}
	return layout.Markdown(d.Op + " " + d.Target)
}
