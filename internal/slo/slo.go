// Package slo has the grammar of limits on the results of a run, such as p99<20ms: the flag
// --slo, workload files and everything else that requires a service level use it.
//
// It only parses. Whether a limit holds is decided where the results are.
package slo

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"carronade/units"
)

// A Kind is the type of a limit's value.
type Kind uint8

// The kinds. Values are in the given unit.
const (
	Duration Kind = iota // seconds
	Rate                 // events per second
	Share                // part of one
	Count                // whole
	Size                 // bytes
	Number               // of a metric, in its own unit
	Verdict              // holds or does not: without operator and value
)

// An Op compares the result with the value.
type Op string

// The operators.
const (
	Less    Op = "<"
	AtMost  Op = "<="
	Equal   Op = "="
	AtLeast Op = ">="
	Greater Op = ">"
)

// Holds reports whether a result meets the limit.
func (o Op) Holds(result, value float64) bool {
	switch o {
	case Less:
		return result < value
	case AtMost:
		return result <= value
	case Equal:
		return result == value
	case AtLeast:
		return result >= value
	}
	return result > value
}

// Upper reports whether the operator limits from above.
func (o Op) Upper() bool { return o == Less || o == AtMost || o == Equal }

// A Limit is a condition on one result.
type Limit struct {
	Text string // as written
	Name string // of the result: "p99", "service.p99", "throughput", "server.heap"

	// Time is the time that a percentile is of: "response", "service", "end_to_end",
	// "send_delay", "batching", "queueing". If empty, it is the main time of the run. Only for
	// limits of times.
	Time string
	// Stat is the statistic of a time.
	Stat Stat
	// Percentile is it if Stat is Percentile, above 0 and below 100.
	Percentile float64
	// From and Metric are the source and the name of a metric, for limits on those.
	From, Metric string

	Kind    Kind
	Op      Op
	Value   float64
	Written string // the value as written
	Needs   Need
}

// A Stat is a statistic of a time.
type Stat uint8

// The statistics.
const (
	NoStat Stat = iota
	Percentile
	Max
	Mean
)

// A Need is what a run must do so that a limit can be checked.
type Need uint8

// The needs.
const (
	Nothing  Need = iota
	Schedule      // a rate or a shape
	Delivery      // events are read back
	Sending       // anything but consuming
)

// A Result is one that limits can be on.
type Result struct {
	Name  string
	Kind  Kind
	Help  string
	Needs Need
	// AtLeast means that more is better: the limit is a lower one.
	AtLeast bool
}

// Results lists the results that have a name of their own. Times and metrics have others: see
// Times and Sources.
func Results() []Result {
	return []Result{
		{Name: "throughput", Kind: Rate, AtLeast: true, Help: "events acked (sent, consumed) a second"},
		{Name: "target-share", Kind: Share, AtLeast: true, Needs: Schedule, Help: "throughput as a share of the target rate"},
		{Name: "failure-rate", Kind: Share, Needs: Sending, Help: "failed and unknown events, as a share of those sent"},
		{Name: "failed", Kind: Count, Needs: Sending, Help: "events refused for certain"},
		{Name: "unknown", Kind: Count, Needs: Sending, Help: "events without a certain answer"},
		{Name: "dropped", Kind: Count, Needs: Sending, Help: "events dropped at the in-flight limit"},
		{Name: "unsent", Kind: Count, Needs: Schedule, Help: "events due and never sent"},
		{Name: "retries", Kind: Count, Needs: Sending, Help: "attempts beyond the first"},
		{Name: "longest-stall", Kind: Duration, Help: "longest gap in the answers"},
		{Name: "outage", Kind: Duration, Needs: Sending, Help: "longest time without an ack after a fault, in the worst partition"},
		{Name: "recover", Kind: Duration, Needs: Sending, Help: "longest time from a fault until the limit on response holds again"},
		{Name: "lost", Kind: Count, Needs: Delivery, Help: "events acked and not found"},
		{Name: "not-found", Kind: Count, Needs: Delivery, Help: "events sent and not found, whatever the answer was"},
		{Name: "unread", Kind: Count, Needs: Delivery, Help: "events acked, but not read back"},
		{Name: "duplicated", Kind: Count, Needs: Delivery, Help: "events found twice"},
		{Name: "reordered", Kind: Count, Needs: Delivery, Help: "events out of order"},
		{Name: "corrupted", Kind: Count, Needs: Delivery, Help: "events altered"},
		{Name: "index-share", Kind: Share, AtLeast: true, Help: "documents indexed, of those expected"},
		{Name: "cpu", Kind: Share, Help: "processor time of the system, as a share of its machine's"},
		{Name: "rss", Kind: Size, Help: "resident memory of the system, peak"},
		{Name: "steady", Kind: Verdict, Needs: Sending, Help: "in flight and response time do not climb, without an outage"},
		{Name: "keeps-up", Kind: Verdict, Help: "reading keeps up with writing: the backlog does not grow"},
	}
}

