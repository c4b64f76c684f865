package judge

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"carronade/internal/layout"
	"carronade/internal/store"
	"carronade/units"
)

// The sides that a table of runs can have.
const (
	Producing = "produce"
	Consuming = "consume"
)

// TableFields are the fields of rows that a table is made of.
func TableFields() []string {
	out := []string{
		"op", "started", "ended", "partial", "trusted", "trust_level", "throughput", "elapsed", "acked", "sent", "bytes_moved", "acked_bytes", "accepted", "send_rate", "wire", "consumed", "read", "rate", "acks",
		"in_flight", "in_flight_max", "in_flight_peak", "warmup",
	}
	for _, t := range []string{"response", "service"} {
		for _, p := range tableTimes {
			out = append(out, t+"_"+p)
			if lower := lowerField(t + "_" + p); lower != "" {
				out = append(out, lower)
			}
		}
	}
	return out
}

// tableTimes are the columns of times, in order.
var tableTimes = []string{"mean", "max", "p50", "p95", "p99", "p999"}

// A Table has one line per run, like the last line of Kafka's performance
// tools: what was produced with its times, or what was consumed from when to
// when. MB is 1,048,576 bytes, as in those tools.
type Table struct {
	Schema  string     `json:"schema"`
	Side    string     `json:"side"`
	Like    string     `json:"like,omitempty"` // whose columns: empty for Kafka's tools, or LikeRiemannLoad
	Runs    []TableRun `json:"runs"`
	LeftOut []LeftOut  `json:"left_out"`
	Note    string     `json:"note"`
}

// TableSchema names the format of a table's JSON.
const TableSchema = "carronade.table/1"

// A TableRun is one line. Times are in milliseconds; fields that belong to the
// other side are absent.
type TableRun struct {
	ID     string    `json:"id"`
	Rate   string    `json:"rate,omitempty"`
	Acks   string    `json:"acks,omitempty"`
	Start  time.Time `json:"start"`
	End    time.Time `json:"end"`
	Count  float64   `json:"count"`
	PerS   float64   `json:"per_s"`
	MB     float64   `json:"mb"`
	MBPerS float64   `json:"mb_per_s"`
	Of     string    `json:"times_of,omitempty"` // response or service
	AvgMS  *float64  `json:"avg_ms,omitempty"`
	MaxMS  *float64  `json:"max_ms,omitempty"`
	P50MS  *float64  `json:"p50_ms,omitempty"`
	P95MS  *float64  `json:"p95_ms,omitempty"`
	P99MS  *float64  `json:"p99_ms,omitempty"`
	P999MS *float64  `json:"p999_ms,omitempty"`
	// AtLeast names the times that are lower bounds: they fell among events that
	// were never answered.
	AtLeast []string `json:"at_least,omitempty"`
	// AtMost names the times that are upper bounds: the generator may have lengthened them.
	AtMost []string `json:"at_most,omitempty"`
	// The rest of what the load tool for Riemann shows: events sent and acked a
	// second, those in flight (the mean, and the most that is known), and bits on
	// the connections.
	SentPerS    *float64 `json:"sent_per_s,omitempty"`
	AckedPerS   *float64 `json:"acked_per_s,omitempty"`
	Unacked     *float64 `json:"unacked_mean,omitempty"`
	UnackedMost *float64 `json:"unacked_max,omitempty"`
	MbitPerS    *float64 `json:"mbit_per_s,omitempty"`

	Untrusted bool `json:"untrusted"` // the generator was the limit
	Noisy     bool `json:"noisy"`     // the generator may have moved times, within the bounds that the report states

	atLeast, atMost [6]bool
}

// mb is a megabyte as Kafka's tools count it.
const mb = 1 << 20

// TableOf makes the table of one side of rows, the smallest run first. Runs
// that were cut short are left out. It is an error if no run of that side
// remains.
func TableOf(rows []store.Row, side string) (*Table, error) {
	if side != Producing && side != Consuming {
		return nil, hintedError("make a table", fmt.Errorf("unknown side %q", side), "give produce or consume")
	}
	t := &Table{Schema: TableSchema, Side: side, Runs: []TableRun{}, LeftOut: []LeftOut{}}
	var own []store.Row
	for i := range rows {
		if n, ok := rows[i].Num(countField(side)); ok && n > 0 || rows[i].Text("op") == side {
			own = append(own, rows[i])
		}
	}
	rows, t.LeftOut = fit(own, true)
	if t.LeftOut == nil {
		t.LeftOut = []LeftOut{}
	}
	for i := range rows {
		t.Runs = append(t.Runs, runOf(&rows[i], side))
	}
	if len(t.Runs) == 0 {
		hint := "report table takes filters as report list does"
		if len(t.LeftOut) > 0 {
			hint = t.LeftOut[0].ID + ": " + t.LeftOut[0].Why
		}
		return nil, hintedError("make a table", errors.New("no matching report is of a run to "+side), hint)
	}
	slices.SortStableFunc(t.Runs, func(a, b TableRun) int { return cmp.Or(cmp.Compare(a.Count, b.Count), a.Start.Compare(b.Start)) })
	t.Note = t.note()
	return t, nil
}

