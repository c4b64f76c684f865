package judge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"carronade/internal/layout"
	"carronade/internal/report"
	"carronade/internal/store"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// noisyRuns are runs whose numbers vary by their own noise.
func noisyRuns(rnd *rand.Rand, prefix string, n int, p99 float64, noise func(*rand.Rand) float64) []store.Row {
	out := make([]store.Row, n)
	for i := range out {
		at := func(level float64) store.Value {
			return store.Value{Kind: store.KindDuration, Num: level * math.Exp(noise(rnd))}
		}
		rate := store.Value{Kind: store.KindRate, Num: 50e3 * math.Exp(noise(rnd))}
		out[i] = store.Row{ID: fmt.Sprint(prefix, i), At: start.Add(time.Duration(2*i) * time.Minute), Fields: []store.Field{
			{Name: "op", Value: store.Value{Text: "produce"}},
			{Name: "response_p50", Value: at(p99 / 6)},
			{Name: "response_p99", Value: at(p99)},
			{Name: "response_p999", Value: at(p99 * 3)},
			{Name: "system_cores", Value: store.Value{Num: math.Exp(noise(rnd))}},
			{Name: "throughput", Value: rate},
		}}
	}
	return out
}

// heavy is noise with tails: most runs vary by 10 %, and some by much more.
func heavy(r *rand.Rand) float64 {
	squares := 0.0
	for range 2 {
		squares += math.Pow(r.NormFloat64(), 2)
	}
	return 0.1 * r.NormFloat64() / math.Sqrt(squares/2)
}

// The verdict of a comparison of equal sides is better or worse in at most 5 % of comparisons, with heavy-tailed noise and few
// repetitions; and a factor of 2 is found in 95 % of comparisons of four and four runs that vary by 15 %.
func TestVerdictErrorRates(t *testing.T) {
	testkit.Need(t, "some seconds")
	const trials = 1000
	wide := func(r *rand.Rand) float64 { return 0.15 * r.NormFloat64() }
	twofold := func(r *rand.Rand) float64 { return 0.02*r.NormFloat64() + math.Ln2*float64(r.IntN(2)) }
	for _, tt := range []struct {
		name        string
		n           int
		factor      float64
		noise       func(*rand.Rand) float64
		most, least float64 // shares of better, worse and mixed together, and of worse
	}{
		{"equal, 3 and 3, heavy tails", 3, 1, heavy, 0.05, 0},
		{"equal, 4 and 4, heavy tails", 4, 1, heavy, 0.05, 0},
		{"equal, 5 and 5, heavy tails", 5, 1, heavy, 0.05, 0},
		{"equal, 6 and 6, heavy tails", 6, 1, heavy, 0.05, 0},
		{"equal, 3 and 3, two levels", 3, 1, twofold, 0.05, 0},
		{"equal, 4 and 4, two levels", 4, 1, twofold, 0.05, 0},
		{"equal, 5 and 5, two levels", 5, 1, twofold, 0.05, 0},
		{"twice as long, 4 and 4", 4, 2, wide, 1, 0.95},
		{"7.5 times as long, 4 and 4, heavy tails", 4, 7.5, heavy, 1, 0.95},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(8, uint64(tt.n)))
			different, worse := 0.0, 0.0
			for range trials {
				c := assert.Value(Compare(noisyRuns(rnd, "a", tt.n, 0.012, tt.noise), noisyRuns(rnd, "b", tt.n, 0.012*tt.factor, tt.noise), CompareOptions{}))(t)
				switch c.Verdict {
				case Worse:
					worse++
					different++
				case "better", Mixed:
					different++
				}
			}
			t.Logf("called different in %.1f%%, worse in %.1f%%", 100*different/trials, 100*worse/trials)
			assert.True(t, different/trials <= tt.most && worse/trials >= tt.least,
				"called different in %.1f%%, worse in %.1f%%; want at most %.0f%% and at least %.0f%%", 100*different/trials, 100*worse/trials, 100*tt.most, 100*tt.least)
		})
	}
}