// other names of results.
var aliases = map[string]string{
	"drops": "dropped", "loss": "lost", "stall": "longest-stall", "blackout": "outage", "recovery": "recover",
	"error-rate": "failure-rate", "errors": "failed", "failures": "failed", "avg": "mean", "p999": "p99.9", "p9999": "p99.99",
}

// Sources are where metrics come from: what the system says about itself, what was seen of its
// processes, and the generator's machine. SOURCE.NAME is a metric.
func Sources() []string { return []string{"server", "system", "host"} }

// ofMetric splits the name of a metric; false if it is none.
func ofMetric(name string) (from, metric string, ok bool) {
	for _, from := range Sources() {
		if metric, ok := strings.CutPrefix(name, from+"."); ok {
			return from, metric, true
		}
	}
	return "", "", false
}

// SameMetric reports whether two names are of the same metric: case does not matter, and a
// hyphen or underscore may stand for a space.
func SameMetric(a, b string) bool {
	plain := strings.NewReplacer(" ", "-", "_", "-")
	return strings.EqualFold(plain.Replace(a), plain.Replace(b))
}

// times are the names of times, as in limits and as in reports.
var times = []struct {
	name, field string
	needs       Need
}{
	{"response", "response", Schedule},
	{"service", "service", Sending},
	{"end-to-end", "end_to_end", Nothing},
	{"send-delay", "send_delay", Schedule},
	{"batching", "batching", Schedule},
	{"queueing", "queueing", Schedule},
}

// Times lists the names of times, such as "response".
func Times() []string {
	out := make([]string, len(times))
	for i := range times {
		out[i] = times[i].name
	}
	return out
}

var isPercentile = regexp.MustCompile(`^p[0-9]+(\.[0-9]+)?$`)

// ErrName is the error for a name that is not known.
var ErrName = errors.New("unknown result")

