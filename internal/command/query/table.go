package query

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"carronade/internal/command"
	"carronade/target/riemann"
	"carronade/units"
)

// The widest that columns of the table may be. The service gets what is left.
const (
	mostHost   = 20
	mostState  = 9
	mostMetric = 20
	timeWidth  = 8
	ttlWidth   = 5
)

// table prints a line an event, and how many there are. now decides whether a
// time is shown as one or as a date.
func (q *query) table(events []riemann.Event, now time.Time) {
	if len(events) == 0 {
		fmt.Fprintln(q.Out, "no event matches")
		return
	}
	rows := [][]string{{"host", "service", "state", "metric", "time", "ttl"}}
	for i := range events {
		rows = append(rows, cells(&events[i], now))
	}
	widths := []int{4, 7, 5, 6, timeWidth, ttlWidth}
	for _, r := range rows {
		for i := range widths {
			widths[i] = max(widths[i], utf8.RuneCountInString(r[i]))
		}
	}
	widths[0], widths[2], widths[3] = min(widths[0], mostHost), min(widths[2], mostState), min(widths[3], mostMetric)
	rest := command.Width
	for i, w := range widths {
		if i != 1 {
			rest -= w + 1
		}
	}
	widths[1] = min(widths[1], rest)
	for i, r := range rows {
		var b strings.Builder
		for k, c := range r {
			c = cut(c, widths[k])
			gap := strings.Repeat(" ", widths[k]-utf8.RuneCountInString(c))
			switch {
			case k < 3:
				b.WriteString(c + gap + " ")
			default:
				b.WriteString(gap + c + " ")
			}
		}
		fmt.Fprintln(q.Out, strings.TrimRight(b.String(), " "))
		if q.all && i > 0 {
			for _, line := range others(&events[i-1]) {
				fmt.Fprintln(q.Out, "  "+line)
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
	if s = clean(s); s == "" {
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

// others are the fields that have no column, in lines.
func others(e *riemann.Event) []string {
	var parts []string
	if e.Description != "" {
		parts = append(parts, clean(e.Description))
	}
	if len(e.Tags) > 0 {
		parts = append(parts, "tags "+clean(strings.Join(e.Tags, ", ")))
	}
	for _, k := range slices.Sorted(maps.Keys(e.Attributes)) {
		parts = append(parts, clean(k+"="+e.Attributes[k]))
	}
	if len(parts) == 0 {
		return nil
	}
	return command.Wrap(strings.Join(parts, "; "), command.Width-2)
}

// clean makes others' words safe to print: they must not move the cursor.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == utf8.RuneError {
			return ' '
		}
		return r
	}, s)
}

// cut shortens s to n letters in the middle: names differ at their ends.
func cut(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	tail := max((n-3)/2, 0)
	return string(r[:max(n-3-tail, 0)]) + "..."[:min(3, n)] + string(r[len(r)-tail:])
}
