package judge

import (
	"io"
	"math"
	"strconv"
	"strings"

	"carronade/internal/layout"
	"carronade/internal/store"
	"carronade/units"
)

// LikeRiemannLoad gives a table the columns of the 2013 load tool for Riemann:
// send and ack rate, events without an ack, round trip, and throughput.
const LikeRiemannLoad = "riemann-load"

// InColumnsOf returns the table with the columns of a tool.
func (t *Table) InColumnsOf(tool string) *Table {
	out := *t
	out.Like = tool
	out.Note = out.note()
	return &out
}

// flow sets what the load tool for Riemann shows.
func (x *TableRun) flow(r *store.Row) {
	value := func(name string, factor float64) *float64 {
		n, ok := r.Num(name)
		if !ok {
			return nil
		}
		n *= factor
		return &n
	}
	x.SentPerS, x.MbitPerS = value("send_rate", 1), value("wire", 8e-6)
	if n, _ := r.Num("acked"); n > 0 { // else the throughput is of what was sent
		x.AckedPerS = value("throughput", 1)
	} else {
		x.AckedPerS = value("acked", 1)
	}
	if n, ok := r.Num("in_flight"); ok {
		x.Unacked = &n
	}
	most, known := r.Num("in_flight_max")
	if peak, ok := r.Num("in_flight_peak"); ok {
		most, known = math.Max(most, peak), true
	}
	if known {
		x.UnackedMost = &most
	}
}

func flowHead() []string {
	return []string{"count", "send rate", "ack rate", "un-acked", "most", "RTT", "RTT p99", "Mbit/s"}
}

// flowCells are a line in the columns of the load tool for Riemann.
func (x *TableRun) flowCells(count string) []string {
	text := func(v *float64, form func(float64) string) string {
		if v == nil {
			return "-"
		}
		return form(*v)
	}
	whole := func(v float64) string { return units.FormatCount(uint64(math.Round(v))) }
	ms := func(i int) string {
		return boundSign(x.atLeast[i], x.atMost[i]) + text(*x.times()[i], func(v float64) string { return fixed(v, 2) + " ms" })
	}
	return []string{
		count, text(x.SentPerS, units.FormatRate), text(x.AckedPerS, units.FormatRate), text(x.Unacked, whole), text(x.UnackedMost, whole),
		ms(timeMean), ms(timeP99), text(x.MbitPerS, func(v float64) string { return fixed(v, 2) }),
	}
}

// The indexes of times.
const (
	timeMean = 0
	timeP99  = 4
)

func (t *Table) flowNote() string {
	of := map[string]bool{}
	for i := range t.Runs {
		of[t.Runs[i].Of] = true
	}
	return "rates and un-acked count events: messages, if each holds one; un-acked: the mean and the most in flight; Mbit/s: 1,000,000 bits on the connections" +
		t.timesNote(of) + t.signs()
}

func (t *Table) flowCSV(w io.Writer) error {
	var out layout.Table
	out.Row("count", "sent/s", "acked/s", "un-acked", "un-acked most", "RTT ms", "RTT p99 ms", "Mbit/s", "report", "untrusted", "at_least", "noisy", "rate")
	number := func(v *float64, digits int) string {
		if v == nil {
			return ""
		}
		return fixed(*v, digits)
	}
	for i := range t.Runs {
		r := &t.Runs[i]
		var bounds []string
		if r.atLeast[timeMean] {
			bounds = append(bounds, "RTT")
		}
		if r.atLeast[timeP99] {
			bounds = append(bounds, "RTT p99")
		}
		times := r.times()
		out.Row(
			fixed(r.Count, 0), number(r.SentPerS, 4), number(r.AckedPerS, 4), number(r.Unacked, 2), number(r.UnackedMost, 0),
			number(*times[timeMean], 3), number(*times[timeP99], 3), number(r.MbitPerS, 4), r.ID, strconv.FormatBool(r.Untrusted), strings.Join(bounds, ", "),
			strconv.FormatBool(r.Noisy), r.Rate,
		)
	}
	return out.CSV(w)
}
