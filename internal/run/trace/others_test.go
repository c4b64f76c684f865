package trace

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"carronade/load"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// DuckDB and pandas read the written rows, sums, nulls and words, over several pages and row groups.
func TestReadByOthers(t *testing.T) {
	testkit.OnlyConformance(t, "needs Python, DuckDB and pandas, 300 MB: the tests of this package read files with package parquettest")
	const rows = 30_000
	path := filepath.Join(t.TempDir(), "t.parquet")
	disk := assert.Value(openFile(path))(t)
	o := Options{
		Phases: []string{"warm-up", "measurement"}, Started: time.Now(), Partition: func(s int32) int32 { return s % 3 },
		Key: func(dst []byte, _ int32, k uint64) ([]byte, bool) { return append(dst, "key ü"...), k%2 == 0 },
	}
	tr := assert.Value(create(o, sizes{blocks: 16, page: 1000, group: 8000}, disk))(t)
	go tr.write()
	out := outcomes(rows)
	want := testkit.ParquetFile{
		Rows: rows, Sums: map[string]int64{}, Nulls: map[string]int64{}, Least: map[string]int64{}, Most: map[string]int64{},
		Values: map[string]map[string]int64{"phase": {}, "outcome": {}, "class": {}, "key": {}},
	}
	for _, c := range Columns() {
		want.Columns = append(want.Columns, c.Name)
		want.Nulls[c.Name] = 0
		if c.Type == "BIGINT" {
			want.Sums[c.Name] = 0
		}
	}
	integer := func(name string, v int64) {
		if _, seen := want.Least[name]; !seen {
			want.Least[name], want.Most[name] = v, v
		}
		want.Sums[name] += v
		want.Least[name], want.Most[name] = min(want.Least[name], v), max(want.Most[name], v)
	}
	optional := func(name string, v int64) {
		if v < 0 {
			want.Nulls[name]++
			return
		}
		integer(name, v)
	}
	f := tr.Feed()
	for i := range out {
		x := &out[i]
		x.Phase = int32(min(i/1000, 1))
		outcome, class, status := "acked", "", int64(-1)
		switch i % 10 {
		case 3:
			x.Acked, x.Failed, x.Class, x.Status, x.Place = 0, 10, load.Throttled, 429, -1
			outcome, class, status = "failed", "throttled", 429
		case 5:
			x.Acked, x.Unknown, x.Class, x.Place = 0, 10, load.Timeout, -1
			outcome, class = "unknown", "timeout"
		case 7:
			x.Sent, x.DueFirst, x.DueLast = -1, -1, -1
		case 8:
			x.Events, x.Acked = 1, 1
			if x.First%2 == 0 {
				want.Values["key"]["key ü"]++
			}
		}
		f.Add(out[i : i+1])
		want.Values["phase"][o.Phases[x.Phase]]++
		want.Values["outcome"][outcome]++
		if class == "" {
			want.Nulls["class"]++
		} else {
			want.Values["class"][class]++
		}
		integer("connection", int64(x.Lane))
		integer("sequence", int64(x.Seq))
		integer("attempt", 0)
		integer("stream", int64(x.Stream))
		integer("event", int64(x.First))
		optional("due_ns", int64(x.DueFirst))
		optional("due_last_ns", int64(x.DueLast))
		optional("sent_ns", int64(x.Sent))
		integer("done_ns", int64(x.Done))
		optional("requested_ns", -1)
		optional("consumed_ns", -1)
		integer("partition", int64(x.Stream%3))
		optional("log_offset", x.Place)
		integer("events", int64(x.Events))
		integer("bytes", x.Bytes)
		integer("wire_bytes", 0)
		integer("acked", int64(x.Acked))
		integer("failed", int64(x.Failed))
		integer("unknown", int64(x.Unknown))
		optional("status", status)
		integer("retries", 0)
	}
	want.Nulls["key"] = rows - want.Values["key"]["key ü"]
	r := tr.Close()
	assert.Must(t, r.Rows == rows && r.Dropped == 0 && r.Err == nil, "%+v", r)
	duckdb, pandas := testkit.ReadParquet(t, path)
	for name, got := range map[string]testkit.ParquetFile{"DuckDB": duckdb, "pandas": pandas} {
		assert.Same(t, got, want, "%s", name)
	}
}

// TestDocumented: docs/trace.md describes every column.
func TestDocumented(t *testing.T) {
	const path, head = "../../../docs/trace.md", "| column | type | null | meaning |\n|---|---|---|---|\n"
	text := assert.Value(os.ReadFile(path))(t)
	var want strings.Builder
	for _, c := range Columns() {
		null := ""
		if c.Optional {
			null = "may be"
		}
		fmt.Fprintf(&want, "| `%s` | %s | %s | %s |\n", c.Name, c.Type, null, c.Help)
	}
	before, rest, ok := strings.Cut(string(text), head)
	assert.Must(t, ok, "%s has no table of columns", path)
	got, after, _ := strings.Cut(rest, "\n\n")
	if got+"\n" == want.String() {
		return
	}
	assert.Must(t, testkit.Update(), "%s does not match the columns; run go test ./internal/run/trace -run Documented -update", path)
	assert.OK(t, os.WriteFile(path, []byte(before+head+want.String()+"\n"+after), 0o644))
}