// countField is the field that counts the events of a side.
func countField(side string) string {
	if side == Consuming {
		return "consumed"
	}
	return "sent"
}

func runOf(r *store.Row, side string) TableRun {
	num := func(name string) float64 { x, _ := r.Num(name); return x }
	x := TableRun{ID: r.ID, Rate: r.Text("rate"), Acks: r.Text("acks"), Start: moment(r, "started"), End: moment(r, "ended")}
	trusted, known := r.Num("trusted")
	x.Untrusted = known && trusted == 0
	x.Noisy = !x.Untrusted && noisy(r)
	elapsed := num("elapsed")
	bytes := num("bytes_moved")
	switch {
	case side == Consuming:
		x.Count = num("consumed")
	case num("acked") > 0:
		x.Count, bytes = num("acked"), num("acked_bytes")
	default:
		x.Count = num("sent")
	}
	x.MB = bytes / mb
	if elapsed > 0 {
		x.MBPerS, x.PerS = x.MB/elapsed, x.Count/elapsed
	}
	if accepted, ok := r.Num("accepted"); ok { // what came in the drain is no part of the rate
		x.MBPerS, x.PerS = accepted/mb, num("throughput")
	}
	if side == Consuming {
		if elapsed > 0 && !x.Start.IsZero() && r.Text("warmup") == "" && num("warmup") == 0 {
			x.End = x.Start.Add(units.Seconds(elapsed)).Round(time.Microsecond) // the last record's time, as in the tool; a run ends a little later
		}
		return x
	}
	x.flow(r)
	for _, of := range []string{"response", "service"} {
		if _, ok := r.Num(of + "_p50"); !ok {
			continue
		}
		x.Of = of
		for i, to := range x.times() {
			if v, ok := r.Get(of + "_" + tableTimes[i]); ok {
				ms := v.Num * 1e3
				*to, x.atLeast[i] = &ms, v.AtLeast()
				if v.AtLeast() {
					x.AtLeast = append(x.AtLeast, tableTimes[i]+"_ms")
				} else if upperBounds(of+"_"+tableTimes[i], []store.Row{*r}) {
					x.AtMost, x.atMost[i] = append(x.AtMost, tableTimes[i]+"_ms"), true
				}
			}
		}
		break
	}
	return x
}

func (x *TableRun) times() []**float64 {
	return []**float64{&x.AvgMS, &x.MaxMS, &x.P50MS, &x.P95MS, &x.P99MS, &x.P999MS}
}

func moment(r *store.Row, name string) time.Time {
	if x, ok := r.Num(name); ok {
		return time.UnixMilli(int64(x*1e3 + 0.5)).UTC()
	}
	return time.Time{}
}

// note explains the columns.
func (t *Table) note() string {
	if t.Like == LikeRiemannLoad {
		return t.flowNote()
	}
	if t.Side == Consuming {
		return "MB: 1,048,576 bytes; times are UTC"
	}
	of := map[string]bool{}
	for _, r := range t.Runs {
		of[r.Of] = true
	}
	return "MB: 1,048,576 bytes" + t.timesNote(of) + t.signs()
}

// timesNote says what the times are, of the kinds that the runs have.
func (t *Table) timesNote(of map[string]bool) (text string) {
	switch {
	case of["response"] && of["service"]:
		text += "; times of runs with a schedule are response times, of the others service times"
	case of["response"]:
		text += "; times are response times"
	case of["service"]:
		text += "; times are service times"
	}
	return text
}

// signs explains the signs in the table.
func (t *Table) signs() (text string) {
	if slices.ContainsFunc(t.Runs, func(r TableRun) bool { return r.Untrusted }) {
		text += "; !: the generator was the limit"
	}
	if slices.ContainsFunc(t.Runs, func(r TableRun) bool { return r.Noisy }) {
		text += "; ~: noisy, the generator may have affected the times within the bounds that the report states"
	}
	if slices.ContainsFunc(t.Runs, func(r TableRun) bool { return r.AtMost != nil }) {
		text += "; " + atMostWords
	}
	return text
}

// head is the columns' names, those of Kafka's tools.
func (t *Table) head() []string {
	if t.Like == LikeRiemannLoad {
		return flowHead()
	}
	if t.Side == Consuming {
		return []string{"start", "end", "MB", "MB/s", "nMsg", "nMsg/s"}
	}
	return []string{"count", "MB/s", "avg", "max", "p50", "p95", "p99", "p99.9"}
}

