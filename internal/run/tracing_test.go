package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"carronade/internal/host"
	"carronade/internal/report"
	"carronade/load"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/parquettest"
)

// A traced is a row of a trace, as a reader sees it.
type traced struct {
	Event    int64  `parquet:"event"`
	Phase    string `parquet:"phase"`
	Due      *int64 `parquet:"due_ns"`
	Done     int64  `parquet:"done_ns"`
	Consumed *int64 `parquet:"consumed_ns"`
	Log      *int64 `parquet:"partition"`
	Offset   *int64 `parquet:"log_offset"`
	Events   int64  `parquet:"events"`
	Bytes    int64  `parquet:"bytes"`
	Acked    int64  `parquet:"acked"`
}

// TestTrace: every event sent has one row, whether or not it came back.
func TestTrace(t *testing.T) {
	for _, tt := range []struct {
		name     string
		m        fakeKind
		set      []string
		rows     int
		consumed bool
		warm     int
	}{
		{"produce", fakeKind{perBatch: 10, consumeDelay: time.Millisecond}, []string{"rate=5000/s", "count=500", "linger=10ms", "warmup=100"}, 60, false, 10},
		{"produce, every event", fakeKind{perBatch: 10, consumeDelay: time.Millisecond}, []string{"rate=5000/s", "count=500", "linger=10ms", "trace-events=100%"}, 500, false, 0},
		{"produce, one of five", fakeKind{perBatch: 10, consumeDelay: time.Millisecond}, []string{"rate=5000/s", "count=500", "linger=10ms", "trace-events=20%"}, 100, false, 0},
		{"round trip", fakeKind{perBatch: 10, consumeDelay: 5 * time.Millisecond}, []string{"op=roundtrip", "rate=5000/s", "count=500", "linger=10ms"}, 50, true, 0},
		{"round trip in parts", fakeKind{perBatch: 10, part: true, consumeDelay: 5 * time.Millisecond}, []string{"op=roundtrip", "rate=5000/s", "count=500", "linger=10ms"}, 500, true, 0},
		{"round trip, closed loop", fakeKind{perBatch: 3, part: true, consumeDelay: 5 * time.Millisecond}, []string{"op=roundtrip", "concurrency=2", "count=30", "batch-events=3"}, 30, true, 0},
		{"round trip, nothing comes back", fakeKind{perBatch: 10}, []string{"op=roundtrip", "rate=5000/s", "count=500", "linger=10ms", "drain=100ms"}, 50, false, 0},
		{"closed loop, nothing comes back", fakeKind{perBatch: 3}, []string{"op=roundtrip", "concurrency=2", "count=6", "batch-events=3", "drain=40s"}, 2, false, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "t.parquet")
			var doc *report.Document
			synctest.Test(t, func(t *testing.T) {
				doc = assert.Value(Execute(t.Context(), Job{Portable: true, Workload: resolve(t, &tt.m, append(tt.set, "trace="+path)...), Trace: path}))(t)
				<-tt.m.session.ended
			})
			rows := parquettest.Rows[traced](parquettest.Open(t, path))
			if got := doc.Trace; got == nil || got.Rows != uint64(len(rows)) || got.Dropped != 0 || got.Error != "" || got.File != path {
				t.Errorf("%d rows, the report says %+v", len(rows), got)
			}
			assert.Equal(t, len(rows), tt.rows, "rows")
			seen, warm := map[int64]bool{}, 0
			for i := range rows {
				r := &rows[i]
				if r.Phase == "warm-up" {
					warm++
				}
				assert.Must(t, r.Acked == r.Events && r.Bytes != 0 && *r.Log == 0 && *r.Offset >= 0, "row %+v", r)
				if r.Due != nil && *r.Due != r.Event*int64(time.Second)/5000 {
					t.Errorf("event %d was due at %d", r.Event, *r.Due)
				}
				assert.True(t, tt.consumed == (r.Consumed != nil) && (!tt.consumed || *r.Consumed >= r.Done+int64(4*time.Millisecond)),
					"event %d: done at %d, consumed at %v", r.Event, r.Done, r.Consumed)
				for k := range r.Events {
					assert.Must(t, !seen[r.Event+k], "event %d has two rows", r.Event+k)
					seen[r.Event+k] = true
				}
			}
			assert.True(t, warm == tt.warm, "%d rows of the warm-up, want %d", warm, tt.warm)
			assert.True(t, doc.Trace.Every > 1 || uint64(len(seen)) == doc.Totals.Acked+uint64(tt.warm*10),
				"rows of %d events, acked were %d", len(seen), doc.Totals.Acked)
		})
	}
}

