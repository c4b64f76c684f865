package run

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
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

// However long a run is, its rows are the same as if they were encoded at the end, and hardly any of them are.
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

// randomOutcome makes the outcome of a batch, as a target could report it.
func randomOutcome(rnd *rand.Rand, first map[int32]uint64) load.Outcome {
	var o load.Outcome
	o.Stream = int32(rnd.IntN(5))
	o.First = first[o.Stream] + uint64(rnd.IntN(3))
	o.Events = int32(1 + rnd.IntN(20))
	first[o.Stream] = o.First + uint64(o.Events)
	switch rnd.IntN(4) {
	case 0:
		o.Unknown = o.Events
	case 1:
		o.Acked = int32(rnd.IntN(int(o.Events)))
		o.Failed = o.Events - o.Acked
	default:
		o.Acked = o.Events
	}
	o.Place, o.Sent, o.FirstSent, o.DueFirst, o.DueLast = -1, -1, -1, -1, -1
	if rnd.IntN(3) > 0 {
		o.Place, o.Sum = rnd.Int64N(1<<40), rnd.Uint32()|1
	}
	at := func() time.Duration { return time.Duration(rnd.Int64N(int64(time.Hour))) }
	o.Ready, o.Free, o.Phase = at(), at(), int32(rnd.IntN(3))
	if rnd.IntN(8) > 0 {
		o.Sent = at()
	}
	if rnd.IntN(4) == 0 {
		o.Attempt, o.FirstSent = 1, at()
	}
	if rnd.IntN(4) > 0 {
		o.DueFirst = dueAt(o.Stream, o.First)
		o.DueLast = dueAt(o.Stream, o.First+uint64(o.Events)-1)
	}
	return o
}

// dueAt is a schedule of streams: each event of stream 0 is due at the same time.
func dueAt(stream int32, index uint64) time.Duration {
	return time.Duration(stream)*time.Duration(index)*time.Microsecond + time.Second
}

func randomArrival(rnd *rand.Rand) load.Arrival {
	a := load.Arrival{Log: int32(rnd.IntN(4)), Base: rnd.Int64N(1 << 40), Events: int32(1 + rnd.IntN(9)), Sum: rnd.Uint32(), ProducerID: -1, Corrupt: rnd.IntN(9) == 0}
	a.At = time.Duration(1 + rnd.Int64N(int64(time.Hour)))
	a.Earliest = a.At - time.Duration(rnd.Int64N(int64(a.At)))
	a.Requested, a.Waited = a.Earliest/2, time.Duration(rnd.IntN(1000))
	if rnd.IntN(2) == 0 {
		s := load.Stamp{Run: 7, Stream: int32(rnd.IntN(3)) - 1, Index: rnd.Uint64(), Offset: a.Base}
		for range a.Events {
			a.Stamps = append(a.Stamps, s)
			s.Index, s.Offset = s.Index+1, s.Offset+1
			if rnd.IntN(4) == 0 {
				s.Index, s.Bad = rnd.Uint64(), !s.Bad
			}
		}
	}
	return a
}

// TestRecords: what is recorded is read again, from many chunks.
func TestRecords(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	r := NewRecords()
	r.times, r.due, r.logOf = true, dueAt, func(stream int32) int32 { return stream + 10 }
	assert.OK(t, r.found(&Logs{Names: []string{"t-0"}, Starts: []int64{5}, Stamped: true}))
	var sent []load.Outcome
	var read []load.Arrival
	first := map[int32]uint64{}
	var froze, came load.Frozen
	r.froze = func(after time.Duration) (f load.Frozen) {
		from := after + time.Duration(rnd.Int64N(int64(time.Second)))
		f.Add(from, from+time.Second)
		froze.Add(from, from+time.Second)
		return f
	}
	for range 8000 {
		o, a := randomOutcome(rnd, first), randomArrival(rnd)
		if n := len(read); n > 0 && rnd.IntN(3) == 0 { // of the same answer
			a.At, a.Earliest, a.Requested, a.Waited = read[n-1].At, read[n-1].Earliest, read[n-1].Requested, read[n-1].Waited
		}
		sent, read = append(sent, o), append(read, a)
		r.Fired([]load.Outcome{o})
		r.Arrived(0, []load.Arrival{a})
	}
	chunks := r.Take(0, 1)
	assert.Must(t, len(chunks) == 1, "took %d chunks, want 1", len(chunks))
	chunks = append(chunks, r.Rest()...)
	assert.Must(t, len(chunks) >= 3 && len(r.Rest()) == 0, "%d chunks; want several, and none left", len(chunks))
	i, k, logs := 0, 0, 0
	for _, chunk := range chunks {
		assert.OK(t, readRecords(chunk, func(rec *recorded) {
			switch {
			case rec.outcome != nil:
				sameOutcome(t, rec, sent[i])
				i++
			case rec.arrival != nil:
				if len(rec.arrival.Stamps) == 0 {
					rec.arrival.Stamps = nil
				}
				assert.Must(t, reflect.DeepEqual(*rec.arrival, read[k]), "arrival %d is %+v, want %+v", k, *rec.arrival, read[k])
				k++
			case rec.froze != nil:
				came.Add(rec.froze[0], rec.froze[1])
			case rec.logs != nil && rec.logs.Names[0] == "t-0" && rec.logs.Starts[0] == 5 && rec.logs.Stamped:
				logs++
			}
		}))
	}
	assert.True(t, reflect.DeepEqual(came, froze), "%d freezes came back of %d", len(came), len(froze))
	assert.True(t, i == len(sent) && k == len(read) && logs == 1, "%d outcomes, %d arrivals and %d logs came back", i, k, logs)
}

