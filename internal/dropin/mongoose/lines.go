package mongoose

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"carronade/internal/dropin"
)

const mib = 1 << 20

// header begins the table.
const header = `------------------------------------------------------------------------------------------------------------------------
 Step Id  | Timestamp  |  Op  |     Concurrency     |       Count       | Step  |   Last Rate    |  Mean    |   Mean    
 (last 10 |            | type |---------------------|-------------------| Time  |----------------| Latency  | Duration  
 symbols) |yyMMddHHmmss|      | Current  |   Mean   |   Success  |Failed|  [s]  | [op/s] |[MB/s] |  [us]    |   [us]    
----------|------------|------|----------|----------|------------|------|-------|--------|-------|----------|-----------
`

// A table is the table on the console.
type table struct {
	w     io.Writer
	s     *step
	color bool
	rows  int
}

// opColors are the colors of operations.
var opColors = map[string]string{
	"NOOP": "\x1b[38;5;101m", "CREATE": "\x1b[38;5;67m", "READ": "\x1b[38;5;65m", "DELETE": "\x1b[38;5;137m", "LIST": "\x1b[38;5;138m",
}

// row writes a row, after a header if one is due.
func (t *table) row(m *metrics) {
	var b strings.Builder
	if t.rows%t.s.headerEach == 0 {
		b.WriteString(header)
	}
	t.rows++
	paint := func(code, s string) string {
		if !t.color {
			return s
		}
		return code + s + "\x1b[0m"
	}
	columns := []string{
		left(t.s.id, 10),
		left(m.at.UTC().Format("060102150405"), 12),
		paint(opColors[t.s.op], right(t.s.op, 6)),
		left(strconv.FormatUint(m.current, 10), 10),
		right(fixed(m.mean, 10), 10),
		left(strconv.FormatUint(m.succ, 10), 12),
		paint(failColor(m.succ, m.fail), left(t.s.failed(m.fail), 6)),
		right(dropin.JavaDouble(seconds(m)), 7),
		right(fixed(m.lastRate, 8), 8),
		right(fixed(m.lastBytes/mib, 7), 7),
		left(strconv.FormatInt(int64(m.latency.mean), 10), 10),
		left(strconv.FormatInt(int64(m.duration.mean), 10), 11),
	}
	b.WriteString(strings.Join(columns, "|") + "\n")
	io.WriteString(t.w, b.String()) //nolint:errcheck // as other words to people
}

// rowOf is row for another operation of the step.
func (t *table) rowOf(s *step, m *metrics) {
	own := *t
	own.s = s
	own.row(m)
	t.rows = own.rows
}

// failed formats a count for a column of six digits: a longer one in Java's format
// for large numbers, cut to fit. With --strict the column shows its last six
// digits.
func (s *step) failed(n uint64) string {
	const most = 6
	text := strconv.FormatUint(n, 10)
	if len(text) <= most || s.strict {
		return text
	}
	exponent := "E" + strconv.Itoa(len(text)-1)
	return text[:1] + "." + text[1:most-1-len(exponent)] + exponent
}

// failColor is a color from green to red, by the share of failures.
func failColor(succ, fail uint64) string {
	total := float64(succ + fail)
	switch {
	case fail == 0:
		return "\x1b[38;2;0;200;0m"
	case fail >= succ:
		return fmt.Sprintf("\x1b[38;2;%d;0;0m", 200+int(55*float64(fail)/total))
	}
	return fmt.Sprintf("\x1b[38;2;%d;%d;0m", int(400*math.Sqrt(float64(fail)/total)), int(200*float64(succ)/total))
}

// seconds is the step's elapsed time, rounded down to milliseconds.
func seconds(m *metrics) float64 { return float64(m.elapsed.Milliseconds()) / 1e3 }

// summary writes the document of results.
func (s *step) summary(w io.Writer, m *metrics) {
	var b strings.Builder
	line := func(label, value string) { fmt.Fprintf(&b, "%-31s%s\n", label, value) }
	count := func(n uint64) string { return strconv.FormatUint(n, 10) }
	b.WriteString("---\n# Results " + strings.Repeat("#", 110) + "\n")
	line("- Load Step Id:", s.id)
	line("  Operation Type:", s.op)
	line("  Node Count:", strconv.Itoa(s.nodeCount()))
	line("  Concurrency:", "")
	line("    Limit Per Storage Driver:", strconv.Itoa(s.concurrency))
	line("    Actual:", "")
	line("      Last:", count(m.current))
	line("      Mean:", dropin.JavaDouble(m.mean))
	line("  Operations Count:", "")
	line("    Successful:", count(m.succ))
	line("    Failed:", count(m.fail))
	line("  Transfer Size:", bytesText(m.bytes))
	line("  Duration [s]:", "")
	line("    Elapsed:", dropin.JavaDouble(seconds(m)))
	line("    Sum:", dropin.JavaDouble(m.duration.sum))
	line("  Throughput [op/s]:", "")
	line("    Last:", dropin.JavaDouble(m.lastRate))
	line("    Mean:", dropin.JavaDouble(m.meanRate))
	line("  Bandwidth [MB/s]:", "")
	line("    Last:", dropin.JavaDouble(m.lastBytes/mib))
	line("    Mean:", dropin.JavaDouble(m.meanBytes/mib))
	for _, t := range []struct {
		label string
		timing
	}{{"  Operations Duration [us]:", m.duration}, {"  Operations Latency [us]:", m.latency}} {
		line(t.label, "")
		line("    Avg:", dropin.JavaDouble(t.mean))
		line("    Min:", strconv.FormatInt(t.min, 10))
		for i, label := range s.quantileLabels() {
			line("    "+label+":", strconv.FormatInt(t.quantiles[i], 10))
		}
		line("    Max:", strconv.FormatInt(t.max, 10))
	}
	b.WriteString("...\n")
	io.WriteString(w, b.String()) //nolint:errcheck // as other words to people
}

// quantileLabels are the labels of the quantiles' lines: names for the three
// quartiles in 4.2, otherwise numbers.
func (s *step) quantileLabels() []string {
	if !s.is43 && s.quartiles() {
		return []string{"LoQ", "Med", "HiQ"}
	}
	var out []string
	for _, q := range s.quantiles {
		out = append(out, "Quantile "+dropin.JavaDouble(q))
	}
	return out
}

// quartiles reports whether the quantiles are the three of 4.2.
func (s *step) quartiles() bool {
	return len(s.quantiles) == 3 && s.quantiles[0] == 0.25 && s.quantiles[1] == 0.5 && s.quantiles[2] == 0.75
}
