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
	"carronade/internal/verdict/stats"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// searches are the rows of n searches of a revision, whose ceilings lie around a level.
func searches(seed uint64, revision string, n int, level, noise float64, given ...fields) []store.Row {
	rnd := rand.New(rand.NewPCG(seed, 7))
	var out []store.Row
	for i := range n {
		low := level * math.Exp(noise*rnd.NormFloat64())
		f := fields{
			"mode": "find", "rate": nil, "for": nil, "throughput": nil, "response_p50": nil, "response_p99": nil, "response_p999": nil,
			"slo": store.Value{Text: "p99 < 50 ms", Independent: true}, "ceiling": low, "ceiling_upper": low * 1.02,
			"branch": "main", "revision": fmt.Sprintf("%040s", revision), "revision_date": start.Add(time.Duration(seed) * 24 * time.Hour),
		}
		out = append(out, row(fmt.Sprintf("%s%d", revision, i), start.Add(time.Duration(seed)*24*time.Hour+time.Duration(i)*time.Minute), append([]fields{f}, given...)...))
	}
	return out
}

// Searches are compared by their ceilings.
func TestCompareSearches(t *testing.T) {
	for _, tt := range []struct {
		name            string
		base, candidate []store.Row
		want            string
	}{
		{"the same", searches(1, "a", 8, 948, 0.005), searches(2, "b", 8, 948, 0.005), "same"},
		{"lower", searches(1, "a", 8, 948, 0.01), searches(2, "b", 8, 800, 0.01), "worse"},
		{"higher", searches(1, "a", 8, 948, 0.01), searches(2, "b", 8, 1100, 0.01), "better"},
		{"one each", searches(1, "a", 1, 948, 0.01), searches(2, "b", 1, 800, 0.01), "cannot tell"},
		{"a higher lower end below a lower upper end", searches(1, "a", 8, 948, 0.01, fields{"ceiling_upper": 1500.0}), searches(2, "b", 8, 1100, 0.01), "cannot tell"},
		{"three each, whose intervals lie apart", searches(1, "a", 3, 948, 0.001), searches(2, "b", 3, 1000, 0.001), "better"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := assert.Value(Compare(tt.base, tt.candidate, CompareOptions{}))(t)
			if got := c.verdict(); got != tt.want || c.Pairs[0].Rows[0].Field != "ceiling" {
				t.Errorf("got %s by %s, want %s", got, c.Pairs[0].Rows[0].Field, tt.want)
			}
		})
	}
}

// A revision whose ceiling fell is worse.
func TestVerifySearches(t *testing.T) {
	for _, tt := range []struct {
		level float64
		want  string
	}{{948, NotWorse}, {800, Worse}} {
		rows := append(searches(1, "abc1", 10, 948, 0.005), searches(2, "abc2", 10, tt.level, 0.005)...)
		v := assert.Value(Verify(rows, VerifyOptions{}))(t)
		if v.Verdict != tt.want || v.Groups[0].Rows[0].Field != "ceiling" {
			t.Errorf("at %v: got %s by %s, want %s", tt.level, v.Verdict, v.Groups[0].Rows[0].Field, tt.want)
		}
	}
}

// A collation has ceilings as a column.
func TestCollateSearches(t *testing.T) {
	rows := append(searches(1, "abc1", 2, 948, 0.005), searches(2, "abc2", 2, 700, 0.005)...)
	c := assert.Value(Collate(rows, CollateOptions{Var: "revision"}))(t)
	l := &c.Groups[0].Rows[0]
	cell, ok := l.Cells["ceiling"]
	assert.True(t, ok && cell.N == 2, "got %+v", l.Cells)
}

// ceilings are searches with these lower ends whose intervals are of one width.
func ceilings(width float64, lower ...float64) (out []Ceiling) {
	for _, v := range lower {
		out = append(out, Ceiling{Holds: v, Fails: v * (1 + width)})
	}
	return out
}

