package report

import (
	"fmt"
	"slices"
	"strings"

	"carronade/internal/layout"
	"carronade/load"
	"carronade/measure"
	"carronade/units"
)

// A Time is one of the times of a run, with its summary.
type Time struct {
	Name    string // in fields, files and flags: "end_to_end"
	Title   string // for people: "end to end"
	Of      string // what is timed: "an event", "a batch"
	Meaning string // in about five words
	Main    bool   // a time of the system, shown first

	Sum *measure.Summary // nil: the run has no such time
	// AtMost are the percentiles that the generator may have lengthened: they are only upper bounds.
	AtMost []float64
}

// times are all times, in the order of importance to users.
var times = []struct {
	Time
	of  func(*Times) *measure.Summary
	row func(*Interval) *measure.Summary // nil: intervals have only a histogram of it
}{
	{
		Time{Name: "response", Title: "response", Of: "an event", Meaning: "from due to its answer", Main: true},
		func(t *Times) *measure.Summary { return t.Response }, func(iv *Interval) *measure.Summary { return iv.Response },
	},
	{
		Time{Name: "service", Title: "service", Of: "a batch", Meaning: "from sent to its answer", Main: true},
		func(t *Times) *measure.Summary { return t.Service }, func(iv *Interval) *measure.Summary { return iv.Service },
	},
	{
		Time{Name: "end_to_end", Title: "end to end", Of: "an event", Meaning: "until a consumer had it", Main: true},
		func(t *Times) *measure.Summary { return t.EndToEnd }, func(iv *Interval) *measure.Summary { return iv.EndToEnd },
	},
	{
		Time{Name: "acked_to_read", Title: "acked to read", Of: "an event", Meaning: "from its answer to a group"},
		func(t *Times) *measure.Summary { return t.AckedToRead }, nil,
	},
	{
		Time{Name: "send_delay", Title: "send delay", Of: "an event", Meaning: "the generator's lateness"},
		func(t *Times) *measure.Summary { return t.SendDelay }, func(iv *Interval) *measure.Summary { return iv.SendDelay },
	},
	{
		Time{Name: "batching", Title: "batching", Of: "an event", Meaning: "waited for its batch"},
		func(t *Times) *measure.Summary { return t.Batching }, nil,
	},
	{
		Time{Name: "queueing", Title: "queueing", Of: "a batch", Meaning: "in-flight limit reached"},
		func(t *Times) *measure.Summary { return t.Queueing }, nil,
	},
	{
		Time{Name: failedService, Title: "failed service", Of: "a batch", Meaning: "from sent to its failure"},
		func(t *Times) *measure.Summary { return t.FailedService }, nil,
	},
}

// failedService is shown with the failures.
const failedService = "failed_service"

// All are the times of the measurement, of a step or of a phase, in the order of importance to
// users.
func (t *Times) All() []Time {
	out := make([]Time, len(times))
	for i := range times {
		out[i] = times[i].Time
		out[i].Sum = times[i].of(t)
	}
	return out
}

// Measured are the times of All with at least one value.
func (t *Times) Measured() []Time {
	return slices.DeleteFunc(t.All(), func(t Time) bool { return t.Sum.IsEmpty() })
}

// MainTime is the first of the Main times with a value, by which reports are compared. It is
// empty if there is none.
func (t *Times) MainTime() Time { return mainOf(t.Measured()) }

func mainOf(ts []Time) Time {
	for _, c := range ts {
		if c.Main {
			return c
		}
	}
	return Time{}
}

// Measured are the times of the measurement with at least one value, and which of their percentiles are
// only upper bounds.
func (d *Document) Measured() []Time {
	out := d.Times.Measured()
	for i := range out {
		out[i].AtMost = d.atMost(out[i].Name, "")
	}
	return out
}

// atMost are the percentiles of a time of the measurement, or of a step, that the generator may have lengthened.
func (d *Document) atMost(time, step string) (ps []float64) {
	for i := range d.Trust.Bounds {
		if b := &d.Trust.Bounds[i]; b.Time == time && b.Step == step {
			ps = append(ps, b.P)
		}
	}
	return ps
}

// MainTime is that of the measurement.
func (d *Document) MainTime() Time { return mainOf(d.Measured()) }

// TimeNames are the names of all times, the Main ones first.
func TimeNames() []string {
	names := make([]string, len(times))
	for i := range times {
		names[i] = times[i].Name
	}
	return names
}

// named returns a time by the name of its histogram.
func (t *Times) named(name string) *measure.Summary {
	for i := range times {
		if times[i].Name == name {
			return times[i].of(t)
		}
	}
	return nil
}

// Time returns a time of the interval by its name; nil if the run has no such time, or
// intervals have no summary of it.
func (iv *Interval) Time(name string) *measure.Summary {
	for i := range times {
		if times[i].Name == name && times[i].row != nil {
			return times[i].row(iv)
		}
	}
	return nil
}

// TimeRows is the table of times: a column per time, a row per number, whose name is in the
// first cell. Cells are padded so that numbers align.
func TimeRows(cols []Time) [][]string {
	if len(cols) == 0 {
		return nil
	}
	var rows [][]string
	line := func(name string, cell func(t *Time) string) {
		row := []string{name}
		for i := range cols {
			row = append(row, cell(&cols[i]))
		}
		rows = append(rows, row)
	}
	line("mean", func(t *Time) string { return exact(t.Sum.Average()) })
	line("min", func(t *Time) string { return exact(measure.Value{D: micro(t.Sum.Min)}, t.Sum.Count > 0) })
	for _, v := range cols[0].Sum.Percentiles {
		line(measure.PercentileName(v.P), func(t *Time) string { return t.percentile(v.P) })
	}
	line("max", func(t *Time) string { return exact(t.Sum.Largest()) })
	line("count", func(t *Time) string { return units.FormatCountShort(t.Sum.Count) })
	return rows
}

