package query

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"carronade/internal/layout"
	"carronade/internal/riemann"
	"carronade/units"
)

// Maximum widths of the table's columns. The service gets the rest.
const (
	mostHost   = 20
	mostState  = 9
	mostMetric = 20
)

// table prints one line per event and the number of events. now decides between a time of day
// and a date.
func (q *querying) table(events []riemann.Event, now time.Time) {
	if len(events) == 0 {
		fmt.Fprintln(q.Out, "no event matches")
		return
	}
	t := layout.Table{Headings: 1, Left: []int{1, 2}, Elastic: []int{1}, Middle: true}
	t.Row("host", "service", "state", "metric", "time", "ttl")
	for i := range events {
		c := cells(&events[i], now)
		c[0], c[2], c[3] = layout.CutMiddle(c[0], mostHost), layout.CutMiddle(c[2], mostState), layout.CutMiddle(c[3], mostMetric)
		t.Row(c...)
	}
	for i, line := range t.Lines(layout.Columns, q.Style) {
		fmt.Fprintln(q.Out, line)
		if q.all && i > 0 {
			for _, more := range others(&events[i-1]) {
				fmt.Fprintln(q.Out, "  "+more)
			}
		}
	}
	if len(events) == 1 {
		fmt.Fprintln(q.Out, "1 event")
		return
	}
	fmt.Fprintln(q.Out, units.FormatCount(uint64(len(events))), "events")
}

// cells are an event's columns; a dash is a field that it does not have.
func cells(e *riemann.Event, now time.Time) []string {
	at := "-"
	if !e.Time.IsZero() {
		at = e.Time.UTC().Format(time.TimeOnly)
		if d := now.Sub(e.Time); d > 24*time.Hour || d < -24*time.Hour {
			at = e.Time.UTC().Format(time.DateOnly)
		}
	}
	ttl := "-"
	if e.TTL != 0 {
		ttl = strconv.FormatFloat(float64(e.TTL), 'g', 4, 32)
	}
	return []string{dash(e.Host), dash(e.Service), dash(e.State), metric(e.Metric), at, ttl}
}

func dash(s string) string {
	if s = layout.Clean(s); s == "" {
		return "-"
	}
	return s
}

func metric(v any) string {
	switch x := v.(type) {
	case nil:
		return "-"
	case float64:
		return strconv.FormatFloat(x, 'g', 7, 64)
	case float32:
		return strconv.FormatFloat(float64(x), 'g', 7, 32)
	}
	return fmt.Sprint(v)
}

// others formats the fields that have no column.
func others(e *riemann.Event) []string {
	var parts []string
	if e.Description != "" {
		parts = append(parts, layout.Clean(e.Description))
	}
	if len(e.Tags) > 0 {
		parts = append(parts, "tags "+layout.Clean(strings.Join(e.Tags, ", ")))
	}
	for _, k := range slices.Sorted(maps.Keys(e.Attributes)) {
		parts = append(parts, layout.Clean(k+"="+e.Attributes[k]))
	}
	if len(parts) == 0 {
		return nil
	}
	return layout.Wrap(strings.Join(parts, "; "), layout.Columns-2)
}
