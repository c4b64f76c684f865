package trace

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"carronade/load"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/parquettest"
)

// TestEncodings: the same values always become the same bytes, which other programs have read.
func TestEncodings(t *testing.T) {
	deltas := func(values ...int64) []byte { b, _, _ := appendDeltas(nil, values); return b }
	indices := func(width int, values ...int32) []byte { return appendRuns(nil, values, width, indicesEnd) }
	levels := func(values ...byte) []byte { return appendRuns(nil, values, 1, levelsEnd) }
	rng := rand.New(rand.NewPCG(1, 2))
	random := sha256.New()
	for range 3000 {
		ints, few, bits := make([]int64, rng.IntN(300)), make([]int32, rng.IntN(100)), make([]byte, rng.IntN(100))
		shift, width, often := rng.IntN(64), 1+rng.IntN(20), rng.IntN(10)
		for i := range ints {
			if ints[i] = int64(rng.Uint64()) >> shift; i > 0 && rng.IntN(10) < often {
				ints[i] = ints[i-1]
			}
		}
		for i := range few {
			if few[i] = rng.Int32N(1 << width); i > 0 && rng.IntN(10) < often {
				few[i] = few[i-1]
			}
		}
		for i := range bits {
			if bits[i] = byte(rng.IntN(2)); i > 0 && rng.IntN(10) < often {
				bits[i] = bits[i-1]
			}
		}
		encoded, least, most := appendDeltas(nil, ints)
		assert.Must(t, len(ints) == 0 || least == slices.Min(ints) && most == slices.Max(ints), "from %d to %d, of %d", least, most, ints)
		random.Write(encoded)
		random.Write(indices(width, few...))
		random.Write(levels(bits...))
	}
	for _, tt := range []struct {
		name string
		got  []byte
		want string
	}{
		{"no integers", deltas(), "8001040000"},
		{"an integer", deltas(-3), "8001040105"},
		{"equal steps", deltas(1, 3, 5, 7), "80010404020d0400000099090000000000000000000000000000"},
		{"a full block of equal steps", deltas(make([]int64, blockSize+1)...), "8001048101000000000000"},
		{"one word", indices(0, 0, 0, 0), "06"},
		{"a run of words", indices(9, slices.Repeat([]int32{300}, 20)...), "202c01082c01"},
		{"words", indices(2, 0, 1, 2, 3, 0, 1, 2, 3, 1, 1), "03e4e40401"},
		{"levels", levels(1, 0, 1, 0, 1, 0, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0), "0355100102010200"},
		{"random ones", random.Sum(nil), "edc605ba334530d70ec4d8f60fd4185c39f8a9880188780ae2cc1976e1164f19"},
	} {
		assert.Equal(t, fmt.Sprintf("%x", tt.got), tt.want, "%s", tt.name)
	}
}

// TestAnyRow: whatever values rows have, over several pages and row groups, the file has them.
func TestAnyRow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.parquet")
	out := assert.Value(openFile(path))(t)
	o := Options{
		Partition: func(stream int32) int32 { return stream - 1 },
		Key:       func(dst []byte, s int32, k uint64) ([]byte, bool) { return fmt.Appendf(dst, "%d-%d", s, k), k%3 > 0 },
	}
	for i := range 300 {
		o.Phases = append(o.Phases, fmt.Sprint("phase ", i))
	}
	tr := assert.Value(create(o, sizes{blocks: 4, page: 300, group: 1000}, out))(t)
	rng := rand.New(rand.NewPCG(3, 4))
	number := func() int64 { return int64(rng.Uint64()) >> rng.IntN(64) }
	optional := func(v int64) *int64 {
		if v < 0 {
			return nil
		}
		return &v
	}
	var want []line
	for range 2500 {
		r := row{
			seq: uint64(number()), index: uint64(number()), due: time.Duration(number()), dueLast: time.Duration(number()), sent: time.Duration(number()),
			done: time.Duration(number()), at: time.Duration(number()), requested: time.Duration(number()), offset: number(), bytes: number(), wire: number(),
			lane: int32(number()), stream: rng.Int32N(5), events: 1 + rng.Int32N(2), batches: 1, attempt: int32(number()), retries: int32(number()),
			phase: rng.Int32N(int32(len(o.Phases))), status: int16(number()),
		}
		r.acked = rng.Int32N(r.events + 1)
		r.failed = rng.Int32N(r.events - r.acked + 1)
		if r.acked < r.events {
			r.class = load.Timeout
		}
		tr.put(&r)
		l := line{
			Lane: int64(r.lane), Sequence: int64(r.seq), Attempt: int64(r.attempt), Stream: int64(r.stream), Event: int64(r.index), Phase: o.Phases[r.phase],
			Due: optional(int64(r.due)), DueLast: optional(int64(r.dueLast)), Sent: optional(int64(r.sent)), Done: int64(r.done), Requested: optional(int64(r.requested)),
			Consumed: optional(int64(r.at)), Partition: optional(int64(r.stream - 1)), Offset: optional(r.offset), Events: int64(r.events), Bytes: r.bytes, Wire: r.wire,
			Acked: int64(r.acked), Failed: int64(r.failed), Unknown: int64(r.unknown()), Outcome: outcomeWords[r.outcome()], Retries: int64(r.retries),
		}
		if key, ok := o.Key(nil, r.stream, r.index); ok && r.events == 1 {
			l.Key = new(string(key))
		}
		if r.class != load.OK {
			l.Class = new(r.class.String())
		}
		if r.status > 0 {
			l.Status = new(int64(r.status))
		}
		want = append(want, l)
	}
	go tr.write()
	r := tr.Close()
	assert.Must(t, r.Err == nil && r.Rows == uint64(len(want)), "%+v", r)
	assert.NoDiff(t, cmp.Diff(want, parquettest.Rows[line](parquettest.Open(t, path))))
}

