package run

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"carronade/internal/report"
	"carronade/internal/store"
	"carronade/internal/store/sqlite"
	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// rowsOf returns the intervals of a run of that many seconds, after a warm-up of five, as the engine shows
// them; wide ones have the times of a busy open loop.
func rowsOf(seconds int, wide bool) []measure.Interval {
	r := rand.New(rand.NewPCG(1, 2))
	times := func(n int, scale time.Duration) *measure.Histogram {
		h := measure.NewHistogram()
		for range n {
			h.Record(time.Duration(float64(scale) * (0.2 + r.ExpFloat64())))
		}
		return h.Compact()
	}
	sets := make([]measure.Set, 16) // repeated, since making them takes longer than what is tested here
	for i := range sets {
		if !wide {
			sets[i] = measure.Set{Service: times(3, time.Millisecond)}
			continue
		}
		batching := measure.NewHistogram()
		batching.RecordSpan(0, 5*time.Millisecond, 100_000)
		sets[i] = measure.Set{
			Response: times(100_000, 2*time.Millisecond), Service: times(2000, time.Millisecond), SendDelay: times(2000, 20*time.Microsecond),
			Batching: batching.Compact(), Queueing: times(2000, time.Microsecond),
		}
	}
	var rows []measure.Interval
	for i := range seconds + 5 {
		iv := measure.Interval{Phase: "measurement", Start: time.Duration(i) * time.Second, End: time.Duration(i+1) * time.Second, LagEvents: -1}
		if i < 5 {
			iv.Phase = "warm-up"
		}
		n := uint64(100_000 + i)
		iv.Within, iv.Arrived = iv.Length(), n
		iv.Counts = measure.Counts{Offered: n, Sent: n, Acked: n, Batches: n / 50, Answered: n / 50, Bytes: 100 * n, AckedBytes: 100 * n}
		iv.Generator = measure.Usage{CPU: time.Duration(i) * time.Millisecond, RSS: 1 << 20}
		iv.Set = sets[i%len(sets)]
		rows = append(rows, iv)
	}
	return rows
}

// asEngine returns the series that the engine makes of its rows: it keeps back
// the newest of each phase and corrects the last of all.
func asEngine(rows []measure.Interval, late bool, most int) []measure.Interval {
	s := measure.NewSeries(most)
	newest := map[string]measure.Interval{}
	for _, iv := range rows {
		if late {
			older, ok := newest[iv.Phase]
			newest[iv.Phase] = iv
			if !ok {
				continue
			}
			iv = older
		}
		s.Add(iv)
	}
	if late {
		for _, name := range []string{"warm-up", "measurement"} {
			if iv, ok := newest[name]; ok {
				if name == "measurement" {
					iv.Unsent += 7
				}
				s.AddLast(iv)
			}
		}
	}
	out := s.Intervals()
	slices.SortStableFunc(out, func(a, b measure.Interval) int { return cmp.Compare(a.Start, b.Start) })
	return out
}

// However long a run is, its rows are the same as if they were encoded at the
// end, and hardly any of them are.
func TestSeries(t *testing.T) {
	const most = 100
	for _, seconds := range []int{0, 1, 20, 90, 100, 120, 250, 1000} {
		for _, late := range []bool{true, false} {
			t.Run(fmt.Sprintf("%d s, late %v", seconds, late), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					rows := rowsOf(seconds, false)
					w := &sink{}
					form := report.Series{Mode: load.OpenLoop}
					s := newSeries(form, w)
					engine := newMirror(load.OpenLoop)
					engine.delayed, engine.rows = late, measure.NewSeries(most)
					for i := range rows {
						s.add(rows[i:i+1], engine.add(rows[i:i+1]))
						synctest.Wait()
					}
					want := asEngine(rows, late, most)
					got := s.end(want)
					assert.Must(t, len(got) == len(want) && len(got) <= most+2, "got %d rows, want %d", len(got), len(want))
					for i := range want {
						fresh := form.Interval(&want[i])
						a, b := encodingOf(t, &fresh), encodingOf(t, &got[i])
						assert.Must(t, bytes.Equal(a, b), "row %d: got\n%s\nwant\n%s", i, b, a)
					}
					few := 3
					assert.True(t, s.atEnd <= few, "%d of %d rows were encoded at the end, want at most %d", s.atEnd, len(got), few)
					w.covers(t, got, s.atEnd)
				})
			})
		}
	}
}

func encodingOf(t *testing.T, iv *report.Interval) []byte {
	t.Helper()
	b := assert.Value(json.Marshal(iv))(t)
	return b
}