func sameOutcome(t *testing.T, got *recorded, want load.Outcome) {
	t.Helper()
	o := *got.outcome
	if got.log != want.Stream+10 || o.Stream != want.Stream || o.First != want.First || o.Events != want.Events || o.Acked != want.Acked ||
		o.Failed != want.Failed || o.Unknown != want.Unknown || o.Place != want.Place || o.Sum != want.Sum || o.Sent >= 0 != (want.Sent >= 0) {
		t.Fatalf("outcome %+v of log %d, want %+v", o, got.log, want)
	}
	if want.Acked+want.Unknown == 0 {
		return // it has no times
	}
	if o.Phase != want.Phase || o.DueFirst != want.DueFirst || o.DueLast != want.DueLast || o.Ready != want.Ready || o.Free != want.Free || o.Sent != want.Sent || o.FirstSent != want.FirstSent {
		t.Fatalf("times of %+v, want %+v", o, want)
	}
	for k, due := range got.dues {
		assert.Must(t, due == dueAt(o.Stream, o.First+uint64(k)), "event %d of %+v was due at %v", k, o, due)
	}
	assert.Must(t, (got.dues == nil) == (want.DueFirst == want.DueLast), "%d due times of %+v", len(got.dues), want)
}

// TestRecordsFull: what does not fit is counted.
func TestRecordsFull(t *testing.T) {
	r := NewRecords()
	r.logOf = func(int32) int32 { return 0 }
	r.size = mostRecords
	r.Fired([]load.Outcome{{Batch: load.Batch{Events: 9}, Acked: 7}})
	r.Arrived(0, []load.Arrival{{Events: 4}})
	var left [2]uint64
	for _, chunk := range r.Rest() {
		assert.OK(t, readRecords(chunk, func(rec *recorded) { left = rec.left }))
	}
	assert.Equal(t, left, [2]uint64{7, 4}, "left out")
	assert.True(t, (*Records)(nil).Take(0, 1) == nil, "a nil list has records")
}

// FuzzRecords: no bytes of another machine make the program fail or need much memory.
func FuzzRecords(f *testing.F) {
	rnd := rand.New(rand.NewPCG(3, 4))
	r := NewRecords()
	r.times, r.due, r.logOf = true, dueAt, func(stream int32) int32 { return stream }
	_ = r.found(&Logs{Names: []string{"t-0"}, Starts: []int64{5}})
	first := map[int32]uint64{}
	for range 30 {
		r.Fired([]load.Outcome{randomOutcome(rnd, first)})
		r.Arrived(0, []load.Arrival{randomArrival(rnd)})
	}
	f.Add(r.Rest()[0])
	f.Add([]byte{outcomeRecord, 0xff, 0x80})
	f.Fuzz(func(t *testing.T, chunk []byte) {
		err := readRecords(chunk, func(r *recorded) {
			o := r.outcome
			assert.True(t, o == nil || o.Acked+o.Failed+o.Unknown == o.Events && o.Failed >= 0, "%+v", o)
		})
		assert.True(t, err == nil || errors.Is(err, errRecords), "another error: %v", err)
	})
}

// TestRecordsOfIntervals: an interval is taken with the outcomes that it counts, whenever they
// were recorded, and with those that were counted before it.
func TestRecordsOfIntervals(t *testing.T) {
	r := NewRecords()
	r.logOf = func(int32) int32 { return 0 }
	fired := func(first uint64, interval int32) {
		r.Fired([]load.Outcome{{Batch: load.Batch{First: first, Events: 1}, Acked: 1, Place: -1, Counted: interval}})
	}
	read := func(chunks [][]byte) (all []uint64) {
		t.Helper()
		for _, chunk := range chunks {
			assert.OK(t, readRecords(chunk, func(rec *recorded) { all = append(all, rec.outcome.First) }))
		}
		return all
	}
	fired(0, 0)
	fired(1, 1)
	fired(2, 0)
	fired(3, 3)
	for interval, want := range [][]uint64{{0, 2}, {1}, nil} {
		got := read(r.Take(interval, 3))
		assert.True(t, slices.Equal(got, want), "interval %d has the outcomes %v, want %v", interval, got, want)
	}
	fired(4, 3)
	fired(5, 9)
	got, want := read(r.Rest()), []uint64{3, 4, 5}
	assert.True(t, slices.Equal(got, want), "at the end there are the outcomes %v, want %v", got, want)
}