// TestRowsForAFunction: instead of a file, a function gets the rows.
func TestRowsForAFunction(t *testing.T) {
	var got []Row
	began := time.Now()
	tr := assert.Value(Create(Options{Every: 1, Phases: []string{"measurement"}, Started: began, Key: func(dst []byte, _ int32, k uint64) ([]byte, bool) {
		return append(dst, 'k'), k == 1
	}, Rows: func(at time.Time, r *Row) {
		assert.True(t, at.Equal(began), "started at %v, want %v", at, began)
		row := *r
		row.Key = slices.Clone(r.Key)
		got = append(got, row)
	}}))(t)
	tr.Feed().Add([]load.Outcome{{Batch: load.Batch{Events: 2, Stream: 3, DueFirst: -1, DueLast: -1, Bytes: 7}, Sent: 4, Done: 9, Acked: 1, Unknown: 1, Class: load.Timeout, Place: 5}})
	r := tr.Close()
	want := []Row{
		{Stream: 3, Phase: "measurement", Due: -1, Sent: 4, Done: 9, Requested: -1, Consumed: -1, Partition: -1, Offset: 5, Events: 1, Bytes: 3, Acked: 1},
		{Stream: 3, Event: 1, Key: []byte("k"), Phase: "measurement", Due: -1, Sent: 4, Done: 9, Requested: -1, Consumed: -1, Partition: -1, Offset: 6, Events: 1, Bytes: 4, Class: load.Timeout},
	}
	d := cmp.Diff(want, got)
	assert.True(t, d == "" && r.Rows == 2 && r.Err == nil && r.Dropped == 0, "%+v, rows (-want, +got):\n%s", r, d)
}

// outcomes are the outcomes of a lane at a million batches/s, with times that vary like real ones.
func outcomes(n int) []load.Outcome {
	out := make([]load.Outcome, n)
	for i := range out {
		due := time.Duration(i) * time.Microsecond
		noise := time.Duration(mix(uint64(i)) % 50_000)
		out[i] = load.Outcome{
			Batch: load.Batch{
				Seq: uint64(i), First: uint64(i) * 10, Stream: int32(i % 12), Events: 10, DueFirst: due, DueLast: due + 900,
				Ready: due + 1000, Free: due + 1000, Bytes: 1000,
			},
			Lane: int32(i % 3), Sent: due + 5*time.Microsecond + noise/20, Done: due + 300*time.Microsecond + noise, Acked: 10, Place: int64(i) * 10,
		}
	}
	return out
}

// BenchmarkFeed measures the cost of a row for the sending thread; nothing is written.
func BenchmarkFeed(b *testing.B) {
	all := outcomes(64)
	f := (&Trace{sizes: defaultSizes, full: make(chan *block, defaultSizes.blocks), free: make(chan *block, defaultSizes.blocks)}).Feed()
	b.ReportAllocs()
	for b.Loop() {
		f.Add(all)
		select {
		case bl := <-f.t.full:
			bl.n = 0
			f.t.free <- bl
		default:
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(all)), "ns/row")
}

// BenchmarkWrite measures the cost of a row for the writer.
func BenchmarkWrite(b *testing.B) {
	all := outcomes(int(defaultSizes.group))
	rows := make([]row, len(all))
	for i := range all {
		rows[i].set(&all[i], absent, absent)
	}
	for _, bb := range []struct {
		name  string
		every uint64
	}{{"batches", 0}, {"events", 10}} {
		b.Run(bb.name, func(b *testing.B) {
			t, err := Create(Options{Path: filepath.Join(b.TempDir(), "x.parquet"), Phases: []string{"measurement"}, Every: bb.every, Due: func(_ int32, k uint64) time.Duration { return time.Duration(k) * 100 }})
			assert.OK(b, err)
			b.ReportAllocs()
			count := 0
			for b.Loop() {
				for i := range rows {
					t.row(&rows[i])
				}
				count += len(rows)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(count), "ns/row")
			res := t.Close()
			assert.OK(b, res.Err)
			b.ReportMetric(float64(res.Bytes)/float64(res.Rows), "B/row")
		})
	}
}

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
	for _, c := range columns {
		want.Columns = append(want.Columns, c.name)
		want.Nulls[c.name] = 0
		if !c.text {
			want.Sums[c.name] = 0
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
	for _, c := range columns {
		typ, null := "BIGINT", ""
		if c.text {
			typ = "VARCHAR"
		}
		if c.optional {
			null = "may be"
		}
		fmt.Fprintf(&want, "| `%s` | %s | %s | %s |\n", c.name, typ, null, c.help)
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
