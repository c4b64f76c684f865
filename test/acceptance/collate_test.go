//go:build conformance

package acceptance

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/kafkatest"
)

func decode(t *testing.T, text string, to any) {
	t.Helper()
	assert.OK(t, json.Unmarshal([]byte(text), to), "read\n%.2000s", text)
}

// A collatedGroup is a group in the output of collate --json.
type collatedGroup struct {
	Equal []struct{ Name, Value string }
	Rows  []struct {
		Value    any // a text, a bool or a number
		Reports  []string
		Revision string
		Flags    []struct{ Name, Value string }
		Measured map[string]struct {
			N      int
			Median float64
		}
	}
}

func (g *collatedGroup) equal(name string) string {
	for _, e := range g.Equal {
		if e.Name == name {
			return e.Value
		}
	}
	return ""
}

func collate(t *testing.T, place string, args ...string) []collatedGroup {
	t.Helper()
	var out struct{ Groups []collatedGroup }
	decode(t, run(t, append([]string{"collate", "--store", place, "--json"}, args...)...).want(t, 0).stdout, &out)
	return out.Groups
}

// The columns of hey-apm's collate that exist without an index, and the percentiles.
var seedColumns = []string{"report id", "revision date", "pushed", "accepted", "throughput", "per batch", "service p50", "p95", "p99", "p99.9", "max rss", "effic"}

// TestSeedCollate is the example in hey-apm's README. Four runs against a supervised server, with one of its
// settings off and on and at two concurrencies, are collated by that setting to two groups of two rows. With
// runs of another branch, which has no such setting, they are collated by branch to two rows per group.
// verify accepts the README's filters. A store in OpenSearch gives exactly the same output as the file.
func TestSeedCollate(t *testing.T) {
	t.Parallel()
	place := filepath.Join(t.TempDir(), "reports.db")
	port := freePort(t)
	addr := "127.0.0.1:" + port
	test := func(repo string, concurrency int, flags ...string) string {
		args := []string{
			"run", "apm+http://" + addr, "--json", "--quiet", "--store", place,
			"--for", "500ms", "--events", "10", "--spans", "10", "--frames", "10", "--concurrency", strconv.Itoa(concurrency),
			"--system-cmd", program + " standin apm --listen " + addr + " {flags}", "--system-git", repo,
		}
		if len(flags) > 0 {
			args = append(args, "--system-flag-format", "--{name}={value}")
		}
		for _, f := range flags {
			args = append(args, "--system-flag", f)
		}
		var d struct{ ID string }
		decode(t, run(t, args...).wantOneOf(t, 0, 3).stdout, &d)
		return d.ID
	}
	branch, master := commitRepo(t, "trace-apm-server"), commitRepo(t, "master")
	ids := map[string]string{}
	for _, concurrency := range []int{1, 20} {
		for _, on := range []string{"false", "true"} {
			ids[fmt.Sprintf("%d %s", concurrency, on)] = test(branch, concurrency, "no-rum="+on)
		}
	}

	groups := collate(t, place, "no-rum", "branch=trace-apm-server")
	assert.Must(t, len(groups) == 2, "%d groups, want one for each concurrency", len(groups))
	for i, concurrency := range []string{"20", "1"} { // the newest first
		g := groups[i]
		assert.True(t, g.equal("concurrency") == concurrency && g.equal("branch") == "trace-apm-server" &&
			g.equal("events") == "10", "group %d shares %+v", i+1, g.Equal)
		assert.Must(t, len(g.Rows) == 2, "group %d has %d rows, want two", i+1, len(g.Rows))
		for k, on := range []string{"false", "true"} {
			r := g.Rows[k]
			if id := ids[concurrency+" "+on]; fmt.Sprint(r.Value) != on || !slices.Equal(r.Reports, []string{id}) {
				t.Errorf("group %d, row %d is %v of %v, want %s of %s", i+1, k+1, r.Value, r.Reports, on, id)
			}
		}
	}

	text := run(t, "collate", "no-rum", "branch=trace-apm-server", "--store", place).want(t, 0).stdout
	for l := range strings.SplitSeq(text, "\n") {
		if !strings.HasPrefix(l, "report id") {
			continue
		}
		at := 0
		for _, name := range append(slices.Clone(seedColumns), "no-rum") {
			i := strings.Index(l[at:], name)
			assert.Must(t, i >= 0, "no column %q in its place in %q", name, l)
			at += i + len(name)
		}
	}
	assert.Equal(t, strings.Count(text, "report id"), 2, "tables:\n%s", text)

	// The newest report is compared with earlier ones, and there are none.
	run(t, "verify", "-n", "168h", "branch=trace-apm-server", "duration=500ms", "events=10", "spans=10", "frames=10", "concurrency=1", "limit=-1", "--untrusted", "--store", place).
		want(t, 4)

	for _, concurrency := range []int{1, 20} {
		test(master, concurrency)
	}
	groups = collate(t, place, "branch", "branch=trace-apm-server")
	assert.Must(t, len(groups) == 4, "%d groups, want four", len(groups)) // two concurrencies times two settings
	for i, g := range groups {
		assert.True(t, len(g.Rows) == 2 && g.Rows[0].Value == "trace-apm-server" && g.Rows[1].Value == "master" && len(g.Rows[0].Flags) == 1 && len(g.Rows[1].Flags) == 0,
			"group %d is %+v, want a row of each branch, and flags of the first", i+1, g.Rows)
	}

	t.Run("from OpenSearch", func(t *testing.T) {
		remote := strings.Replace(testkit.SharedSearch(t).URL, "http://", "elasticsearch://", 1) + "/collate-" + port
		run(t, "report", "push", "--to", remote, "--store", place).want(t, 0)
		for _, args := range [][]string{
			{"collate", "no-rum", "branch=trace-apm-server"},
			{"collate", "branch", "branch=trace-apm-server", "--csv"},
			{"collate", "concurrency", "--json", "--sort", "latency"},
			{"report", "table", "--side", "produce", "--as", "csv"},
		} {
			local := run(t, append(args, "--store", place)...).want(t, 0).stdout
			assert.Equal(t, run(t, append(args, "--store", remote)...).want(t, 0).stdout, local, "%v, from Elasticsearch and from the file", args)
		}
	})
}

