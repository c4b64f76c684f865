package kafka

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"pgregory.net/rapid"

	"carronade/internal/kafka/cluster"
	"carronade/internal/kafka/wire"
	"carronade/load"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// A spot is where a record is.
type spot struct {
	part   int32
	offset int64
}

// recordsIn returns the records of a list.
func recordsIn(t testing.TB, path string) (all []spot) {
	t.Helper()
	topic, err := wire.ReadList(path, func(r wire.ListRun) error {
		for i := range r.Count {
			all = append(all, spot{r.Partition, r.Offset + i})
		}
		return nil
	})
	assert.Must(t, err == nil && topic == "events", "topic %q: %v", topic, err)
	return all
}

// writeList writes a list of these lines.
func writeList(t testing.TB, lines string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "list")
	assert.OK(t, os.WriteFile(path, []byte(lines), 0o600))
	return path
}

// TestListsWhatWasAcked: the list of a run that produces has each acked record once, with
// either engine, and a run that reads it reads exactly these.
func TestListsWhatWasAcked(t *testing.T) {
	t.Parallel()
	events := testkit.Cases(3000, 700)
	for name, given := range map[string]map[string][]string{
		"wire":       {"clients": {"2"}},
		"idempotent": {"idempotent": {"true"}, "acks": {"all"}},
		"client":     {"engine": {cluster.EngineClient}, "clients": {"2"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := eventsCluster(t, 3, kfake.NumBrokers(2))
			putEvents(t, c, records(60, 3, sized(10))) // not of this run
			list := filepath.Join(t.TempDir(), "list")
			given["items-out"] = []string{list}
			s := spec(t, fakeURL(c.ListenAddrs()), given)
			s.Clients = max(1, s.Options.Int("clients"))
			sess := assert.Value(open(t, s))(t)
			ctx := testkit.Minute(t)
			r, err := load.Fire(ctx, load.Plan{BatchEvents: 7, Concurrency: 4, Measurement: load.Limits{Events: uint64(events)}}, sess.Target())
			assert.OK(t, err)
			assert.OK(t, sess.Capabilities().Finish())
			acked := int(r.Measurement.Acked)
			if got := sess.Facts()["items_listed"]; got != uint64(acked) || acked < events {
				t.Errorf("%v records listed, %d acked", got, acked)
			}
			got := recordsIn(t, list)
			slices.SortFunc(got, func(a, b spot) int { return int(int64(a.part-b.part)*1e9 + a.offset - b.offset) })
			n := len(slices.Compact(got))
			assert.Must(t, n == acked, "%d different records in the list, %d acked", n, acked)
			for _, p := range got {
				assert.Must(t, p.offset >= 20, "%v is not of this run", p)
			}
			var mu sync.Mutex
			seen := 0
			plan := load.Plan{BatchEvents: 1, Concurrency: 8, Observe: func(out []load.Outcome) {
				mu.Lock()
				defer mu.Unlock()
				for _, o := range out {
					assert.True(t, o.Place >= 20, "offset %d was read", o.Place)
					seen += int(o.Events)
				}
			}}
			again := filepath.Join(t.TempDir(), "list")
			read, sess := fireReads(t, c, plan, map[string][]string{"items-in": {list}, "items-out": {again}, "clients": {"2"}})
			assert.True(t, int(read.Measurement.Acked) == acked && seen == acked,
				"%d records read, %d seen, of %d: %v", read.Measurement.Acked, seen, acked, read.Failures)
			assert.OK(t, sess.Capabilities().Finish())
			of := recordsIn(t, again)
			slices.SortFunc(of, func(a, b spot) int { return int(int64(a.part-b.part)*1e9 + a.offset - b.offset) })
			assert.True(t, slices.Equal(of, got), "the list of what was read has %d records, and differs", len(of))
		})
	}
}

// TestReadsInTheOrderOfTheList: records are read in the list's order, and those that are
// not there fail, are in no list, and do not hide the others of their batch.
func TestReadsInTheOrderOfTheList(t *testing.T) {
	testkit.Need(t, "some seconds")
	t.Parallel()
	c := filled(t, 2, 100, 50)
	list := writeList(t, "# topic: events\n1,90,3\n0,5\n1,3,2\n0,99,5\n")
	var got []spot
	out := filepath.Join(t.TempDir(), "out")
	r, sess := fireReads(t, c, load.Plan{BatchEvents: 1, Concurrency: 1, Observe: func(o []load.Outcome) {
		for _, o := range o {
			got = append(got, spot{offset: o.Place})
		}
	}}, map[string][]string{"items-in": {list}, "items-out": {out}})
	want := []spot{{0, 90}, {0, 91}, {0, 92}, {0, 5}, {0, 3}, {0, 4}, {0, 99}, {0, 100}, {0, 101}, {0, 102}, {0, 103}}
	assert.True(t, slices.Equal(got, want) && r.Measurement.Acked == 7 && r.Classes["rejected"] == 4,
		"%v read, %d acked, %v", got, r.Measurement.Acked, r.Failures)
	assert.OK(t, sess.Capabilities().Finish())
	assert.Equal(t, len(recordsIn(t, out)), 7, "records listed")
}

// TestAppendFound: of a batch with gaps, the list has the records that are there.
func TestAppendFound(t *testing.T) {
	t.Parallel()
	raw := wireBatch(t, 10, wire.None, []int32{0, 1, 4, 9}, values(4, 8), nil)
	raw = append(raw, wireBatch(t, 20, wire.None, dense(10), values(10, 8), nil)...)
	var got []wire.ListRun
	assert.Value(wire.ForEachBatch(raw, func(b wire.Batch) error {
		got = appendFound(got, &b, b.Records(), 11, 25)
		return nil
	}))(t)
	want := []wire.ListRun{{Offset: 11, Count: 1}, {Offset: 14, Count: 1}, {Offset: 19, Count: 6}}
	assert.True(t, slices.Equal(got, want), "got %v, want %v", got, want)
}