// An Error is a limit that cannot be parsed, with the way out.
type Error struct {
	Err  error
	Hint string
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

const formHint = "a limit is NAME<VALUE, NAME<=VALUE, NAME=VALUE, NAME>VALUE or NAME>=VALUE, such as 'p99<20ms' (in quotes, for the shell); carronade help slo lists the names"

// Parse parses a limit. Spaces around the operator are ignored. An error is an *Error.
func Parse(text string) (Limit, error) {
	l := Limit{Text: strings.TrimSpace(text)}
	name, rest := split(l.Text)
	l.Name = canonical(name)
	r, err := l.resolve()
	if err != nil {
		return Limit{}, err
	}
	if l.Kind == Verdict {
		if rest != "" {
			return Limit{}, &Error{fmt.Errorf("%s takes no value", l.Name), "write --slo " + l.Name}
		}
		return l, nil
	}
	if rest == "" {
		return Limit{}, &Error{errors.New("it has no comparison"), formHint}
	}
	for _, op := range []Op{AtMost, AtLeast, Less, Greater, Equal} {
		if value, ok := strings.CutPrefix(rest, string(op)); ok {
			l.Op, rest = op, strings.TrimSpace(strings.TrimPrefix(value, "="))
			if op != Equal {
				rest = strings.TrimSpace(value)
			}
			break
		}
	}
	if rest == "" {
		return Limit{}, &Error{errors.New("the value is missing"), formHint}
	}
	if strings.Contains(rest, ",") {
		return Limit{}, &Error{errors.New("it is more than one limit"), "give --slo once for each limit"}
	}
	l.Written = rest
	if l.Value, err = parseValue(l.Kind, rest); err != nil {
		return Limit{}, &Error{err, valueHint(l.Kind, name, r.AtLeast)}
	}
	switch {
	case l.Kind == Share && l.Value >= 1 && !strings.HasSuffix(rest, "%"):
		return Limit{}, &Error{fmt.Errorf("%s may mean %s%% or %s", rest, rest, units.FormatPercent(l.Value)), fmt.Sprintf("write '%s%s%s%%'", name, l.Op, rest)}
	case l.Op == Equal && l.Kind != Count && l.Kind != Number && l.Value != 0:
		return Limit{}, &Error{fmt.Errorf("%s is measured and never exactly equal", l.Name), valueHint(l.Kind, name, r.AtLeast)}
	case l.Op == Less && l.Value == 0 && l.Metric == "":
		return Limit{}, &Error{errors.New("no result is below 0"), fmt.Sprintf("write '%s<=%s'", name, rest)}
	case l.Metric != "":
	case r.AtLeast && l.Op.Upper():
		return Limit{}, &Error{fmt.Errorf("%s is a lower limit: more is better", l.Name), fmt.Sprintf("write '%s>=%s'", name, rest)}
	case !r.AtLeast && !l.Op.Upper():
		return Limit{}, &Error{fmt.Errorf("%s is an upper limit: less is better", l.Name), fmt.Sprintf("write '%s<=%s'", name, rest)}
	}
	return l, nil
}

// NameOf returns the name that a limit begins with, as written.
func NameOf(text string) string {
	name, _ := split(text)
	return name
}

// split cuts a limit before its operator; rest is empty if it has none.
func split(text string) (name, rest string) {
	if i := strings.IndexAny(text, "<>="); i >= 0 {
		name, rest = text[:i], text[i:]
	} else {
		name = text
	}
	return strings.TrimSpace(name), rest
}

// canonical returns the name as it is shown. Underscores are allowed, as in filters.
func canonical(name string) string {
	if _, _, ok := ofMetric(name); ok {
		return name // metrics have any letters
	}
	name = strings.ToLower(name)
	for i := range times { // response_p99 is the name of that field in filters
		t := &times[i]
		for _, prefix := range []string{t.field + "_", t.name + "_", t.name + "-", t.field + "."} {
			if stat, ok := strings.CutPrefix(name, prefix); ok {
				if a, ok := aliases[stat]; ok { // response_p999 is a field, too
					stat = a
				}
				return t.name + "." + stat
			}
		}
	}
	name = strings.ReplaceAll(name, "_", "-")
	if a, ok := aliases[name]; ok {
		return a
	}
	return name
}

// resolve finds the result that the name is of.
func (l *Limit) resolve() (Result, error) {
	if l.Name == "" {
		return Result{}, &Error{errors.New("it names no result"), formHint}
	}
	if from, metric, ok := ofMetric(l.Name); ok {
		if metric == "" {
			return Result{}, &Error{errors.New("it names no metric"), "write " + from + ".NAME, with a name from the metrics of a report"}
		}
		l.Kind, l.From, l.Metric = Number, from, metric
		return Result{}, nil
	}
	for _, r := range Results() {
		if r.Name == l.Name {
			l.Kind, l.Needs = r.Kind, r.Needs
			return r, nil
		}
	}
	stat := l.Name
	for i := range times {
		if s, ok := strings.CutPrefix(l.Name, times[i].name+"."); ok {
			stat, l.Time, l.Needs = s, times[i].field, times[i].needs
		}
	}
	l.Kind = Duration
	switch {
	case stat == "max":
		l.Stat = Max
		return Result{}, nil
	case stat == "mean":
		l.Stat = Mean
		return Result{}, nil
	case isPercentile.MatchString(stat):
		p, err := strconv.ParseFloat(stat[1:], 64)
		if err == nil && p > 0 && p < 100 {
			l.Stat, l.Percentile = Percentile, p
			return Result{}, nil
		}
		if stat == "p100" {
			return Result{}, &Error{errors.New("p100 is the largest value"), "write max"}
		}
	}
	return Result{}, &Error{fmt.Errorf("%w %q", ErrName, l.Name), ""}
}

// Names lists examples of every name, for suggestions.
func Names() []string {
	out := []string{"p50", "p90", "p95", "p99", "p99.9", "p99.99", "max", "mean"}
	stats := len(out)
	for i := range times {
		for _, stat := range out[:stats] {
			out = append(out, times[i].name+"."+stat)
		}
	}
	for _, r := range Results() {
		out = append(out, r.Name)
	}
	return out
}

func parseValue(k Kind, text string) (float64, error) {
	switch k {
	case Duration:
		d, err := units.ParseDuration(text)
		return d.Seconds(), err
	case Rate:
		return units.ParseRate(text)
	case Share:
		return units.ParseShare(text)
	case Count:
		n, err := units.ParseCount(text)
		return float64(n), err
	case Size:
		n, err := units.ParseSize(text)
		return float64(n), err
	}
	// A metric: a number in its unit, or a size, a time (in seconds) or a percentage.
	x, err := strconv.ParseFloat(text, 64)
	if err == nil && x-x == 0 {
		return x, nil
	}
	if n, err := units.ParseSize(text); err == nil {
		return float64(n), nil
	}
	if d, err := units.ParseDuration(text); err == nil {
		return d.Seconds(), nil
	}
	if share, err := units.ParseShare(text); err == nil && strings.HasSuffix(text, "%") {
		return 100 * share, nil
	}
	_, err = units.ParseSize(text)
	if unclear, ok := errors.AsType[*units.Error](err); ok && unclear.Ambiguous {
		return 0, err
	}
	return 0, fmt.Errorf("must be a number, a size, a time or a percentage, not %q", text)
}

func valueHint(k Kind, name string, atLeast bool) string {
	op := AtMost
	if atLeast {
		op = AtLeast
	}
	example := map[Kind]string{Duration: "20ms", Rate: "50k/s", Share: "1%", Count: "0", Size: "2GiB", Number: "0.5"}[k]
	return fmt.Sprintf("such as '%s%s%s'", name, op, example)
}

// Format prints a value of the limit's kind.
func (k Kind) Format(x float64) string {
	switch k {
	case Duration:
		return units.FormatDuration(units.Seconds(x))
	case Rate:
		return units.FormatRate(x)
	case Share:
		return units.FormatPercent(x)
	case Count:
		return units.FormatCount(uint64(max(x, 0)))
	case Size:
		return units.FormatSize(int64(x))
	}
	return strconv.FormatFloat(x, 'g', 6, 64)
}

// String is the limit for people: "p99 < 20 ms".
func (l *Limit) String() string {
	if l.Kind == Verdict {
		return l.Name
	}
	value := l.Written
	if l.Kind != Number && l.Kind != Size { // the unit of a metric is known only when it is read, and 3GB is not 2.79 GiB
		value = l.Kind.Format(l.Value)
	}
	return l.Name + " " + string(l.Op) + " " + value
}