// percentile prints a percentile for a column, with <= if it is only an upper bound.
func (t *Time) percentile(p float64) string {
	text := percentile(t.Sum, p)
	if slices.Contains(t.AtMost, p) && !strings.HasPrefix(text, ">") {
		return "<= " + text
	}
	return text
}

// percentile prints a percentile for a column; a dash where there is none.
func percentile(s *measure.Summary, p float64) string {
	v, ok := s.At(p)
	if !ok {
		return "-"
	}
	return value(v)
}

// exact formats a mean, minimum or maximum; a dash if there is none. Unlike a percentile it may be
// beyond the range.
func exact(v measure.Value, ok bool) string {
	switch text := clock(measure.Micros(v.D)); {
	case !ok:
		return "-"
	case v.AtLeast:
		return ">= " + text
	default:
		return text
	}
}

// The number of percentiles that fit a screen, with and without meanings of the times.
const (
	mostPercentiles    = 7
	explainPercentiles = 4
)

// timeTable is the brief table: a row for each time, a column for each percentile. It leaves
// out the meanings if it would be wider than the screen, as with many lower bounds.
func timeTable(cols []Time) *layout.Table {
	ps := briefOf(cols)
	if len(ps) <= explainPercentiles {
		t := timeTableOf(cols, ps, true)
		if !slices.ContainsFunc(t.Lines(layout.Columns-2, layout.Style{}), func(line string) bool { return layout.Width(line) > layout.Columns-2 }) {
			return t
		}
	}
	return timeTableOf(cols, ps, false)
}

// briefOf are the percentiles of the brief table.
func briefOf(cols []Time) []float64 {
	var ps []float64
	brief, standard := measure.PercentilesOf(measure.Brief), measure.StandardPercentiles()
	for _, v := range cols[0].Sum.Percentiles {
		if slices.Contains(brief, v.P) || !slices.Contains(standard, v.P) {
			ps = append(ps, v.P)
		}
	}
	return ps[max(0, len(ps)-mostPercentiles):]
}

// timeTableOf is the brief table with these percentiles, and with the meanings of the times or not.
func timeTableOf(cols []Time, ps []float64, explain bool) *layout.Table {
	t := &layout.Table{Headings: 1, Left: []int{0, len(ps) + 2}}
	head := []string{"Times"}
	for _, p := range ps {
		head = append(head, measure.PercentileName(p))
	}
	t.Row(append(head, "max", "")...)
	for _, c := range cols {
		row := []string{c.Title}
		for _, p := range ps {
			row = append(row, c.percentile(p))
		}
		row = append(row, exact(c.Sum.Largest()), "")
		if explain {
			row[len(row)-1] = c.Meaning
		}
		t.Row(row...)
	}
	return t
}

// timeNotes are notes on the times; brief returns only the important ones.
func (d *Document) timeNotes(cols []Time, brief bool) []string {
	var notes []string
	note := func(format string, a ...any) { notes = append(notes, fmt.Sprintf(format, a...)) }
	for _, c := range d.All() {
		n := c.Sum
		if n == nil || n.Censored == 0 {
			continue
		}
		l := lacking(c.Name)
		switch count := verb(n.Censored, "counts", "count"); {
		case brief:
			note(">= is a lower bound: %s %s and %s at the age reached", units.Plural(n.Censored, "event"), l.brief, count)
		case n.AtLeastFrom > 0:
			note("%s %s %s in the %s percentiles, mean and max at the age reached; >= marks a lower bound; min is of %s events",
				units.Plural(n.Censored, "event"), l.without, count, c.Title, l.counted)
		default:
			note("%s %s %s in the %s percentiles and max at the age reached; >= marks a lower bound; mean and min are of %s events",
				units.Plural(n.Censored, "event"), l.without, count, c.Title, l.counted)
		}
	}
	if parts := d.ranges(cols, brief); parts != nil {
		what := "ranges"
		if brief {
			what = "<= is an upper bound"
		}
		note("%s, as %s: %s", what, d.lengthenedBy(), strings.Join(parts, ", "))
	}
	for _, c := range cols {
		if c.Sum.Above > 0 {
			note("%s: %s beyond 1 h", c.Title, units.FormatCount(c.Sum.Above))
		}
		if c.Sum.Below > 0 && c.Main && !brief {
			note("%s: %s under 1 us, the smallest that is distinguished", c.Title, units.FormatCount(c.Sum.Below))
		}
	}
	switch {
	case d.Totals.RateOf == RateSent:
		note("nothing is acknowledged, so there are no response or service times")
	case d.Mode == load.FullSpeed:
		note("full speed has no schedule: for the times that users would see, use --rate")
	case d.Mode == load.ClosedLoop:
		note("a closed loop has no schedule: for the times that users would see, use --rate")
	}
	return notes
}

// A lack says in words what events lack that have no value of a time, but an age.
type lack struct{ verb, brief, without, counted string }

func lacking(time string) lack {
	if time == "end_to_end" {
		return lack{"read", "were not read", "that were not read", "read"}
	}
	return lack{"answered", "had no answer", "without an answer", "acked"}
}

func verb(n uint64, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
