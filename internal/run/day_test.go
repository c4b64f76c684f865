package run

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"carronade/internal/report"
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
		long = assert.Value(time.ParseDuration(soak))(t)
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
					quiet     bool // the collector's goal follows how busy the machine is, so only make soak judges it
				}{
					{"an hour", full.heap - begin.heap, tt.anHour, false},
					{"the run", last.heap - begin.heap, ever, false},
					{"the run and its report", document - begin.heap, report, false},
					{"more room for the collector", last.room - begin.room, tt.room, true},
					{"an hour after five minutes, with room", full.heap + full.room - five.heap - five.room, settled, true},
				} {
					if t.Logf("%s takes %d KiB", m.name, m.got>>10); m.got > m.most && (!m.quiet || soak != "") {
						t.Errorf("%s takes %d bytes, want at most %d", m.name, m.got, m.most)
					}
				}
				n := len(d.Intervals)
				assert.True(t, n <= measure.DefaultSeries+2, "got %d rows", n)
			})
		})
	}
}

func TestReadAfter(t *testing.T) {
	for _, tt := range []struct {
		name    string
		plan    load.Plan
		streams int
		want    bool
	}{
		{"a short run", load.Plan{Schedule: load.Constant(5000), Linger: 5 * time.Millisecond, Measurement: load.Limits{Time: 30 * time.Second}}, 6, true},
		{"fast, in full batches", load.Plan{Schedule: load.Constant(1e6), Linger: 5 * time.Millisecond, Measurement: load.Limits{Time: 20 * time.Second}}, 4, true},
		{"a day", load.Plan{Schedule: load.Constant(50_000), Linger: 5 * time.Millisecond, Measurement: load.Limits{Time: 24 * time.Hour}}, 6, false},
		{"a day, but a limit of events", load.Plan{Schedule: load.Constant(50_000), Measurement: load.Limits{Time: 24 * time.Hour, Events: 1000}}, 6, true},
		{"no end", load.Plan{Schedule: load.Constant(1), Linger: 5 * time.Millisecond}, 1, false},
		{"a schedule that ends", load.Plan{Schedule: load.Until(load.Constant(100), time.Minute)}, 1, true},
		{"one event a batch", load.Plan{Schedule: load.Constant(1e6), BatchEvents: 1, Linger: time.Second, Measurement: load.Limits{Time: 20 * time.Second}}, 4, false},
		{"a hundred a batch", load.Plan{Schedule: load.Constant(1e6), BatchEvents: 100, Measurement: load.Limits{Time: 20 * time.Second}}, 4, true},
		{"nothing is batched", load.Plan{Schedule: load.Constant(1e6), Measurement: load.Limits{Time: 20 * time.Second}}, 4, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := readAfter(&tt.plan, tt.streams); got != tt.want {
				t.Errorf("at most %d batches: read afterwards %v, want %v", mostBatches(&tt.plan, tt.streams), got, tt.want)
			}
		})
	}
}

func TestUnique(t *testing.T) {
	got := unique([]string{"a", "b"}, nil, []string{"b", "c", "a"})
	want := []string{"a", "b", "c"}
	assert.True(t, slices.Equal(got, want), "got %q, want %q", got, want)
}

// TestMomentsLeftOut: of many moments of a name the longest are kept, and how many were not is said.
func TestMomentsLeftOut(t *testing.T) {
	var m moments
	began := time.Now()
	for i := range mostMoments + 234 {
		m.add("client", "connection lost", began, time.Duration(i))
	}
	m.add("client", "leader changed", began, 0)
	assert.Equal(t, len(m.kept[momentKey{"client", "connection lost"}]), mostMoments, "are kept")
	assert.Equal(t, fmt.Sprint(m.remarks()), `["connection lost" of the client happened 1,234 times: the report has the 1,000 longest]`)
}

// A run whose first seconds are slower gets a warning, which names the warm-up that covers
// them. With that warm-up there is none. The exit code stays.
func TestStartWarned(t *testing.T) {
	execute := func(t *testing.T, slow time.Duration, set ...string) *report.Document {
		t.Helper()
		var doc *report.Document
		synctest.Test(t, func(t *testing.T) {
			m := &fakeKind{perBatch: 1, slowFor: slow}
			doc = assert.Value(Execute(t.Context(), Job{Portable: true, Workload: resolve(t, m, append(set, "rate=1k/s", "for=20s")...)}))(t)
		})
		return doc
	}
	const unlike = "of the measurement differ from the rest"
	warned := func(d *report.Document) bool {
		return slices.ContainsFunc(d.Warnings, func(w string) bool { return strings.Contains(w, unlike) })
	}
	for _, slow := range []time.Duration{time.Second, 3 * time.Second}[:testkit.Cases(2, 1)] {
		doc := execute(t, slow)
		i := slices.IndexFunc(doc.Warnings, func(w string) bool { return strings.Contains(w, unlike) })
		assert.Must(t, i >= 0, "%v: got warnings %q", slow, doc.Warnings)
		assert.Equal(t, doc.ExitCode(), execute(t, 0).ExitCode(), "%v: the exit code", slow)
		assert.True(t, slices.ContainsFunc(doc.Verdicts(), func(v report.Verdict) bool { return v.On == report.OnWarning && strings.Contains(v.Texts[0], unlike) }),
			"%v: not in the report: %v", slow, doc.Verdicts())
		_, advice, _ := strings.Cut(doc.Warnings[i], "--warmup ")
		warmup, _, _ := strings.Cut(advice, " ")
		again := execute(t, slow, "warmup="+warmup)
		assert.True(t, !warned(again), "%v: with --warmup %s: %q", slow, warmup, again.Warnings)
	}
	steady := execute(t, 0)
	assert.True(t, !warned(steady), "got warnings %q of a steady run", steady.Warnings)
}