// A sink is a store's writer that remembers which rows it has.
type sink struct {
	rows []report.Encoded
}

func (s *sink) Interval(e report.Encoded) {
	s.rows = slices.DeleteFunc(s.rows, func(o report.Encoded) bool {
		return o.Phase == e.Phase && o.StartS >= e.StartS && o.EndS <= e.EndS
	})
	s.rows = append(s.rows, e)
}
func (*sink) Finish(context.Context, *report.Document) error { return nil }
func (*sink) Abandon(context.Context) error                  { return nil }

// covers checks that the writer has the rows of the report, except for a few.
func (s *sink) covers(t *testing.T, rows []report.Interval, but int) {
	t.Helper()
	has := map[report.Sum]bool{}
	for i := range s.rows {
		has[s.rows[i].Sum] = true
	}
	missing := 0
	for i := range rows {
		sum := assert.Value(rows[i].Sum())(t)
		if !has[sum] {
			missing++
		}
	}
	// The newest row may not be complete, and then its parts are there.
	assert.True(t, missing <= but && len(s.rows) <= len(rows)+16,
		"the writer lacks %d of %d rows, and has %d", missing, len(rows), len(s.rows))
}

// The report of an hour of a busy run, with a row a second and five times each,
// takes less than 60 MiB. BenchmarkEndOfAnHour measures how long its end takes.
func TestAnHourIsSmall(t *testing.T) {
	testkit.Need(t, "a second")
	rows := rowsOf(300, true)
	h := begin(t, rows)
	h.end(t)
	got, most := h.size(t), int64(60<<20)/12
	assert.True(t, got <= most, "five minutes took %d bytes in the store, want at most %d", got, most)
}

// BenchmarkEndOfAnHour measures what remains to be done when a run of an hour
// has ended: the last rows, the document, its hash, and the store.
func BenchmarkEndOfAnHour(b *testing.B) {
	rows := rowsOf(3600, true)
	for b.Loop() {
		b.StopTimer()
		h := begin(b, rows)
		b.StartTimer()
		h.end(b)
		b.StopTimer()
		b.ReportMetric(float64(h.size(b))/(1<<20), "MiB")
		b.StartTimer()
	}
}

// An hourRun is a run whose rows are stored and whose end is to come.
type hourRun struct {
	path   string
	store  store.Store
	e      *execution
	result *load.Result
}

func begin(tb testing.TB, rows []measure.Interval) *hourRun {
	tb.Helper()
	h := &hourRun{path: filepath.Join(tb.TempDir(), "reports.db")}
	ctx := context.Background()
	s := assert.Value(sqlite.Open(ctx, h.path))(tb)
	tb.Cleanup(func() { _ = s.Close() })
	h.store = s
	h.result = &load.Result{Started: time.Now(), Ended: time.Now(), Mode: load.OpenLoop, Stopped: load.ByTime, Intervals: asEngine(rows, true, measure.DefaultSeries)}
	head := report.Build(report.Input{ID: report.IDOf(NewID()), Result: &load.Result{Mode: load.OpenLoop, Started: h.result.Started}})
	assert.OK(tb, head.Seal())
	w := assert.Value(s.Begin(ctx, head))(tb)
	h.e = &execution{Job: Job{Store: s, Stored: func(_ *report.Document, err error) {
		assert.OK(tb, err)
	}}, writer: w, series: newSeries(report.Series{Mode: load.OpenLoop}, w)}
	h.e.Version = head.ID
	engine := newMirror(load.OpenLoop)
	for i := range rows {
		h.e.series.add(rows[i:i+1], engine.add(rows[i:i+1]))
	}
	last := rows[len(rows)-1].End.Seconds()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) { // until everything is in the file
		kept, err := s.Get(ctx, head.ID)
		if n := len(kept.Intervals); err == nil && n > 0 && kept.Intervals[n-1].EndS == last {
			return h
		}
		assert.Must(tb, !time.Now().After(deadline), "not all of %d rows are stored after a minute (%v)", len(rows), err)
	}
}

func (h *hourRun) end(tb testing.TB) {
	tb.Helper()
	d := report.Build(report.Input{ID: h.e.Version, Result: h.result, Series: h.e.series.end(h.result.Intervals)})
	h.e.storeReport(context.Background(), d)
}

func (h *hourRun) size(tb testing.TB) int64 {
	tb.Helper()
	assert.OK(tb, h.store.Close())
	info := assert.Value(os.Stat(h.path))(tb)
	return info.Size()
}
