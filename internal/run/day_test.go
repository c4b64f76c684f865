package run

import (
	"io"
	"os"
	"runtime"
	"runtime/metrics"
	"testing"
	"testing/synctest"
	"time"

	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
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

// The memory of a long run is bounded: its rows are packed until there are as many as a series has, and then
// joined. Nor does the collector leave room for them. CARRONADE_TEST_RUN=24h runs a day in virtual time, and
// an hour at a higher rate, as make soak does.
func TestLongRunIsSmall(t *testing.T) {
	testkit.Need(t, "some seconds")
	long, soak := 70*time.Minute, os.Getenv("CARRONADE_TEST_RUN")
	if soak != "" {
		var err error
		long, err = time.ParseDuration(soak)
		assert.OK(t, err)
	}
	const (
		ever    = 40 << 20 // the ledger remembers a million batches, in 5 MiB
		report  = 44 << 20 // the document as well
		settled = 24 << 20 // with the room, from the fifth minute to the end of an hour
	)
	for _, tt := range []struct {
		name   string
		m      fakeKind
		args   []string
		anHour int64 // until the series is full
		room   int64 // more for the collector than in the first minute
		soak   bool  // only in make soak, and an hour
	}{
		{"produce", fakeKind{perBatch: 64, spread: true, noSource: true}, []string{"op=produce", "rate=500/s", "linger=100ms"}, 16 << 20, 4 << 20, false},
		{"verified round trips", fakeKind{perBatch: 64, spread: true, consumeDelay: 3 * time.Millisecond}, []string{"op=roundtrip", "rate=500/s", "linger=100ms"}, 16 << 20, 4 << 20, false},
		{"many verified round trips", fakeKind{perBatch: 26, spread: true, consumeDelay: 3 * time.Millisecond}, []string{"op=roundtrip", "rate=20k/s", "linger=5ms"}, 28 << 20, 6 << 20, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			long := long
			if tt.soak {
				if long = min(long, 62*time.Minute); soak == "" {
					t.Skip("CARRONADE_TEST_RUN=24h runs it")
				}
			}
			synctest.Test(t, func(t *testing.T) {
				type use struct{ heap, room int64 }
				at := map[time.Duration]use{}
				d := assert.Value(Execute(t.Context(), Job{
					Portable: true,
					Workload: resolve(t, &tt.m, append(tt.args, "for="+long.String())...),
					Watch: func(s load.Snapshot) {
						switch s.At {
						case time.Minute, 5 * time.Minute, time.Hour, long - time.Minute:
							at[s.At] = use{heapInUse(), roomInUse()}
						}
					},
				}))(t)
				document := heapInUse()
				assert.OK(t, d.WriteJSON(io.Discard))
				begin, five, full, last := at[time.Minute], at[5*time.Minute], at[time.Hour], at[long-time.Minute]
				for _, m := range []struct {
					name      string
					got, most int64
				}{
					{"an hour", full.heap - begin.heap, tt.anHour},
					{"the run", last.heap - begin.heap, ever},
					{"the run and its report", document - begin.heap, report},
					{"more room for the collector", last.room - begin.room, tt.room},
					{"an hour after five minutes, with room", full.heap + full.room - five.heap - five.room, settled},
				} {
					if t.Logf("%s takes %d KiB", m.name, m.got>>10); m.got > m.most {
						t.Errorf("%s takes %d bytes, want at most %d", m.name, m.got, m.most)
					}
				}
				n := len(d.Intervals)
				assert.True(t, n <= measure.DefaultSeries+2, "got %d rows", n)
			})
		})
	}
}