// TestTraceOnAFullDisk: the run goes on, and its report says so.
func TestTraceOnAFullDisk(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		return // other systems have no such file; package trace tests with a disk in memory
	}
	synctest.Test(t, func(t *testing.T) {
		m := &fakeKind{perBatch: 10}
		doc := assert.Value(Execute(t.Context(), Job{Portable: true, Workload: resolve(t, m, "count=500", "trace=/dev/full"), Trace: "/dev/full"}))(t)
		assert.True(t, doc.Totals.Acked == 500 && doc.Stopped == load.ByEvents, "acked %d, stopped by %q", doc.Totals.Acked, doc.Stopped)
		got, want := strings.Join(doc.Problems, "; "), "--trace: write /dev/full: no space left on device"
		assert.True(t, strings.HasPrefix(got, want), "problems %q, want %q", got, want)
		assert.True(t, doc.Trace.Error != "" && doc.Trace.Dropped != 0 && doc.ExitCode() == host.ExitFailed,
			"%+v, exit code %d", doc.Trace, doc.ExitCode())
		<-m.session.ended
	})
}

func TestTraceThatCannotBeMade(t *testing.T) {
	m := &fakeKind{}
	path := filepath.Join(t.TempDir(), "no", "file")
	_, err := Execute(t.Context(), Job{Portable: true, Workload: resolve(t, m, "count=1"), Trace: path})
	assert.ErrorHas(t, err, "--trace")
}

// However many events come back, and in whatever pieces, a uniform sample of them is kept, within the limit.
func TestSamples(t *testing.T) {
	for _, tt := range []struct {
		name       string
		events     int
		each       int32
		kept       int
		every      uint64
		mostUneven int // events between neighbours
	}{
		{"few", 10, 3, 10, 1, 1},
		{"just below the limit", mostSamples - 1, 1, mostSamples - 1, 1, 1},
		{"at the limit", mostSamples, 1, mostSamples / 2, 2, 3},
		{"many", 1_000_000, 777, 1_000_000 / 512, 512, 1023},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSamples(1, func(_ int32, k uint64) time.Duration { return time.Duration(k) * time.Microsecond })
			for first := 0; first < tt.events; first += int(tt.each) {
				n := min(tt.each, int32(tt.events-first))
				due := time.Duration(first) * time.Microsecond
				o := load.Outcome{Batch: load.Batch{First: uint64(first), Events: n, DueFirst: due, DueLast: due + time.Duration(n-1)*time.Microsecond}, Place: int64(first) + 5}
				s.add(&o, due+time.Millisecond)
			}
			r := s.report([]string{"log-0"}, func(int32) int32 { return 0 })
			assert.True(t, r.Of == uint64(tt.events) && r.Every == tt.every,
				"one in %d of %d, want one in %d of %d", r.Every, r.Of, tt.every, tt.events)
			n := len(r.EndToEnd)
			assert.True(t, n >= tt.kept && n <= tt.kept+1 && n <= mostSamples, "%d are kept, want %d", n, tt.kept)
			last := -1.0
			for i, e := range r.EndToEnd {
				d := e.StartUS - last
				assert.Must(t, d >= 1 && (d <= float64(tt.mostUneven) || i <= 0), "%v follows %v", e.StartUS, last)
				last = e.StartUS
			}
			e := r.EndToEnd[0]
			assert.True(t, tt.every != 1 || e.Item == "log-0/5" && e.StartUS == 0 && e.EndToEndUS == 1000, "the first is %+v", e)
		})
	}
}

// TestSamplesOfARoundTrip: only the report of a round trip has samples.
func TestSamplesOfARoundTrip(t *testing.T) {
	for _, tt := range []struct {
		name string
		set  []string
		want int
	}{
		{"round trip", []string{"op=roundtrip", "concurrency=1", "count=50"}, 50},
		{"read back, and not timed", []string{"count=50", "verify=true"}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &fakeKind{consumeDelay: 5 * time.Millisecond}
				doc := assert.Value(Execute(t.Context(), Job{Portable: true, Workload: resolve(t, m, tt.set...)}))(t)
				switch s := doc.Samples; {
				case tt.want == 0 && s != nil:
					t.Errorf("got %+v", s)
				case tt.want > 0 && (s == nil || len(s.EndToEnd) != tt.want || s.EndToEnd[0].EndToEndUS != 6000):
					t.Errorf("got %+v", s)
				}
				<-m.session.ended
			})
		})
	}
}