func TestCompareCeilings(t *testing.T) {
	six := []float64{1000, 1004, 1008, 1012, 1016, 1020}
	unknown := func(c []Ceiling) []Ceiling {
		for i := range c {
			c[i].Fails = 0
		}
		return c
	}
	for _, tt := range []struct {
		name            string
		base, candidate []Ceiling
		want            stats.Verdict
		why             string
	}{
		{"intervals apart, three", ceilings(0.05, 900, 905, 910), ceilings(0.05, 1000, 1004, 1008), stats.Better, ""},
		{"intervals apart, below, three", ceilings(0.05, 1000, 1004, 1008), ceilings(0.05, 900, 905, 910), stats.Worse, ""},
		{"intervals overlap, three", ceilings(0.2, 900, 905, 910), ceilings(0.2, 1000, 1004, 1008), stats.Unknown, "needs 6 repetitions"},
		{"intervals touch, three alike", ceilings(0.02, 1000, 1000, 1000), ceilings(0.02, 1020, 1020, 1020), stats.Unknown, "needs 6 repetitions"},
		{"two", ceilings(0.02, 900, 905), ceilings(0.02, 1500, 1501), stats.Unknown, "needs 6 repetitions"},
		{"six", ceilings(0.02, six...), ceilings(0.02, 1100, 1104, 1108, 1112, 1116, 1120), stats.Better, ""},
		{"six, equal", ceilings(0.02, six...), ceilings(0.02, six...), stats.Same, ""},
		{"six, only wider", ceilings(0.02, 1100, 1104, 1108, 1112, 1116, 1120), ceilings(0.2, six...), stats.Unknown, "by the lower ends of the intervals it is worse, by the upper ends better"},
		{"better than what the generator limited", unknown(ceilings(0, six...)), ceilings(0.02, 1500, 1504, 1508, 1512, 1516, 1520), stats.Unknown, "by the upper ends worse"},
		{"the generator limits what is better", ceilings(0.02, six...), unknown(ceilings(0, 1500, 1504, 1508, 1512, 1516, 1520)), stats.Better, ""},
		{"no rate holds any more", ceilings(0.02, 900, 905, 910), []Ceiling{{0, 1}, {0, 1}, {0, 1}}, stats.Worse, ""},
		{"one side is empty", ceilings(0.02, 900, 905, 910), nil, stats.Unknown, "not measured on both sides"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j := CompareCeilings(tt.base, tt.candidate, DefaultEffect, 0, stats.Defaults)
			assert.True(t, j.Verdict == tt.want && strings.Contains(j.Why, tt.why), "got %s, %q, want %s", j.Verdict, j.Why, tt.want)
			if j.Base.Median != nil && *j.Base.Median != tt.base[len(tt.base)/2].Holds && len(tt.base)%2 == 1 {
				t.Errorf("got %v before, want the median of the lower ends", *j.Base.Median)
			}
		})
	}
}

// Equal sides are called different in at most 5 % of comparisons, however the ceiling differs between
// searches, and whatever part of the width of an interval a search adds. A difference of 20 % is found.
func TestCompareCeilingsErrorRate(t *testing.T) {
	testkit.Need(t, "some seconds")
	const trials = 2000
	for name, noise := range map[string]func(*rand.Rand) float64{
		"none":   func(*rand.Rand) float64 { return 0 },
		"2 %":    func(r *rand.Rand) float64 { return 0.02 * r.NormFloat64() },
		"10 %":   func(r *rand.Rand) float64 { return 0.1 * r.NormFloat64() },
		"Cauchy": func(r *rand.Rand) float64 { return 0.02 * r.NormFloat64() / math.Abs(r.NormFloat64()) },
		"steps":  func(r *rand.Rand) float64 { return 0.02 * float64(r.IntN(2)) },
	} {
		for _, n := range []int{3, 4, 6} {
			rnd := rand.New(rand.NewPCG(uint64(n), 1))
			side := func(factor float64) (out []Ceiling) {
				for range n {
					width := 0.02 + 0.06*rnd.Float64()
					level := factor * math.Exp(noise(rnd))
					lower := level * (1 - width*rnd.Float64())
					out = append(out, Ceiling{lower, lower * (1 + width)})
				}
				return out
			}
			different, found := 0, 0
			for range trials {
				if v := CompareCeilings(side(1), side(1), DefaultEffect, 0, stats.Defaults).Verdict; v == stats.Better || v == stats.Worse {
					different++
				}
				if CompareCeilings(side(1), side(1.2), DefaultEffect, 0, stats.Defaults).Verdict == stats.Better {
					found++
				}
			}
			t.Logf("%s, %d searches: called different in %.1f %%, 20 %% more found in %.1f %%", name, n, 100*float64(different)/trials, 100*float64(found)/trials)
			assert.True(t, different*20 <= trials,
				"%s, %d searches: equal sides are called different in %d of %d", name, n, different, trials)
			assert.True(t, name != "none" || found*10 >= 9*trials,
				"%s, %d searches: 20 %% more is found in %d of %d", name, n, found, trials)
		}
	}
}

// start is when the first run of a test begins.
var start = time.Date(2026, 10, 1, 2, 0, 0, 0, time.UTC)

// fields are values by name: texts, bools, times and numbers. Those of settings and revisions are independent.
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

// runs are n reports of one workload around levels of throughput and response p99; noise is the relative standard deviation.
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
			assert.OK(t, got.FullText(&b, layout.Style{}))
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
