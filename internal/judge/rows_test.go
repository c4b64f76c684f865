package judge

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"carronade/internal/layout"
	"carronade/internal/store"
	"carronade/test/testkit/assert"
)

// start is when the first run of a test begins.
var start = time.Date(2026, 10, 1, 2, 0, 0, 0, time.UTC)

// fields are values by name: texts, bools, times and numbers. Those of settings
// and revisions are independent.
type fields map[string]any

// row is a report of a run with these fields in addition to those that every run has.
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

func TestParts(t *testing.T) {
	const level, p99 = 50e3, 0.012
	whole := func(scale float64) fields {
		return fields{
			"response_mean": 0.058 * scale, "batching_mean": 0.002 * scale, "queueing_mean": 0.05 * scale, "send_delay_mean": 0.0001 * scale, "service_mean": 0.0049 * scale,
			"batching_p99": 0.005 * scale, "queueing_p99": 0.09 * scale, "send_delay_p99": 0.001 * scale, "service_p99": 0.02 * scale,
		}
	}
	closed := fields{"service_mean": 0.0049, "service_p99": 0.02}
	for _, c := range []struct {
		name            string
		base, candidate fields
		shown           bool
		say             string
	}{
		{"much longer", whole(1), whole(3), true, "Means add up to the response time; percentiles do not. The rest"},
		{"about as long", whole(1), whole(1.05), false, ""},
		{"only one has a response time", whole(1), closed, true, "The candidate has no response time, so it cannot be divided"},
		{"neither has", closed, closed, false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Compare(runs(1, "a", 6, level, p99, 0.01, c.base), runs(2, "b", 6, level, p99, 0.01, c.candidate), CompareOptions{BaseName: "a", CandidateName: "b"})
			assert.OK(t, err)
			list := got.Pairs[0].Parts
			for _, side := range []func(p *Part) *float64{func(p *Part) *float64 { return p.BaseMean }, func(p *Part) *float64 { return p.CandidateMean }} {
				sum := 0.0
				for i := range list {
					if m := side(&list[i]); m != nil && list[i].Time != responseTime {
						sum += *m
					}
				}
				if n := len(list); n > 0 && side(&list[n-1]) != nil && math.Abs(sum-*side(&list[n-1])) > 1e-12 {
					t.Errorf("the parts add up to %g, want %g", sum, *side(&list[n-1]))
				}
			}
			var b bytes.Buffer
			assert.OK(t, got.Text(&b, layout.Style{}))
			text := strings.Join(strings.Fields(b.String()), " ")
			if shown := strings.Contains(text, "of the response"); shown != c.shown || !strings.Contains(text, c.say) {
				t.Errorf("shown %v, want %v, with %q:\n%s", shown, c.shown, c.say, b.String())
			}
			assert.True(t, !c.shown || c.candidate["response_mean"] == nil ||
				strings.Contains(text, "queueing 50 ms 150 ms 90 ms 270 ms"), "got\n%s", b.String())
		})
	}
}

// A consume run ends with its last record, as in Kafka's tool, and not when its connections are closed. After a
// warm-up only the end of the run is known.
func TestTableConsumeEnd(t *testing.T) {
	start := time.Date(2026, 11, 30, 1, 2, 3, 0, time.UTC)
	end := func(warmup string) time.Duration {
		r := row("c", start, fields{
			"op": "consume", "throughput": 500.0, "consumed": 1000.0, "bytes_moved": 1e6, "elapsed": 2.0, "warmup": warmup,
			"started": fromMS(start), "ended": fromMS(start.Add(2034 * time.Millisecond)),
		})
		table := assert.Value(TableOf([]store.Row{r}, Consuming))(t)
		return table.Runs[0].End.Sub(start)
	}
	assert.Equal(t, end(""), 2*time.Second, "without a warm-up")
	assert.Equal(t, end("1s"), 2034*time.Millisecond, "after a warm-up")
}
