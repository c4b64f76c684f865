package run

import (
	"io"
	"os"
	"runtime"
	"runtime/metrics"
	"testing"
	"testing/synctest"
	"time"

	"carronade/internal/testkit"
	"carronade/load"
	"carronade/measure"
)

// heapInUse is the heap that is in use.
func heapInUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// roomInUse is how much the heap, of which heapInUse was just asked, may grow before the next collection.
func roomInUse() int64 {
	s := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	return int64(sampled(s[0]) - sampled(s[1]))
}

// The memory of a long run is bounded: its rows are packed until there are as many as a
// series has, and then joined. Nor does the collector leave room for them.
// CARRONADE_TEST_RUN=24h runs a day in virtual time, as make
// soak does.
func TestLongRunIsSmall(t *testing.T) {
	testkit.Need(t, "some seconds")
	long := 70 * time.Minute
	if s := os.Getenv("CARRONADE_TEST_RUN"); s != "" {
		var err error
		if long, err = time.ParseDuration(s); err != nil {
			t.Fatal(err)
		}
	}
	const (
		anHour = 16 << 20 // until the series is full
		ever   = 40 << 20 // the ledger remembers a million batches, in 5 MiB
		report = 44 << 20 // the document as well
		room   = 4 << 20  // more for the collector than in the first minute
	)
	for _, tt := range []struct {
		name string
		m    fakeKind
		op   string
	}{
		{"produce", fakeKind{perBatch: 64, spread: true, noSource: true}, "produce"},
		{"verified round trips", fakeKind{perBatch: 64, spread: true, consumeDelay: 3 * time.Millisecond}, "roundtrip"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var begin, full, last, roomBegin, roomLast int64
				d, err := Execute(t.Context(), Job{
					Portable: true,
					Workload: resolve(t, &tt.m, "op="+tt.op, "rate=500/s", "linger=100ms", "for="+long.String()),
					Watch: func(s load.Snapshot) {
						switch s.At {
						case time.Minute:
							begin, roomBegin = heapInUse(), roomInUse()
						case 61 * time.Minute:
							full = heapInUse()
						case long - time.Minute:
							last, roomLast = heapInUse(), roomInUse()
						}
					},
				})
				if err != nil {
					t.Fatal(err)
				}
				document := heapInUse()
				if err := d.WriteJSON(io.Discard); err != nil {
					t.Fatal(err)
				}
				t.Logf("the collector has room of %d KiB in the first minute, and of %d KiB in the last", roomBegin>>10, roomLast>>10)
				t.Logf("from the first minute on: an hour takes %d KiB, %v %d KiB, and with the report %d KiB", (full-begin)>>10, long, (last-begin)>>10, (document-begin)>>10)
				for _, m := range []struct {
					name      string
					got, most int64
				}{{"an hour", full - begin, anHour}, {"the run", last - begin, ever}, {"the run and its report", document - begin, report}, {"more room", roomLast - roomBegin, room}} {
					if m.got > m.most {
						t.Errorf("%s takes %d bytes, want at most %d", m.name, m.got, m.most)
					}
				}
				if n := len(d.Intervals); n > measure.DefaultSeries+2 {
					t.Errorf("got %d rows", n)
				}
			})
		})
	}
}