// sheet is the table for people: the columns of Kafka's tools, and which run
// each line is.
func (t *Table) sheet() *layout.Table {
	head, rows := t.head(), [][]string{}
	for i := range t.Runs {
		rows = append(rows, t.cells(&t.Runs[i]))
	}
	for _, c := range []struct {
		name string
		of   func(*TableRun) string
	}{
		{"rate", func(r *TableRun) string { return r.Rate }},
		{"acks", func(r *TableRun) string { return r.Acks }},
		{"id", func(r *TableRun) string { return r.ID }},
	} {
		if !slices.ContainsFunc(t.Runs, func(r TableRun) bool { return c.of(&r) != "" }) {
			continue
		}
		head = append(head, c.name)
		for i := range t.Runs {
			rows[i] = append(rows[i], cmp.Or(c.of(&t.Runs[i]), "-"))
		}
	}
	out := &layout.Table{Headings: 1, AutoAlign: true, Left: []int{len(head) - 1}}
	out.Row(head...)
	for _, r := range rows {
		out.Row(r...)
	}
	return out
}

// cells are a line in the columns of Kafka's tools.
func (t *Table) cells(r *TableRun) []string {
	const clock = "2006-01-02 15:04:05.000"
	sign := ""
	switch {
	case r.Untrusted:
		sign = "!"
	case r.Noisy:
		sign = "~"
	}
	count := units.FormatCount(uint64(r.Count)) + sign
	if t.Like == LikeRiemannLoad {
		return r.flowCells(count)
	}
	if t.Side == Consuming {
		return []string{r.Start.Format(clock), r.End.Format(clock), fixed(r.MB, 4), fixed(r.MBPerS, 4), count, fixed(r.PerS, 4)}
	}
	out := []string{count, fixed(r.MBPerS, 2)}
	for i, ms := range r.times() {
		text := "-"
		if *ms != nil {
			text = boundSign(r.atLeast[i], r.atMost[i]) + fixed(**ms, 2) + " ms"
		}
		out = append(out, text)
	}
	return out
}

func fixed(x float64, digits int) string { return strconv.FormatFloat(x, 'f', digits, 64) }

// Text writes the table for people.
func (t *Table) Text(w io.Writer, style layout.Style) error {
	p := &layout.Page{Style: style}
	p.Title(t.title())
	for _, line := range t.sheet().Lines(0, p.Style) { // without a limit of the width
		p.Line(line)
	}
	p.Note(t.Note)
	leftOut(p, t.LeftOut)
	return p.To(w)
}

func (t *Table) title() string {
	if t.Side == Consuming {
		return "consumed"
	}
	return "produced"
}

// Markdown writes the table as Markdown.
func (t *Table) Markdown(w io.Writer) error {
	var b strings.Builder
	b.WriteString("### " + t.title() + "\n\n" + t.sheet().Markdown() + "\n" + t.Note + "\n")
	markdownNotes(&b, nil, t.LeftOut)
	_, err := io.WriteString(w, b.String())
	return err
}

// CSV writes the table as CSV: numbers without units, times in milliseconds,
// and what the text shows by signs: which times are lower bounds and
// whether the run can be trusted.
func (t *Table) CSV(w io.Writer) error {
	if t.Like == LikeRiemannLoad {
		return t.flowCSV(w)
	}
	var out layout.Table
	head := t.head()
	if t.Side == Producing {
		for i := 2; i < len(head); i++ {
			head[i] += " ms"
		}
	}
	head = append(head, "report", "untrusted")
	if t.Side == Producing {
		head = append(head, "at_least")
	}
	head = append(head, "noisy")
	if t.Side == Producing {
		head = append(head, "rate", "acks", "at_most")
	}
	out.Row(head...)
	for i := range t.Runs {
		r := &t.Runs[i]
		var cells []string
		if t.Side == Consuming {
			cells = []string{r.Start.Format(time.RFC3339Nano), r.End.Format(time.RFC3339Nano), fixed(r.MB, 4), fixed(r.MBPerS, 4), fixed(r.Count, 0), fixed(r.PerS, 4)}
		} else {
			cells = []string{fixed(r.Count, 0), fixed(r.MBPerS, 4)}
			for _, ms := range r.times() {
				text := ""
				if *ms != nil {
					text = fixed(**ms, 3)
				}
				cells = append(cells, text)
			}
		}
		cells = append(cells, r.ID, strconv.FormatBool(r.Untrusted))
		if t.Side == Producing {
			cells = append(cells, t.bounded(r.atLeast))
		}
		cells = append(cells, strconv.FormatBool(r.Noisy))
		if t.Side == Producing {
			cells = append(cells, r.Rate, r.Acks, t.bounded(r.atMost))
		}
		out.Row(cells...)
	}
	return out.CSV(w)
}

// bounded are the columns of times that are bounds.
func (t *Table) bounded(which [6]bool) string {
	var names []string
	for i, is := range which {
		if is {
			names = append(names, t.head()[i+2])
		}
	}
	return strings.Join(names, " ")
}
