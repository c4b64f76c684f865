package workload

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"carronade/internal/advice"
	"carronade/measure"
	"carronade/protocol"
	"carronade/units"
)

// A LimitKind is the type of a limit's value.
type LimitKind uint8

// The kinds. Values are in the given unit.
const (
	DurationKind LimitKind = iota // seconds
	RateKind                      // events per second
	ShareKind                     // part of one
	CountKind                     // whole
	SizeKind                      // bytes
	SpeedKind                     // bytes per second
	NumberKind                    // of a metric, in its own unit
	VerdictKind                   // holds or does not: without operator and value
)

// A LimitOp compares the result with the value.
type LimitOp string

// The operators.
const (
	Below   LimitOp = "<"
	AtMost  LimitOp = "<="
	Equal   LimitOp = "="
	AtLeast LimitOp = ">="
	Above   LimitOp = ">"
)

// Holds reports whether a result meets the limit.
func (o LimitOp) Holds(result, value float64) bool {
	switch o {
	case Below:
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
func (o LimitOp) Upper() bool { return o == Below || o == AtMost || o == Equal }

// A Limit is a condition on one result of a run, such as p99<20ms: the setting slo. Whether it
// holds is decided where the results are.
type Limit struct {
	Text string // as written
	Name string // of the result: "p99", "service.p99", "throughput", "server.heap"

	// Time is the time that a percentile is of: "response", "service", "end_to_end",
	// "send_delay", "batching", "queueing". If empty, it is the main time of the run. Only for
	// limits of times.
	Time string
	// Stat is the statistic of a time.
	Stat LimitStat
	// Percentile is it if Stat is PercentileStat, above 0 and below 100.
	Percentile float64
	// Result is that of the table, nil for times and metrics.
	Result *Result
	// From and Metric are the source and the name of a metric, for limits on those.
	From, Metric string

	Kind    LimitKind
	Op      LimitOp
	Value   float64
	Written string // the value as written
	Needs   LimitNeed
}

// A LimitStat is a statistic of a time.
type LimitStat uint8

// The statistics.
const (
	NoStat LimitStat = iota
	PercentileStat
	MaxStat
	MeanStat
)

// other names of results.
var limitAliases = map[string]string{
	"drops": "dropped", "loss": "lost", "stall": "longest-stall", "blackout": "outage", "recovery": "recover",
	"error-rate": "failure-rate", "errors": "failed", "failures": "failed", "avg": "mean", "p999": "p99.9", "p9999": "p99.99",
}

// MetricSources are where metrics come from: what the system says about itself, what was seen of its
// processes, and the generator's machine. SOURCE.NAME is a metric.
func MetricSources() []string { return []string{"server", "system", "host"} }

// ofMetric splits the name of a metric; false if it is none.
func ofMetric(name string) (from, metric string, ok bool) {
	for _, from := range MetricSources() {
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

// limitTimes are the names of times, as in limits and as in reports.
var limitTimes = []struct {
	name, field string
	needs       LimitNeed
}{
	{"response", "response", NeedsSchedule},
	{"service", "service", NeedsSending},
	{"end-to-end", "end_to_end", NeedsNothing},
	{"acked-to-read", "acked_to_read", NeedsNothing},
	{"send-delay", "send_delay", NeedsSchedule},
	{"batching", "batching", NeedsSchedule},
	{"queueing", "queueing", NeedsSchedule},
}

// LimitTimes lists the names of times, such as "response".
func LimitTimes() []string {
	out := make([]string, len(limitTimes))
	for i := range limitTimes {
		out[i] = limitTimes[i].name
	}
	return out
}

var isPercentile = regexp.MustCompile(`^p[0-9]+(\.[0-9]+)?$`)

const limitForm = "a limit is NAME<VALUE, NAME<=VALUE, NAME=VALUE, NAME>VALUE or NAME>=VALUE, such as 'p99<20ms' (in quotes, for the shell); carronade help slo lists the names"

// ParseLimit parses a limit. Spaces around the operator are ignored. An error is an *Error.
func ParseLimit(text string) (Limit, error) {
	l := Limit{Text: strings.TrimSpace(text)}
	name, rest := splitLimit(l.Text)
	l.Name = canonicalLimit(name)
	if err := l.resolve(name); err != nil {
		return Limit{}, err
	}
	if l.Kind == VerdictKind {
		if rest != "" {
			return Limit{}, &protocol.Error{Err: fmt.Errorf("%s takes no value", l.Name), Hint: "write --slo " + l.Name}
		}
		return l, nil
	}
	if rest == "" {
		return Limit{}, &protocol.Error{Err: errors.New("it has no comparison"), Hint: limitForm}
	}
	for _, op := range []LimitOp{AtMost, AtLeast, Below, Above, Equal} {
		if value, ok := strings.CutPrefix(rest, string(op)); ok {
			l.Op, rest = op, strings.TrimSpace(strings.TrimPrefix(value, "="))
			if op != Equal {
				rest = strings.TrimSpace(value)
			}
			break
		}
	}
	if rest == "" {
		return Limit{}, &protocol.Error{Err: errors.New("the value is missing"), Hint: limitForm}
	}
	if strings.Contains(rest, ",") {
		return Limit{}, &protocol.Error{Err: errors.New("it is more than one limit"), Hint: "give --slo once for each limit"}
	}
	l.Written = rest
	better := Less
	if l.Result != nil {
		better = l.Result.Better
	}
	var err error
	if l.Value, err = parseLimitValue(l.Kind, rest); err != nil {
		return Limit{}, &protocol.Error{Err: err, Hint: limitHint(l.Kind, name, better)}
	}
	switch {
	case l.Kind == ShareKind && l.Value >= 1 && !strings.HasSuffix(rest, "%"):
		return Limit{}, &protocol.Error{Err: fmt.Errorf("%s may mean %s%% or %s", rest, rest, units.FormatPercent(l.Value)), Hint: fmt.Sprintf("write '%s%s%s%%'", name, l.Op, rest)}
	case l.Op == Equal && l.Kind != CountKind && l.Kind != NumberKind && l.Value != 0:
		return Limit{}, &protocol.Error{Err: fmt.Errorf("%s is measured and never exactly equal", l.Name), Hint: limitHint(l.Kind, name, better)}
	case l.Op == Below && l.Value == 0 && l.Metric == "":
		return Limit{}, &protocol.Error{Err: errors.New("no result is below 0"), Hint: fmt.Sprintf("write '%s<=%s'", name, rest)}
	case l.Metric != "":
	case better == More && l.Op.Upper() && (l.Op != Equal || l.Kind != CountKind):
		return Limit{}, &protocol.Error{Err: fmt.Errorf("%s is a lower limit: more is better", l.Name), Hint: fmt.Sprintf("write '%s>=%s'", name, rest)}
	case better == Less && !l.Op.Upper():
		return Limit{}, &protocol.Error{Err: fmt.Errorf("%s is an upper limit: less is better", l.Name), Hint: fmt.Sprintf("write '%s<=%s'", name, rest)}
	}
	return l, nil
}

// splitLimit cuts a limit before its operator; rest is empty if it has none.
func splitLimit(text string) (name, rest string) {
	if i := strings.IndexAny(text, "<>="); i >= 0 {
		name, rest = text[:i], text[i:]
	} else {
		name = text
	}
	return strings.TrimSpace(name), rest
}

// canonicalLimit returns the name as it is shown. Underscores are allowed, as in filters.
func canonicalLimit(name string) string {
	if _, _, ok := ofMetric(name); ok {
		return name // metrics have any letters
	}
	name = strings.ToLower(name)
	for i := range limitTimes { // response_p99 is the name of that field in filters
		t := &limitTimes[i]
		for _, prefix := range []string{t.field + "_", t.name + "_", t.name + "-", t.field + "."} {
			if stat, ok := strings.CutPrefix(name, prefix); ok {
				if a, ok := limitAliases[stat]; ok { // response_p999 is a field, too
					stat = a
				}
				return t.name + "." + stat
			}
		}
	}
	name = strings.ReplaceAll(name, "_", "-")
	if a, ok := limitAliases[name]; ok {
		return a
	}
	if r := ResultNamed(strings.ReplaceAll(name, "-", "_")); r != nil {
		return r.Name
	}
	return name
}

// resolve finds the result that the name is of; written is the name as it was written.
func (l *Limit) resolve(written string) error {
	if l.Name == "" {
		return &protocol.Error{Err: errors.New("it names no result"), Hint: limitForm}
	}
	if from, metric, ok := ofMetric(l.Name); ok {
		if metric == "" {
			return &protocol.Error{Err: errors.New("it names no metric"), Hint: "write " + from + ".NAME, with a name from the metrics of a report"}
		}
		l.Kind, l.From, l.Metric = NumberKind, from, metric
		return nil
	}
	if r := ResultNamed(l.Name); r != nil {
		l.Kind, l.Needs, l.Result = r.Kind, r.Needs, r
		return nil
	}
	stat := l.Name
	for i := range limitTimes {
		if s, ok := strings.CutPrefix(l.Name, limitTimes[i].name+"."); ok {
			stat, l.Time, l.Needs = s, limitTimes[i].field, limitTimes[i].needs
		}
	}
	l.Kind = DurationKind
	switch {
	case stat == "max":
		l.Stat = MaxStat
		return nil
	case stat == "mean":
		l.Stat = MeanStat
		return nil
	case isPercentile.MatchString(stat):
		p, err := strconv.ParseFloat(stat[1:], 64)
		if err == nil && p > 0 && p < 100 {
			l.Stat, l.Percentile = PercentileStat, p
			return nil
		}
		if stat == "p100" {
			return &protocol.Error{Err: errors.New("p100 is the largest value"), Hint: "write max"}
		}
	}
	hint := "carronade help slo lists the names"
	if near := advice.Nearest(written, limitNames()); near != "" {
		hint = "did you mean " + near + "? " + hint
	}
	return &protocol.Error{Err: fmt.Errorf("unknown result %q", l.Name), Hint: hint}
}

// limitNames lists examples of every name, for suggestions.
func limitNames() []string {
	var out []string
	for _, p := range measure.StandardPercentiles() {
		out = append(out, measure.PercentileName(p))
	}
	out = append(out, "max", "mean")
	stats := len(out)
	for i := range limitTimes {
		for _, stat := range out[:stats] {
			out = append(out, limitTimes[i].name+"."+stat)
		}
	}
	for _, r := range Results() {
		out = append(out, r.Name)
	}
	return out
}

func parseLimitValue(k LimitKind, text string) (float64, error) {
	switch k {
	case DurationKind:
		d, err := units.ParseDuration(text)
		return d.Seconds(), err
	case RateKind:
		return units.ParseRate(text)
	case ShareKind:
		return units.ParseShare(text)
	case CountKind:
		n, err := units.ParseCount(text)
		return float64(n), err
	case SizeKind:
		n, err := units.ParseSize(text)
		return float64(n), err
	case SpeedKind:
		size, ok := strings.CutSuffix(text, "/s")
		if !ok {
			return 0, fmt.Errorf("must be a size a second, not %q", text)
		}
		n, err := units.ParseSize(size)
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

func limitHint(k LimitKind, name string, better Better) string {
	op := AtMost
	if better == More {
		op = AtLeast
	}
	example := map[LimitKind]string{DurationKind: "20ms", RateKind: "50k/s", ShareKind: "1%", CountKind: "0", SizeKind: "2GiB", SpeedKind: "50MB/s", NumberKind: "0.5"}[k]
	return fmt.Sprintf("such as '%s%s%s'", name, op, example)
}

// Format prints a value of the limit's kind.
func (k LimitKind) Format(x float64) string {
	switch k {
	case DurationKind:
		return units.FormatDuration(units.Seconds(x))
	case RateKind:
		return units.FormatRate(x)
	case ShareKind:
		return units.FormatPercent(x)
	case CountKind:
		return units.FormatCount(uint64(max(x, 0)))
	case SizeKind:
		return units.FormatSize(int64(x))
	case SpeedKind:
		return units.FormatSize(int64(x)) + "/s"
	}
	return strconv.FormatFloat(x, 'g', 6, 64)
}

// String is the limit for people: "p99 < 20 ms".
func (l *Limit) String() string {
	if l.Kind == VerdictKind {
		return l.Name
	}
	value := l.Written
	if l.Kind != NumberKind && l.Kind != SizeKind && l.Kind != SpeedKind { // the unit of a metric is known only when it is read, and 3GB is not 2.79 GiB
		value = l.Kind.Format(l.Value)
	}
	return l.Name + " " + string(l.Op) + " " + value
}