// A comparison that goes on until there is a verdict looks several times, and
// calls equal sides different in at most 5 %, all looks together.
func TestErrorRateOfLooks(t *testing.T) {
	testkit.Need(t, "some seconds")
	const trials = 400
	sum := 0.0
	for range Looks {
		sum += LookAlpha
	}
	assert.True(t, sum <= 0.05+1e-12, "the errors of the looks add up to %v", sum)
	most := Looks[len(Looks)-1]
	for _, tt := range []struct {
		name        string
		factor      float64
		noise       func(*rand.Rand) float64
		most, least float64 // shares of better or worse, and of worse
	}{
		{"equal, heavy tails", 1, heavy, 0.05, 0},
		{"equal, two levels", 1, func(r *rand.Rand) float64 { return 0.02*r.NormFloat64() + math.Ln2*float64(r.IntN(2)) }, 0.05, 0},
		{"twice as long", 2, func(r *rand.Rand) float64 { return 0.15 * r.NormFloat64() }, 1, 0.95},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(13, 1))
			different, worse, runs := 0.0, 0.0, 0
			for range trials {
				base, candidate := noisyRuns(rnd, "a", most, 0.012, tt.noise), noisyRuns(rnd, "b", most, 0.012*tt.factor, tt.noise)
				for _, n := range Looks {
					c := assert.Value(Compare(base[:n], candidate[:n], CompareOptions{Alpha: LookAlpha}))(t)
					r := c.Pairs[0].Rows[0]
					assert.Must(t, r.Confidence == 1-LookAlpha, "an interval of %v, want %v", r.Confidence, 1-LookAlpha)
					if c.Verdict == CannotTell && n < most {
						continue
					}
					runs += n
					switch c.Verdict {
					case Worse:
						worse++
						different++
					case "better", Mixed:
						different++
					}
					break
				}
			}
			t.Logf("called different in %.1f%%, worse in %.1f%%, after %.1f runs of each side", 100*different/trials, 100*worse/trials, float64(runs)/trials)
			assert.True(t, different/trials <= tt.most && worse/trials >= tt.least,
				"called different in %.1f%%, worse in %.1f%%; want at most %.0f%% and at least %.0f%%", 100*different/trials, 100*worse/trials, 100*tt.most, 100*tt.least)
		})
	}
}

// brokers are five alike machines, as carronade host --json describes them: a
// server with two processors, two memory modules and two disks in a RAID.
func brokers(t *testing.T) (out []any) {
	t.Helper()
	const machine = `{
		"name": "kafka-%d", "os": "linux", "arch": "amd64", "cores": 48, "memory_bytes": 68719476736, "go": "go1.26", "gomaxprocs": 48,
		"cpu": "Intel(R) Xeon(R) CPU E5-2678 v3 @ 2.50GHz", "cpu_version": "family 6, model 63, stepping 2", "sockets": 2, "physical_cores": 24,
		"caches": [{"level": 1, "type": "data", "bytes": 32768, "shared_by": 2}, {"level": 3, "type": "unified", "bytes": 31457280, "shared_by": 24}],
		"numa_nodes": 2, "numa": [{"id": 0, "cpus": "0-11,24-35"}, {"id": 1, "cpus": "12-23,36-47"}],
		"memory_modules": [{"bytes": 34359738368, "type": "DDR4", "mt_per_s": 2134, "rated_mt_per_s": 2400, "maker": "Samsung",
			"part_number": "M393A4K40CB1-CRC", "locator": "DIMM_A1", "bank": "NODE 1", "form": "DIMM", "rank": 2, "ecc": true}],
		"disks": [{"name": "sda", "model": "Samsung SSD 850 EVO 1TB", "firmware": "EMT02B6Q", "bytes": 1000204886016, "kind": "ssd", "sector_bytes": 512}],
		"raid": [{"name": "md0", "level": "raid1", "disks": ["sda1", "sdb1"]}],
		"file_systems": [{"mount": "/data", "type": "xfs", "device": "/dev/md0", "bytes": 966367641600, "free_bytes": %[1]d}]
	}`
	for i := range 5 {
		var h any
		assert.OK(t, json.Unmarshal(fmt.Appendf(nil, machine, i+1), &h))
		out = append(out, h)
	}
	return out
}

