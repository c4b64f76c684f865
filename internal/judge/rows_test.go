package judge

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"carronade/internal/store"
)

// start is when the first run of a test begins.
var start = time.Date(2026, 10, 1, 2, 0, 0, 0, time.UTC)

// fields are values by name: texts, bools, times and numbers. Those of settings
// and revisions are independent.
type fields map[string]any

// row is a report of a run with these fields in addition to those that every
// run has.
func row(id string, at time.Time, given ...fields) store.Row {
	all := fields{
		"id": id, "op": "produce", "kind": "kafka", "target": "kafka://127.0.0.1:9092/t", "version": "1.0.0", "trusted": true, "partial": false,
		"rate": "50k/s", "for": "30s", "acks": "all", "host.cpu": "one cpu", "host.cores": 8.0, "repetition": 1.0, "repetitions": 1.0,
		"throughput": 50e3, "response_p50": 0.002, "response_p99": 0.012, "response_p999": 0.040,
	}
	for _, g := range given {
		maps.Copy(all, g)
	}
	r := store.Row{ID: id, At: at}
	for name, v := range all {
		var x store.Value
		switch v := v.(type) {
		case nil:
			continue
		case string:
			x.Text = v
		case bool:
			x.Kind = store.KindBool
			if v {
				x.Num = 1
			}
		case store.Value:
			x = v
		case time.Time:
			x.Kind, x.Num = store.KindTime, float64(v.Unix())
		case float64:
			x.Kind, x.Num = kindOfName(name), v
		default:
			panic(fmt.Sprintf("%s is %T", name, v))
		}
		switch name {
		case "op", "target", "rate", "for", "acks", "concurrency", "revision", "branch", "events", "spans", "frames", "host.cpu", "host.cores", "host.cpu_limit", "target.servers", "target.topic.partitions", "target.brokers.version":
			x.Independent = true
		}
		x.Independent = x.Independent || strings.HasPrefix(name, "flag.") || name == indexAddress || name == indexStore || name == indexNodes
		r.Fields = append(r.Fields, store.Field{Name: name, Value: x})
	}
	slices.SortFunc(r.Fields, func(a, b store.Field) int { return cmp.Compare(a.Name, b.Name) })
	return r
}

var kindOfName = func() func(string) store.ValueKind {
	kinds := map[string]store.ValueKind{}
	for _, f := range store.Fields() {
		kinds[f.Name] = f.Kind
	}
	return func(name string) store.ValueKind {
		if k, ok := kinds[name]; ok {
			return k
		}
		return store.KindNumber
	}
}()

// runs are n reports of one workload around levels of throughput and response
// p99; noise is the relative standard deviation.
func runs(seed uint64, prefix string, n int, throughput, p99, noise float64, given ...fields) []store.Row {
	rnd := rand.New(rand.NewPCG(seed, seed))
	around := func(level float64) float64 { return level * math.Exp(noise*rnd.NormFloat64()) }
	var out []store.Row
	for i := range n {
		f := fields{
			"throughput": around(throughput), "response_p99": around(p99), "response_p50": around(p99 / 6), "response_p999": around(p99 * 3),
			"response_min": around(p99 / 20), "response_max": around(p99 * 8), "response_p90": around(p99 / 2), "system_cores": around(1.5), "max_rss": around(400e6),
			"efficiency": around(0.7), "failures": 0.0, "repetition": float64(i + 1), "repetitions": float64(n),
		}
		out = append(out, row(fmt.Sprintf("%s%d", prefix, i), start.Add(time.Duration(i)*time.Minute), append([]fields{f}, given...)...))
	}
	return out
}
