package measure

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// AddLast joins nothing in a full series; the next Add does.
func TestSeriesAddLast(t *testing.T) {
	s := NewSeries(10)
	at := time.Duration(0)
	next := func() Interval {
		at += time.Second
		return Interval{Phase: "measurement", Start: at - time.Second, End: at}
	}
	for range 10 {
		s.Add(next())
	}
	s.AddLast(next())
	assert.Equal(t, len(s.Intervals()), 11, "rows")
	s.Add(next())
	if got := len(s.Intervals()); got != 11 || len(s.Changed()) != 1 || s.Changed()[0].Length() != 2*time.Second {
		t.Errorf("got %d rows, want two joined and the next", got)
	}
}

// The lengths of rows of a long run differ by at most a factor of two, and the series
// stays full.
func TestSeriesIsEven(t *testing.T) {
	const most = 100
	s := NewSeries(most)
	for i := range 10_000 {
		at := time.Duration(i) * time.Second
		before := s.Rows()
		s.Add(Interval{Phase: "measurement", Start: at, End: at + time.Second})
		rows := s.Intervals()
		if i < most {
			assert.Must(t, len(s.Changed()) == 0, "after %d: two rows were joined although there was room", i)
			continue
		}
		short, long := rows[0].Length(), rows[0].Length()
		for _, iv := range rows[:most-1] { // the last one is not complete
			short, long = min(short, iv.Length()), max(long, iv.Length())
		}
		assert.Must(t, len(rows) == most && long <= 2*short, "after %d: %d rows of %v to %v", i, len(rows), short, long)
		j := s.Changed()
		assert.Must(t, before == most || len(s.Intervals()) != before, "after %d: joined %v with %d rows", i, j, before)
	}
}

// With any number of intervals, the series stays within its bound, covers the run
// without a gap, and keeps the sums.
func TestSeriesKeepsTheSums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(4, 20).Draw(t, "most")
		s := NewSeries(most)
		want := map[string]*Tally{}
		at := time.Duration(0)
		for _, phase := range []string{"warm-up", "measurement", "drain"} {
			want[phase] = &Tally{Start: at}
			for range rapid.IntRange(0, 200).Draw(t, "intervals") {
				iv := Interval{Phase: phase, Start: at, End: at + time.Second, InFlight: uint64(at)}
				at = iv.End
				iv.Acked = rapid.Uint64Range(0, 9).Draw(t, "acked")
				iv.Service = NewHistogram()
				iv.Service.RecordN(time.Duration(iv.Acked)*time.Millisecond, iv.Acked)
				iv.Generator = Usage{CPU: time.Second, GCPauseMax: time.Duration(iv.Acked)}
				want[phase].Counts.Add(iv.Counts)
				want[phase].Merge(&iv.Set)
				s.Add(iv)
				iv.Service.Record(time.Hour) // the series has a copy
			}
			want[phase].End = at
		}
		if got := len(s.Intervals()); got > most {
			t.Fatalf("got %d intervals, want at most %d", got, most)
		}
		got := map[string]*Tally{}
		end := time.Duration(0)
		for _, iv := range s.Intervals() {
			if iv.Start != end {
				t.Fatalf("a gap between %v and %v", end, iv.Start)
			}
			end = iv.End
			tally := got[iv.Phase]
			if tally == nil {
				tally = &Tally{}
				got[iv.Phase] = tally
			}
			tally.Counts.Add(iv.Counts)
			tally.Merge(&iv.Set)
			if iv.InFlight != uint64(iv.End-time.Second) {
				t.Fatalf("in flight of %v..%v is not the value at its end: %v", iv.Start, iv.End, iv.InFlight)
			}
			if iv.Generator.CPU != iv.Length() {
				t.Fatalf("CPU of %v..%v: got %v", iv.Start, iv.End, iv.Generator.CPU)
			}
		}
		if end != at {
			t.Fatalf("ends at %v, want %v", end, at)
		}
		for phase, w := range want {
			g := got[phase]
			if g == nil {
				g = &Tally{}
			}
			if diff := cmp.Diff(w.Counts, g.Counts); diff != "" {
				t.Fatalf("%s: %s", phase, diff)
			}
			if w.Service.Count() != g.Service.Count() || w.Service.Count() > 0 && !w.Service.Equal(g.Service) {
				t.Fatalf("%s: service times differ", phase)
			}
		}
	})
}

// Rows whose cells take much memory are joined before there are many: the bytes stay within
// the bound, the lengths even, and nothing is lost.
func TestSeriesIsBoundedInBytes(t *testing.T) {
	const most = 100 << 10
	s := NewSeries(DefaultSeries)
	s.mostCells = most
	rng := rand.New(rand.NewPCG(1, 2))
	n := testkit.Cases(3000, 1000)
	for i := range n {
		h := NewHistogram()
		for range 300 {
			h.Record(time.Duration(rng.ExpFloat64() * 3e6))
		}
		at := time.Duration(i) * time.Second
		s.Add(Interval{Phase: "measurement", Start: at, End: at + time.Second, Set: Set{Response: h}})
		bytes := 0
		for _, iv := range s.Intervals() {
			bytes += len(iv.Response.packed)
		}
		if bytes != s.cells || bytes > most+most/10 && len(s.Intervals()) > fewRows {
			t.Fatalf("after %d: %d rows have %d bytes, %d are counted, and %d are the bound", i, len(s.Intervals()), bytes, s.cells, most)
		}
	}
	count, short, long := uint64(0), time.Hour, time.Duration(0)
	rows := s.Intervals()
	for _, iv := range rows {
		count += iv.Response.Count()
		long = max(long, iv.Length())
	}
	for _, iv := range rows[:len(rows)-1] {
		short = min(short, iv.Length())
	}
	assert.True(t, count == uint64(300*n) && len(rows) >= fewRows && len(rows) <= n/4 && long <= 2*short,
		"%d rows of %v to %v have %d values, want %d", len(rows), short, long, count, 300*n)
	if s.AddLast(Interval{Phase: "measurement"}); len(s.Changed()) > 1 {
		t.Error("the last row of a run made others join")
	}
}

// A week of seconds takes some MB.
func TestSeriesOfAWeekIsBounded(t *testing.T) {
	s := NewSeries(DefaultSeries)
	h := NewHistogram()
	for i := range 500 {
		h.RecordN(time.Duration(i*i)*time.Microsecond, 1000)
	}
	for i := range 7200 {
		at := time.Duration(i) * time.Second
		s.Add(Interval{Phase: "measurement", Start: at, End: at + time.Second, Set: Set{Service: h}})
	}
	bytes := 0
	for _, iv := range s.Intervals() {
		assert.Must(t, iv.Service.dense == nil, "an interval of the series is not compact")
		bytes += cap(iv.Service.packed)
	}
	assert.Equal(t, len(s.Intervals()), DefaultSeries, "intervals")
	assert.True(t, bytes <= 8<<20, "one histogram per interval takes %d bytes", bytes)
}