func setupOf(t *testing.T) *Setup {
	t.Helper()
	generator := map[string]any{"name": "lab", "os": "linux", "arch": "amd64", "cores": 8} // as it is in a report that was read
	topic := func(name string) map[string]any {
		return map[string]any{"topic": map[string]any{"name": name, "partitions": 15, "replicas": 3}}
	}
	a := &report.Document{ID: "a", Version: "v1", Target: "kafka://k/one", Host: generator, Hosts: brokers(t), Facts: topic("one"), Settings: []report.Setting{
		{Name: "target", Value: "kafka://k/one"},
		{Name: "count", Value: "10k"},
		{Name: "acks", Value: "1", Default: true},
		{Name: "system-host", Value: "x"},
		{Name: "fresh", Value: "false", Default: true},
		{Name: "linger", Value: "5ms", Default: true},
		{Name: "note", Value: "n", Minor: true},
	}}
	b := &report.Document{ID: "b", Version: "v1", Target: "kafka://k/two", Host: generator, Hosts: brokers(t), Facts: topic("two"), Settings: []report.Setting{
		{Name: "acks", Value: "1"}, {Name: "count", Value: "10M | x"}, {Name: "linger", Value: "5ms", Default: true},
	}}
	return SetupOf(a, b)
}

func TestSetup(t *testing.T) {
	s := setupOf(t)
	var b bytes.Buffer
	assert.OK(t, s.Text(&b, layout.Style{}))
	const want = `Machine of the generator
  name          lab
  system        linux, amd64
  cores         8 usable

Machines of the system
  names         kafka-1, kafka-2, kafka-3, kafka-4, kafka-5 (5 alike)
  system        linux, amd64
  processor     Intel(R) Xeon(R) CPU E5-2678 v3 @ 2.50GHz, family 6, model 63,
                stepping 2
  cores         48 usable; cores 24, sockets 2, NUMA nodes 2
  caches        L1d 32 KiB shared by 2, L3 30 MiB shared by 24
  NUMA node 0   processors 0-11,24-35
  NUMA node 1   processors 12-23,36-47
  memory        64 GiB
  module        DIMM_A1, NODE 1, 32 GiB, DDR4, DIMM, ECC, 2134 MT/s of 2400, 2
                ranks, Samsung, M393A4K40CB1-CRC
  disk sda      932 GiB, ssd, Samsung SSD 850 EVO 1TB, firmware EMT02B6Q,
                sectors of 512 bytes
  raid md0      raid1, of sda1 and sdb1
  files /data   xfs, /dev/md0, 900 GiB

Software
  generator     carronade v1
  target        kafka://k/one [a]
                kafka://k/two [b]
  topic name    one [a]
                two [b]
  topic partitions  15
  topic replicas  3

Settings
  count         10k [a]
                10M | x [b]
  acks          1
  linger        5ms (by default)

`
	assert.Same(t, b.String(), want)
}

func TestSetupMarkdown(t *testing.T) {
	s := setupOf(t)
	s.Machines = s.Machines[:1]
	var b bytes.Buffer
	assert.OK(t, s.Markdown(&b))
	const want = `### Machine of the generator

| machine |  |
| --- | --- |
| name | lab |
| system | linux, amd64 |
| cores | 8 usable |

### Software

| software |  | runs |
| --- | --- | --- |
| generator | carronade v1 | all |
| target | kafka://k/one | a |
| target | kafka://k/two | b |
| topic name | one | a |
| topic name | two | b |
| topic partitions | 15 | all |
| topic replicas | 3 | all |

### Settings

| settings |  | runs |
| --- | --- | --- |
| count | 10k | a |
| count | 10M \| x | b |
| acks | 1 | all |
| linger | 5ms (by default) | all |

`
	assert.Same(t, b.String(), want)
}

// TestSetupOfNothing has reports of older programs, without a description.
func TestSetupOfNothing(t *testing.T) {
	out := assert.Value(json.Marshal(SetupOf(&report.Document{ID: "a", Host: "a text", Hosts: []any{nil, map[string]any{}}})))(t)
	const want = `{"machines":[],"software":[{"name":"generator","text":"carronade"},{"name":"target","text":""}],"settings":[]}`
	assert.Same(t, string(out), want)
}