// TestListingLines: lines are bounded, so that partitions alternate when they are read.
func TestListingLines(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "list")
	out := assert.Value(wire.CreateList(path, "events"))(t)
	l := &listing{out: out, runs: make([]wire.ListRun, 2)}
	for i := range int64(2 * mostInLine) {
		l.add(0, i, 1)
		l.add(1, i, 1)
	}
	l.add(1, -1, 3)
	assert.OK(t, l.finish())
	text := assert.Value(os.ReadFile(path))(t)
	want := "\n0,0,4096\n1,0,4096\n0,4096,4096\n1,4096,4096\n"
	assert.True(t, strings.HasSuffix(string(text), want), "got %q", text)
	w := l.warnings()
	assert.True(t, len(w) == 1 && strings.Contains(w[0], "lacks 3 records"), "warnings: %v", w)
}

// TestListErrors: what is wrong with a list is an error with a place, before anything is
// sent, and leaves an older list unchanged.
func TestListErrors(t *testing.T) {
	t.Parallel()
	c := filled(t, 2, 10, 50)
	folder := t.TempDir()
	old := writeList(t, "0,1\n")
	for _, tt := range []struct {
		op    string
		given map[string][]string
		want  string
	}{
		{cluster.OpRead, map[string][]string{"items-in": {writeList(t, "0,1\n2,1\n")}}, ":2: the topic events has 2 partitions, and no partition 2"},
		{cluster.OpRead, map[string][]string{"items-in": {writeList(t, "0,1\nx\n")}}, `:2: "x" is not PARTITION,OFFSET`},
		{cluster.OpRead, map[string][]string{"items-in": {writeList(t, "# topic: others\n0,1\n")}}, "is a list of records of the topic others, not of events"},
		{cluster.OpRead, map[string][]string{"items-in": {writeList(t, "# topic: events\n")}}, "has no records"},
		{cluster.OpRead, map[string][]string{"items-in": {writeList(t, "0,1,9223372036854775800\n1,1,9\n")}}, ":2: the list has more than 2^63 records"},
		{cluster.OpRead, map[string][]string{"items-in": {filepath.Join(folder, "absent")}}, "no such file"},
		{cluster.OpRead, map[string][]string{"items-in": {old}, "items-out": {old}}, "is also the list of items-in"},
		{cluster.OpProduce, map[string][]string{"items-out": {filepath.Join(folder, "absent", "list")}}, "make the list of items-out: open "},
		{cluster.OpProduce, map[string][]string{"items-out": {old}, "acks": {"0"}}, "items-out needs acknowledgements"},
		{cluster.OpProduce, map[string][]string{"items-out": {old}, "partitioner": {"fixed(7)"}}, "no partition 7"},
	} {
		s := spec(t, fakeURL(c.ListenAddrs()), tt.given)
		s.Op = tt.op
		_, err := open(t, s)
		assert.ErrorHas(t, err, tt.want, "%s %v", tt.op, tt.given)
	}
	text, err := os.ReadFile(old)
	assert.True(t, err == nil && string(text) == "0,1\n", "the older list has %q (%v)", text, err)
}

// The items of a list have the order in which they were added, and come again if they are recycled.
func TestItems(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		type item struct {
			part   int32
			offset int64
		}
		list := &items{recycle: rapid.Bool().Draw(t, "recycle")}
		var want []item
		for range rapid.IntRange(0, 20).Draw(t, "spans") {
			part, from := rapid.Int32Range(0, 3).Draw(t, "partition"), rapid.Int64Range(0, 40).Draw(t, "offset")
			n := rapid.Uint64Range(0, 5).Draw(t, "items")
			list.add(part, from, n)
			for i := range n {
				want = append(want, item{part, from + int64(i)})
			}
		}
		for n := range uint64(len(want)) {
			part, offset, left := list.at(n)
			if left == 0 || (item{part, offset}) != want[n] {
				t.Fatalf("item %d is offset %d of partition %d, with %d left; want %+v", n, offset, part, left, want[n])
			}
			for i := range min(left, len(want)-int(n)) {
				if next := want[int(n)+i]; next != (item{part, offset + int64(i)}) {
					t.Fatalf("item %d, %d after item %d, is %+v", int(n)+i, i, n, next)
				}
			}
		}
		_, _, left := list.at(uint64(len(want)))
		if again := list.recycle && len(want) > 0; (left > 0) != again {
			t.Fatalf("after the last of %d items there are %d, recycled %v", len(want), left, list.recycle)
		}
	})
}

// TestWholeTopic: every record between the starts and the ends is one item.
func TestWholeTopic(t *testing.T) {
	t.Parallel()
	starts, ends := []int64{0, 100, 7, 5000}, []int64{3000, 100, 8, 9000}
	list := wholeTopic(starts, ends, false)
	assert.Must(t, list.n == 3000+1+4000, "%d items, want 7001", list.n)
	seen := map[[2]int64]bool{}
	turns, last := 0, int32(-1)
	for n := range list.n {
		part, offset, _ := list.at(n)
		assert.Must(t, offset >= starts[part] && offset < ends[part] && !seen[[2]int64{int64(part), offset}],
			"item %d is offset %d of partition %d, again or outside", n, offset, part)
		seen[[2]int64{int64(part), offset}] = true
		if part != last {
			turns, last = turns+1, part
		}
	}
	assert.True(t, turns >= 6, "the partitions took %d turns: they should alternate", turns)
}