// seriesFile is the series in the note on a new Kafka cluster: growing numbers of
// records of 2,000 bytes, produced and then consumed.
func seriesFile(brokers string, counts ...int) string {
	var b strings.Builder
	for _, n := range counts {
		for _, op := range []string{"produce", "consume"} {
			fmt.Fprintf(&b, "- target: kafka://%s/api-test-%d\n  op: %s\n  count: %d\n", brokers, n, op, n)
			if op == "produce" {
				b.WriteString("  size: 2000\n  acks: 1\n  batch-size: 8196\n  create-topic: partitions=15,replicas=1\n")
			}
		}
	}
	return b.String()
}

// TestSeedSeries: one file of workloads runs the note's series against real Kafka,
// and its reports give both tables at the end of the note.
func TestSeedSeries(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Shared(t).Bootstrap()
	dir := t.TempDir()
	place, file := filepath.Join(dir, "reports.db"), filepath.Join(dir, "series.yaml")
	counts := []int{10_000, 100_000, 1_000_000}
	writeFile(t, file, seriesFile(brokers, counts...))
	start(t, "run", "-f", file, "--quiet", "--store", place).wait(3*runTimeout).wantOneOf(t, 0, 3) // 2 GB, however slow the disk is
	table := func(side string) (out []map[string]float64) {
		text := run(t, "report", "table", "--side", side, "--as", "csv", "--store", place).want(t, 0).stdout
		all := assert.Value(csv.NewReader(strings.NewReader(text)).ReadAll())(t)
		assert.Must(t, len(all) == 1+len(counts), "%d lines to %s, want one for each of %v:\n%s", len(all)-1, side, counts, text)
		for _, line := range all[1:] {
			row := map[string]float64{}
			for i, cell := range line {
				if x, err := strconv.ParseFloat(cell, 64); err == nil {
					row[all[0][i]] = x
				}
			}
			out = append(out, row)
		}
		return out
	}
	for i, r := range table("produce") {
		mb := float64(counts[i]) * 2000 / (1 << 20)
		assert.True(t, r["count"] == float64(counts[i]) && r["MB/s"] > 0 && r["MB/s"] <= mb*1e4, "produced %+v, want %d", r, counts[i])
		if !(r["p50 ms"] > 0 && r["p50 ms"] <= r["p95 ms"] && r["p95 ms"] <= r["p99 ms"] && r["p99 ms"] <= r["p99.9 ms"] && r["p99.9 ms"] <= r["max ms"]*1.01 && r["avg ms"] <= r["max ms"]) {
			t.Errorf("the times of %d are %+v", counts[i], r)
		}
	}
	for i, r := range table("consume") {
		mb := float64(counts[i]) * 2000 / (1 << 20)
		if r["nMsg"] != float64(counts[i]) || math.Abs(r["MB"]-mb) > mb/1000 || r["nMsg/s"] <= 0 || math.Abs(r["nMsg/s"]/r["MB/s"]-r["nMsg"]/r["MB"]) > 1 {
			t.Errorf("consumed %+v, want %d and %.2f MB", r, counts[i], mb)
		}
	}
	text := run(t, "report", "table", "--as", "md", "--store", place).want(t, 0).stdout
	text = strings.NewReplacer("~ |", " |", "! |", " |").Replace(text) // remove the marks of noisy and untrusted runs
	assert.Has(t, text,
		"| count | MB/s | avg | max | p50 | p95 | p99 | p99.9 |", "| start | end | MB | MB/s | nMsg | nMsg/s |", "| 10,000 |", "| 100,000 |",
	)
}
