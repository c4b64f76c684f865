package bench

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A spread is a metric over the rounds.
type spread struct {
	Median, Min, Max float64
	N                int
}

// spreadOf computes the spread of the runs' numbers; without any, it is all NaN.
func spreadOf(v []float64) spread {
	if len(v) == 0 {
		return spread{math.NaN(), math.NaN(), math.NaN(), 0}
	}
	v = slices.Sorted(slices.Values(v))
	n := len(v)
	return spread{(v[(n-1)/2] + v[n/2]) / 2, v[0], v[n-1], n}
}

// A bound is a limit for a line of the table. The zero value means unlimited.
type bound struct {
	isMax bool // at most, otherwise at least
	value float64
}

func atLeast(v float64) bound { return bound{false, v} }
func atMost(v float64) bound  { return bound{true, v} }

func (b bound) none() bool { return b.value == 0 }

func (b bound) met(v float64) bool {
	if b.isMax {
		return v <= b.value
	}
	return v >= b.value
}

// A line is one line of the table.
type line struct {
	Work      string
	Metric    metric
	Carronade spread
	Peer      string // "" for a line without comparison
	Theirs    spread
	Must      bound // for the ratio if there is a peer, otherwise for the median
	Aim       bound
	Worst     bool   // the bounds apply to the worst run instead of the median
	Fault     string // why there are no numbers
}

// value is the number to which the bounds apply: ours divided by the peer's, or only
// ours.
func (l *line) value() float64 {
	if l.Peer != "" {
		return l.Carronade.Median / l.Theirs.Median
	}
	switch {
	case l.Worst && l.Must.isMax:
		return l.Carronade.Max
	case l.Worst:
		return l.Carronade.Min
	}
	return l.Carronade.Median
}

// verdict is the table's last column.
func (l *line) verdict() string {
	v := l.value()
	switch {
	case l.Fault != "" || math.IsNaN(v):
		return "not measured"
	case l.Must.none() && l.Aim.none():
		return ""
	case !l.Must.none() && !l.Must.met(v):
		return "**no**"
	case !l.Aim.none() && l.Aim.met(v):
		return "yes, and the aim"
	case l.Must.none():
		return "aim missed"
	}
	return "yes"
}

// show formats a number of a metric with its unit.
func (m metric) show(v float64) string {
	switch m {
	case eventsPerS, wholeRate, requestsPerS, producedPerS, consumedPerS:
		return si(v) + "/s"
	case bytesPerS:
		return si(v) + "B/s"
	case cpuPerEvent, cpuPerRequest:
		return sig(v) + " us"
	case cpuShare:
		return sig(v*100) + " %"
	case deviation:
		return sig(v*100) + " %"
	case sendDelayP50, sendDelayP99:
		return sig(v) + " us"
	case wallMS:
		return sig(v) + " ms"
	case maxRSS, growth:
		return sig(v/(1<<20)) + " MiB"
	}
	return sig(v)
}

// si formats a number with three digits and an SI prefix.
func si(v float64) string {
	for _, p := range []struct {
		by   float64
		name string
	}{{1e9, " G"}, {1e6, " M"}, {1e3, " k"}} {
		if math.Abs(v) >= p.by*0.9995 {
			return sig(v/p.by) + p.name
		}
	}
	return sig(v) + " "
}

// sig formats a number with three significant digits and without an exponent.
func sig(v float64) string {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return fmt.Sprint(v)
	}
	// Round first: 999.9 becomes 1000, which has one digit more before the point.
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'e', 2, 64), 64)
	digits := max(0, 2-int(math.Floor(math.Log10(math.Abs(v)))))
	return strconv.FormatFloat(v, 'f', digits, 64)
}

// show is the median with the lowest and the highest, whose unit is left out if it is the same.
func (s spread) show(m metric) string {
	if s.N == 0 {
		return "-"
	}
	median, least, most := m.show(s.Median), m.show(s.Min), m.show(s.Max)
	if least == most {
		return median
	}
	_, unit, _ := strings.Cut(median, " ")
	if a, of, _ := strings.Cut(least, " "); of == unit {
		if b, of, _ := strings.Cut(most, " "); of == unit {
			least, most = a, b
		}
	}
	return fmt.Sprintf("%s (%s..%s)", median, least, most)
}

func (l *line) bound(b bound) string {
	switch {
	case l.Peer == "":
		return l.Metric.show(b.value)
	case b.isMax:
		return "1/" + sig(1/b.value)
	}
	return sig(b.value) + " x"
}

// bounds are what the line must reach and its aim, and whether it does not.
func (l *line) bounds() string {
	var parts []string
	if !l.Must.none() {
		word := "at least "
		if l.Must.isMax {
			word = "at most "
		}
		parts = append(parts, word+l.bound(l.Must))
	}
	if !l.Aim.none() {
		parts = append(parts, "aim "+l.bound(l.Aim))
	}
	text := strings.Join(parts, ", ")
	switch v := l.verdict(); v {
	case "not measured":
		return v
	case "**no**":
		return text + ": **no**"
	case "aim missed":
		return text + ": missed"
	}
	return text
}

func (l *line) ratio() string {
	r := l.value()
	switch {
	case l.Peer == "" || math.IsNaN(r):
		return ""
	case r < 0.5:
		return "1/" + sig(1/r)
	}
	return sig(r) + " x"
}

// Table writes the lines as a Markdown table. The first cells of a row are empty where they are
// those of the row above.
func Table(lines []line) string {
	var b strings.Builder
	b.WriteString("| work | measure | carronade | peer | ratio | must reach |\n|---|---|---|---|---|---|\n")
	var above []string
	for i := range lines {
		l := &lines[i]
		row := []string{l.Work, l.name(), strings.ReplaceAll(l.Fault, "|", "/"), "", "", l.bounds()}
		if l.Fault == "" {
			row[2], row[4] = l.Carronade.show(l.Metric), l.ratio()
			if l.Peer != "" {
				row[3] = l.Peer + ": " + l.Theirs.show(l.Metric)
			}
		}
		same := 0
		for same < min(3, len(above)) && row[same] == above[same] {
			same++
		}
		above = slices.Clone(row)
		clear(row[:same])
		for _, cell := range row {
			b.WriteString("| ")
			if cell != "" {
				b.WriteString(cell + " ")
			}
		}
		b.WriteString("|\n")
	}
	return b.String()
}

// name is the metric without the unit, which the numbers have.
func (l *line) name() string {
	switch l.Metric {
	case cpuPerEvent:
		return "CPU an event"
	case cpuPerRequest:
		return "CPU a request"
	case cpuShare:
		return "CPU, of one core"
	case sendDelayP50:
		return "send delay p50"
	case maxRSS:
		if l.Worst {
			return "max RSS, worst run"
		}
		return "max RSS"
	case growth:
		return "RSS from second 5 to 60, worst run"
	}
	return string(l.Metric)
}
