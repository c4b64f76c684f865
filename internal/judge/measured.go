package judge

import (
	"slices"
	"strings"

	"carronade/internal/store"
	"carronade/internal/verdict/stats"
	"carronade/internal/workload"
	"carronade/measure"
)

// A quantity is something measured: a row of comparisons, a column of
// collations, or both.
type quantity struct {
	field  string // of rows
	title  string // in comparisons
	column string // in collations; "": not a column
	better stats.Direction
	amount float64 // if > 0, the smallest difference worth naming, in the quantity's unit
	marked bool    // the best of a group is marked in its column
}

// throughput is the first of the two primary rows, on which the verdicts of
// verify are based. It decides a comparison of runs without a schedule.
var throughput = quantity{field: "throughput", title: "throughput", column: "throughput", better: stats.More, marked: true}

// The ends of the answers of searches. The lower one decides a comparison of searches, and the
// upper one must not be worse.
var (
	ceiling      = quantity{field: "ceiling", title: "ceiling", column: "ceiling", better: stats.More, marked: true}
	ceilingUpper = quantity{field: "ceiling_upper", title: "ceiling, upper end", column: "upper end", better: stats.More}
)

// times are the times by which runs are compared; the first that both sides
// have is used: how long a user waits; without a schedule, how long the system
// takes; for runs that only read, how long events travelled.
var times = []string{"response", "service", "end_to_end"}

// comparedAt are the percentiles of times that have rows in comparisons.
var comparedAt = textsOf(measure.PercentilesOf(measure.Compared))

func textsOf(ps []float64) (texts []string) {
	for _, p := range ps {
		texts = append(texts, strings.TrimPrefix(measure.PercentileName(p), "p"))
	}
	return texts
}

// timeAt is a percentile of a time. The column of the median also names the
// time for the columns next to it.
func timeAt(name, p string) quantity {
	q := quantity{
		field: timeField(name, "p"+p), title: strings.ReplaceAll(name, "_", " ") + " p" + p, column: "p" + p,
		better: stats.Less, marked: p == "99",
	}
	if p == "50" {
		q.column = q.title
	}
	return q
}

// responseP99 decides a comparison of runs under a schedule.
var responseP99 = timeAt("response", "99")

// What the system used and refused.
var (
	cores      = quantity{field: "system_cores", title: "CPU", column: "cpu", better: stats.Less}
	memory     = quantity{field: "max_rss", title: "memory", column: "max rss", better: stats.Less}
	perCore    = quantity{field: "events_per_core", title: "events per core", better: stats.More}
	efficiency = quantity{field: "efficiency", title: "memory efficiency", column: "effic", better: stats.More, marked: true}
	failures   = quantity{field: "failure_share", title: "failures", column: "failed", better: stats.Less, amount: 0.001}
	unknown    = quantity{field: "unknown_share", title: "unknown", better: stats.Less, amount: 0.001}
)

// systemQuantities are the rows of comparisons about what the system used and
// refused.
var systemQuantities = []quantity{cores, memory, perCore, efficiency, failures, unknown}

// columns are those of hey-apm's table, in its order, and the percentiles.
var columns = func() []quantity {
	out := []quantity{
		ceiling, ceilingUpper,
		{field: "pushed", column: "pushed"},
		{field: "accepted", column: "accepted"},
		{field: "read", column: "read"},
		throughput,
		{field: "per_batch", column: "per batch", better: stats.Less},
	}
	for _, t := range times {
		for _, p := range textsOf(measure.PercentilesOf(measure.Collated)) {
			out = append(out, timeAt(t, p))
		}
	}
	return append(out, failures, quantity{field: "indexed", column: "indexed"}, quantity{field: "index_share", column: "index"}, memory, cores, efficiency)
}()

// unshown are quantities that only the JSON of a collation has.
var unshown = []quantity{{field: "service_mean", better: stats.Less}}

// ascending is whether sorting by a field puts the smallest value first,
// because it is the best.
func ascending(field string) bool {
	r := workload.ResultNamed(field)
	return r != nil && r.Field == field && r.Better == workload.Less
}

// primary are the two rows on which verdicts of verify are based: throughput, and the
// 99th percentile of the time that both sides have. Of searches it is the ceiling.
func primary(sides ...[]store.Row) []quantity {
	if haveAll(ceiling.field, sides) {
		return []quantity{ceiling}
	}
	return primaryOfRuns(sides...)
}

func primaryOfRuns(sides ...[]store.Row) []quantity {
	out := []quantity{throughput}
	for _, t := range times {
		if q := timeAt(t, "99"); haveAll(q.field, sides) {
			return append(out, q)
		}
	}
	return out
}

// haveAll is whether every side has the field in some row.
func haveAll(field string, sides [][]store.Row) bool {
	for _, rows := range sides {
		if len(sample(rows, field)) == 0 {
			return false
		}
	}
	return len(sides) > 0
}

// haveAny is whether some side has the field in some row.
func haveAny(field string, sides [][]store.Row) bool {
	return slices.ContainsFunc(sides, func(rows []store.Row) bool { return len(sample(rows, field)) > 0 })
}

// exploratory are the rows other than the one that decides, if some side has
// them.
func exploratory(main quantity, sides ...[]store.Row) []quantity {
	var out []quantity
	add := func(q quantity) {
		if q.field != main.field && haveAny(q.field, sides) {
			out = append(out, q)
		}
	}
	add(ceilingUpper)
	add(throughput)
	for i, t := range times {
		if i == 1 && haveAny(responseP99.field, sides) {
			continue // the service time of a scheduled run says less, and is in the distribution
		}
		for _, p := range comparedAt {
			add(timeAt(t, p))
		}
	}
	for _, q := range systemQuantities {
		add(q)
	}
	return out
}

// kindOf is the kind of the field's numbers.
func kindOf(field string, sides ...[]store.Row) store.ValueKind {
	for _, rows := range sides {
		for i := range rows {
			if v, ok := rows[i].Get(field); ok {
				return v.Kind
			}
		}
	}
	return store.KindNumber
}

// Effects are the smallest differences worth naming, as shares of the base.
type Effects struct {
	All float64            // for every row that has no effect in Of
	Of  map[string]float64 // by the name of the field
}

// The smallest differences worth naming if none is requested: of a rate, and of anything else.
const (
	DefaultRateEffect = 0.02
	DefaultEffect     = 0.05
)

// MostEffect is the exclusive upper limit of every effect: a gate that accepts
// twice as much as equal checks nothing.
const MostEffect = 1

// of is the effect of a quantity.
func (e Effects) of(q quantity) float64 {
	if v, ok := e.Of[q.field]; ok {
		return v
	}
	if q.amount > 0 {
		return q.amount
	}
	switch {
	case e.All > 0:
		return e.All
	case q.field == throughput.field, q.field == ceiling.field, q.field == ceilingUpper.field:
		return DefaultRateEffect
	}
	return DefaultEffect
}

// Judged names the fields that comparisons may judge.
func Judged() []string {
	var out []string
	for _, q := range judgedQuantities() {
		out = append(out, q.field)
	}
	return out
}

func judgedQuantities() []quantity {
	out := []quantity{ceiling, ceilingUpper, throughput}
	for _, t := range times {
		for _, p := range comparedAt {
			out = append(out, timeAt(t, p))
		}
	}
	return append(out, systemQuantities...)
}
