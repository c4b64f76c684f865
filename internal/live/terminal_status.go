package live

import (
	"math"
	"strings"
	"time"

	"carronade/internal/layout"
	"carronade/load"
	"carronade/measure"
	"carronade/units"
)

// maxRates is the maximum number of intervals in the sparkline.
const maxRates = 60

// A status contains the pieces of text to show about a run, most important first.
// If they do not fit, the last ones are left out.
type status struct {
	head  []string // phase, time, time left
	rate  []string
	times []string
	state []string
	bad   []string // failures and similar counts; empty if there are none
	rates []float64
}

// rateOf is what the rates count, as far as a run in progress shows it. If nothing
// is acknowledged, no batch is ever answered.
func rateOf(s *load.Snapshot) (name string, events uint64) {
	switch {
	case s.Consuming:
		return "consumed", s.Interval.Consumed
	case s.Total.Answered == 0 && s.Total.Acked == 0 && s.Interval.Service == nil && s.Total.Sent > 0:
		return "sent", s.Interval.Sent
	}
	return "acked", s.Interval.Acked
}

// statusOf makes the status of a snapshot. rates are those of the intervals so far,
// oldest first.
func statusOf(s *load.Snapshot, rates []float64) status {
	name, n := rateOf(s)
	length := s.Interval.Length()
	st := status{rates: rates}

	st.head = []string{s.Phase, units.FormatDuration(s.At.Round(100 * time.Millisecond))}
	switch {
	case s.Left > 0 && s.Left < load.Never:
		st.head = append(st.head, units.FormatDuration(roundLeft(s.Left))+" left")
	case s.Endless && s.Phase == measure.Measurement:
		st.head = append(st.head, "until Ctrl-C")
	}
	if s.Backlog != "" {
		st.head = append(st.head, s.Backlog)
	}
	total := s.Total.Acked
	switch name {
	case "consumed":
		total = s.Total.Consumed
	case "sent":
		total = s.Total.Sent
	}
	st.rate = []string{
		units.FormatRate(measure.PerSecond(n, length)) + " " + name,
		units.FormatSize(int64(measure.PerSecond(s.Interval.Bytes, length))) + "/s",
		units.FormatCount(total) + " " + name,
	}

	times, censored, what := s.Interval.Response, s.Interval.Censored, "response"
	if times.Count() == 0 && censored.Count() == 0 {
		times, what = s.Interval.Service, "service"
	}
	if h, ages := s.Interval.EndToEnd, s.Interval.UnreadAges; h.Count()+ages.Count() > 0 {
		times, censored, what = h, ages, "end to end"
	}
	if times.Count() > 0 || censored.Count() > 0 && what != "service" {
		v := measure.Percentiles(times, censored, []float64{50, 99})
		st.times = []string{what + " p50 " + value(v[0]), "p99 " + value(v[1])}
		most := measure.Value{D: max(times.Max(), censored.Max()), AtLeast: censored.Count() > 0}
		st.times = append(st.times, "max "+value(most))
	}

	switch {
	case name == "consumed" && s.Interval.LagEvents >= 0:
		st.state = []string{units.FormatCount(uint64(s.Interval.LagEvents)) + " behind"}
	case name == "acked" && n == 0 && s.Interval.InFlight > 0: // an outage
		st.state = []string{"nothing is answered: " + units.Plural(waiting(s), "event") + " " + map[bool]string{true: "waits", false: "wait"}[waiting(s) == 1]}
	case name == "acked": // without acknowledgement nothing is in flight
		st.state = []string{units.FormatCount(s.Interval.InFlight) + " in flight"}
	}
	for _, c := range []struct {
		n    uint64
		what string
		skip bool
	}{
		{s.Total.Failed, "failed", false},
		{s.Total.Unknown, "unknown", name == "sent"},
		{s.Total.Dropped, "dropped", false},
		{s.Total.Unread, "unread", false},
		{s.Total.Retries, "retried", false},
	} {
		if c.n > 0 && !c.skip {
			st.bad = append(st.bad, units.FormatCount(c.n)+" "+c.what)
		}
	}
	return st
}

// waiting is how many events are due and have no answer yet: those in flight, and those that could not be sent.
func waiting(s *load.Snapshot) uint64 {
	t := &s.Total
	return max(s.Interval.InFlight, t.Offered-min(t.Acked+t.Failed+t.Unknown+t.Dropped+t.Unsent, t.Offered))
}

// roundLeft rounds the time left for display.
func roundLeft(d time.Duration) time.Duration {
	if d > 10*time.Second {
		return d.Round(time.Second)
	}
	return d.Round(100 * time.Millisecond)
}

func value(v measure.Value) string { return v.Text(units.FormatDuration) }

// line is the status as one plain line.
func (st *status) line() string {
	var parts []string
	for _, p := range [][]string{st.head, st.rate[:2], st.times, st.state, st.bad} {
		if len(p) > 0 {
			parts = append(parts, strings.Join(p, "  "))
		}
	}
	return strings.Join(parts, "  ")
}

// lines is the status for a terminal of this many columns. The last column stays
// free, because a character there makes some terminals begin a new line.
func (st *status) lines(columns int, style layout.Style) []string {
	room := max(columns-1, 10)
	out := []string{style.Paint(layout.Bold, fit(st.head, room))}
	rate := fit(st.rate, room-2)
	if free := min(room-2-layout.Width(rate)-3, maxRates); free >= 8 && len(st.rates) > 1 {
		tail := st.rates[max(len(st.rates)-free, 0):]
		rate += "   " + units.Spark(tail, 0, style.ASCII)
	}
	out = append(out, "  "+rate)
	if len(st.times) > 0 {
		out = append(out, "  "+fit(st.times, room-2))
	}
	state := fit(st.state, room-2)
	bad := st.bad
	if len(bad) == 0 {
		return append(out, "  "+style.Paint(layout.Dim, fit(append(append([]string{}, st.state...), "nothing failed"), room-2)))
	}
	rest := fit(bad, room-2-layout.Width(state)-3)
	if state != "" && rest != "" {
		state += "   "
	}
	return append(out, "  "+style.Paint(layout.Dim, state)+style.Paint(layout.Red, rest))
}

// fit joins as many pieces as fit; the first is cut if even that is too long.
func fit(pieces []string, room int) string {
	out := ""
	for i, p := range pieces {
		next := p
		if i > 0 {
			next = out + "   " + p
		}
		if layout.Width(next) > room {
			if i == 0 {
				return string([]rune(p)[:max(min(room, layout.Width(p)), 0)])
			}
			return out
		}
		out = next
	}
	return out
}

// appendRate appends a rate and drops the oldest if there are too many.
func appendRate(rates []float64, r float64) []float64 {
	if math.IsNaN(r) || math.IsInf(r, 0) {
		r = 0
	}
	if len(rates) == maxRates {
		copy(rates, rates[1:])
		rates = rates[:maxRates-1]
	}
	return append(rates, r)
}
