package picture

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"carronade/internal/layout"
	"carronade/internal/report"
	"carronade/measure"
)

// A run is a report prepared for drawing.
type run struct {
	*report.Document
	name string // in legends; "" for a single report
	rows []row
	hist map[string]*measure.Histogram // of the measurement, decoded once
}

// A row is one interval of the series.
type row struct {
	from, to float64
	measure.Counts
	statuses                               measure.Statuses
	classes                                measure.Classes
	inFlight                               uint64
	behind                                 int64
	logs                                   []int64
	response, service, sendDelay, endToEnd *measure.Summary
	generator                              report.Usage
}

func (r *row) length() float64 { return r.to - r.from }
func (r *row) middle() float64 { return (r.from + r.to) / 2 }

// runs prepares reports.
func runs(ds []*report.Document) []*run {
	out := make([]*run, len(ds))
	names := namesOf(ds)
	for i, d := range ds {
		out[i] = &run{Document: d, name: names[i], rows: rowsOf(d.Intervals), hist: map[string]*measure.Histogram{}}
	}
	return out
}

// histogram is a histogram of the measurement; nil if the report does not have it.
func (r *run) histogram(name string) *measure.Histogram {
	h, ok := r.hist[name]
	if !ok {
		h = r.Histogram(name)
		r.hist[name] = h
	}
	return h
}

// rowsOf joins overlapping intervals: where two phases or steps meet, each has an
// interval for the same time. Intervals without valid times, which only a damaged
// report has, are left out.
func rowsOf(intervals []report.Interval) []row {
	var rows []row
	for i := range intervals {
		iv := &intervals[i]
		if !(iv.EndS > iv.StartS) || math.IsInf(iv.EndS, 0) || math.IsInf(iv.StartS, 0) {
			continue
		}
		rows = append(rows, row{
			from: iv.StartS, to: iv.EndS, Counts: iv.Counts, statuses: iv.Statuses, classes: iv.Classes, inFlight: iv.InFlight,
			behind: iv.LagEvents, logs: iv.LagLogs,
			response: iv.Response, service: iv.Service, sendDelay: iv.SendDelay, endToEnd: iv.EndToEnd, generator: iv.Generator,
		})
	}
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(a.from, b.from) })
	out := rows[:0]
	for _, r := range rows {
		if n := len(out); n > 0 && r.from < out[n-1].to-1e-9 {
			out[n-1].join(r)
			continue
		}
		out = append(out, r)
	}
	return out
}

// join adds the counts of an overlapping row. Percentiles cannot be added; those of
// the row with more samples are kept.
func (r *row) join(o row) {
	r.to = max(r.to, o.to)
	r.Add(o.Counts)
	var all measure.Statuses
	all.Merge(r.statuses)
	all.Merge(o.statuses)
	r.statuses = all
	var classes measure.Classes
	classes.Merge(r.classes)
	classes.Merge(o.classes)
	r.classes = classes
	r.inFlight = max(r.inFlight, o.inFlight)
	r.behind = max(r.behind, o.behind)
	if r.logs == nil {
		r.logs = o.logs
	}
	r.response = merged(r.response, o.response)
	r.service = merged(r.service, o.service)
	r.sendDelay = merged(r.sendDelay, o.sendDelay)
	r.endToEnd = merged(r.endToEnd, o.endToEnd)
	if r.generator.CPUS == 0 {
		r.generator = o.generator
	}
}

// merged is the summary with more samples, with the larger maximum of both.
func merged(a, b *measure.Summary) *measure.Summary {
	if a == nil || b == nil || a.IsEmpty() || b.IsEmpty() {
		if a.IsEmpty() {
			return b
		}
		return a
	}
	if b.Count+b.Censored > a.Count+a.Censored {
		a, b = b, a
	}
	if b.Max > a.Max {
		with := *a
		with.Max = b.Max
		return &with
	}
	return a
}

// rateRows are the rows for rates and percentiles. A row much shorter than the
// rest, such as usually the last of a run, is joined to the one before it: a few
// answers in two milliseconds do not give a meaningful rate.
func (r *run) rateRows() []row {
	lengths := make([]float64, 0, len(r.rows))
	for i := range r.rows {
		lengths = append(lengths, r.rows[i].length())
	}
	short := report.LeastLength(lengths)
	var out []row
	for _, x := range r.rows {
		if n := len(out); n > 0 && x.length() < short {
			// The generator's usage in such a short time is not meaningful, and is
			// not counted twice.
			x.generator.CPUS += out[n-1].generator.CPUS
			x.generator.GCPauseMaxUS = max(x.generator.GCPauseMaxUS, out[n-1].generator.GCPauseMaxUS)
			out[n-1].generator.CPUS = 0
			out[n-1].join(x)
			continue
		}
		out = append(out, x)
	}
	return out
}

// namesOf names reports by their ids and by the first settings and labels in which
// they differ.
func namesOf(ds []*report.Document) []string {
	names := make([]string, len(ds))
	if len(ds) < 2 {
		return names
	}
	differing := differences(ds)
	for i, d := range ds {
		id := d.ID
		if id == "" {
			id = fmt.Sprintf("report %d", i+1)
		}
		var parts []string
		for _, name := range differing[:min(len(differing), 2)] {
			if v := settingValue(d, name); v != "" {
				parts = append(parts, name+" "+layout.Cut(v, 16))
			}
		}
		if len(parts) > 0 {
			id += " (" + strings.Join(parts, ", ") + ")"
		}
		names[i] = id
	}
	return names
}

// Names are the reports' names in figures of several reports; an empty text for a
// single report.
func Names(ds ...*report.Document) []string { return namesOf(ds) }

// Differences are the names of labels and settings in which reports differ.
func Differences(ds ...*report.Document) []string {
	if len(ds) < 2 {
		return nil
	}
	return differences(ds)
}

// SettingValue is the value of a label, or else a setting, as text.
func SettingValue(d *report.Document, name string) string { return settingValue(d, name) }

// differences are the names of labels and settings that are not equal in all
// reports: labels first, then explicit settings in their order.
func differences(ds []*report.Document) []string {
	var names []string
	seen := map[string]bool{}
	for _, d := range ds {
		for name := range d.Labels {
			seen[name] = true
		}
	}
	for name := range seen {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, d := range ds {
		for _, s := range d.Settings {
			if !seen[s.Name] && !s.Default {
				seen[s.Name] = true
				names = append(names, s.Name)
			}
		}
	}
	return slices.DeleteFunc(names, func(name string) bool {
		for _, d := range ds[1:] {
			if settingValue(d, name) != settingValue(ds[0], name) {
				return false
			}
		}
		return true
	})
}

// settingValue is the value of a label or a setting.
func settingValue(d *report.Document, name string) string {
	if v, ok := d.Labels[name]; ok {
		return v
	}
	for _, s := range d.Settings {
		if s.Name == name {
			return s.Value
		}
	}
	return ""
}
