package export

import (
	"encoding/csv"
	"io"
	"strconv"

	"carronade/internal/report"
	"carronade/measure"
)

// seriesTimes are the times with a summary in the series, in the order of their
// columns.
var seriesTimes = []string{"response", "service", "send_delay", "end_to_end"}

// seriesColumns are the columns of the series, in their order. Other programs
// rely on it: columns may be added at the end, and none is moved or removed.
func seriesColumns() []string {
	cols := []string{"id", "phase", "start_s", "end_s"}
	cols, late := appendCounts(cols, func(k *measure.Counter) string { return k.Name })
	begin, end := measure.ColumnPercentiles()
	cols = append(cols, "events_per_s", "in_flight", "lag_events")
	for _, t := range seriesTimes {
		cols = append(cols, t+"_count", t+"_mean_us", t+"_min_us")
		for _, p := range begin {
			cols = append(cols, t+"_"+measure.PercentileKey(p))
		}
		for _, p := range end {
			late = append(late, t+"_"+measure.PercentileKey(p))
		}
		cols = append(cols, t+"_max_us", t+"_at_least_from_us")
	}
	cols = append(cols,
		"generator_cpu_s", "generator_rss_bytes", "generator_gc_pauses", "generator_gc_pause_max_us", "generator_gc_cpu_s",
		"response_at_least_from_p", unreadColumn, "end_to_end_at_least_from_p", "within_s", "arrived")
	return append(cols, late...)
}

// appendCounts appends a cell for each counter that has its column at the beginning, and returns the cells of
// those that are at the end because they are newer. Unread has a place between.
func appendCounts(row []string, cell func(k *measure.Counter) string) (begin, end []string) {
	for i := range measure.Counters {
		switch k := &measure.Counters[i]; {
		case !k.Late:
			row = append(row, cell(k))
		case k.Name != unreadColumn:
			end = append(end, cell(k))
		}
	}
	return row, end
}

// unreadColumn is the count that was added among columns of other kinds.
const unreadColumn = "unread"

// writeCSV writes the series: one row per interval (and phase); the first line
// names the columns. A number that does not exist for the run is empty.
// Searches and scenarios have no series: a row per trial or step instead.
func writeCSV(w io.Writer, rs Reports, _ Options) error {
	first, all := rs.peek()
	if first != nil && first.Search != nil {
		return writeTrials(w, all)
	}
	if first != nil && first.Scenario != nil {
		return writeSteps(w, all)
	}
	var row []string
	return writeRows(w, seriesColumns(), all, func(d *report.Document, put func(row ...string) error) error {
		if d.Search != nil {
			return &MissingError{ID: d.ID, What: "it is a search, and a file has either the trials of searches or the series of runs"}
		}
		if d.Scenario != nil {
			return &MissingError{ID: d.ID, What: "it is a scenario, and a file has either the steps of scenarios or the series of runs"}
		}
		for i := range d.Intervals {
			row = seriesRow(row[:0], d, &d.Intervals[i])
			if err := put(row...); err != nil {
				return err
			}
		}
		return nil
	})
}

// writeRows writes reports as CSV: the names of the columns, and the rows that each report puts.
// put does not keep its arguments.
func writeRows(w io.Writer, columns []string, rs Reports, rows func(d *report.Document, put func(row ...string) error) error) error {
	out := csv.NewWriter(w)
	if err := out.Write(columns); err != nil {
		return err
	}
	put := func(row ...string) error { return out.Write(row) }
	if err := rs.each(func(_ int, d *report.Document) error { return rows(d, put) }); err != nil {
		return err
	}
	out.Flush()
	return out.Error()
}

func seriesRow(row []string, d *report.Document, iv *report.Interval) []string {
	row = append(row, d.ID, iv.Phase, number(iv.StartS), number(iv.EndS))
	row, late := appendCounts(row, func(k *measure.Counter) string { return count(k.Of(&iv.Counts)) })
	begin, end := measure.ColumnPercentiles()
	behind := ""
	if len(d.Logs) > 0 && iv.LagEvents >= 0 { // only a run that consumes has a lag
		behind = strconv.FormatInt(iv.LagEvents, 10)
	}
	row = append(row, number(iv.EventsPerS), count(iv.InFlight), behind)
	for _, t := range seriesTimes {
		row = appendTime(row, iv.Time(t), begin)
		late = appendPercentiles(late, iv.Time(t), end)
	}
	g := &iv.Generator
	first := func(s *measure.Summary) string {
		if s == nil || s.AtLeastFrom == 0 {
			return ""
		}
		return number(s.AtLeastFrom)
	}
	row = append(row, number(g.CPUS), count(g.RSSBytes), count(g.GCPauses), number(g.GCPauseMaxUS), number(g.GCCPUS), first(iv.Response), count(iv.Unread), first(iv.EndToEnd),
		number(iv.WithinS), count(iv.Arrived))
	return append(row, late...)
}

// appendTime appends the columns of a time, with the percentiles ps. If nothing was counted, only
// the count is filled in: a percentile of nothing is not 0.
func appendTime(row []string, s *measure.Summary, ps []float64) []string {
	if s == nil {
		return append(row, make([]string, 5+len(ps))...)
	}
	row = append(row, count(s.Count))
	if s.Count == 0 {
		row = append(row, "", "")
	} else {
		row = append(row, number(s.Mean), number(s.Min))
	}
	row = appendPercentiles(row, s, ps)
	largest, atLeast := "", ""
	if s.Count > 0 {
		largest = number(s.Max)
	}
	if s.Censored > 0 {
		atLeast = number(s.CensoredMin)
	}
	return append(row, largest, atLeast)
}

func appendPercentiles(row []string, s *measure.Summary, ps []float64) []string {
	for _, p := range ps {
		if v, ok := s.At(p); ok {
			row = append(row, number(float64(v.D)/1e3))
		} else {
			row = append(row, "")
		}
	}
	return row
}

// number is a number without an exponent, which every CSV reader accepts.
func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

func count(n uint64) string { return strconv.FormatUint(n, 10) }
