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

// The lengths of rows of a long run differ by at most a factor of two, and the series stays full.
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

func TestStallAdd(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct {
		name  string
		add   [][2]time.Duration
		want  []Span
		count uint64
	}{
		{"one", [][2]time.Duration{{100 * ms, 300 * ms}}, []Span{{100 * ms, 200 * ms}}, 1},
		{"one that continued", [][2]time.Duration{{100 * ms, 300 * ms}, {100 * ms, 500 * ms}}, []Span{{100 * ms, 400 * ms}}, 1},
		{"two that meet", [][2]time.Duration{{100 * ms, 300 * ms}, {300 * ms, 500 * ms}}, []Span{{100 * ms, 200 * ms}, {300 * ms, 200 * ms}}, 2},
		{"two that overlap", [][2]time.Duration{{100 * ms, 300 * ms}, {200 * ms, 500 * ms}}, []Span{{100 * ms, 200 * ms}, {300 * ms, 200 * ms}}, 2},
		{"one within another", [][2]time.Duration{{100 * ms, 300 * ms}, {200 * ms, 250 * ms}}, []Span{{100 * ms, 200 * ms}}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var s Stall
			for _, x := range tt.add {
				s.Add(x[0], x[1])
			}
			diff := cmp.Diff(tt.want, s.Spans)
			assert.True(t, diff == "" && s.Count == tt.count, "%d stalls, want %d (-want +got):\n%s", s.Count, tt.count, diff)
		})
	}
}

// Of very many stalls the longest are kept, in order of time.
func TestStallsAreBounded(t *testing.T) {
	var s Stall
	for i := range 2 * MostSpans {
		at := time.Duration(i) * time.Second
		s.Add(at, at+time.Duration(100+i%2)*time.Millisecond)
	}
	assert.Must(t, s.Count == 2*MostSpans && len(s.Spans) == MostSpans, "%d stalls, %d kept", s.Count, len(s.Spans))
	short := 0
	for i, x := range s.Spans {
		if i > 0 && x.At <= s.Spans[i-1].At {
			t.Fatalf("stall %d is at %v, after %v", i, x.At, s.Spans[i-1].At)
		}
		if x.Length == 100*time.Millisecond {
			short++
		}
	}
	assert.True(t, short <= 1, "%d short stalls are kept instead of long ones", short)
}

// Every percentile of the result is the least of those of the histograms, and its count is that of the first.
func TestLeastOf(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	fill := func(n int, scale, shift float64) *Histogram {
		h := NewHistogram()
		for range n {
			h.Record(time.Duration(shift + scale*rng.ExpFloat64()))
		}
		return h
	}
	for _, tt := range []struct {
		name string
		hs   []*Histogram
	}{
		{"one", []*Histogram{fill(1000, 1e6, 0)}},
		{"crossing", []*Histogram{fill(100_000, 1e6, 2e6), fill(100_000, 5e6, 0)}},
		{"of other counts", []*Histogram{fill(20_000, 1e6, 1e6), fill(150, 2e6, 0), nil, NewHistogram(), fill(70_000, 1e3, 3e6)}},
		{"compact", []*Histogram{fill(5000, 1e6, 2e6).Compact(), fill(5000, 5e6, 0)}},
		{"beyond the range", []*Histogram{fill(1000, 1e12, 5e12), fill(1000, 3e12, 0)}},
		{"below the range", []*Histogram{fill(1000, 100, 0), fill(1000, 1e6, 0)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := LeastOf(tt.hs...)
			assert.Must(t, got.Count() == tt.hs[0].Count(), "counted %d, want %d", got.Count(), tt.hs[0].Count())
			mean := tt.hs[0].Mean()
			for _, p := range []float64{0.1, 1, 10, 50, 90, 99, 99.9, 100} {
				want := time.Duration(1 << 62)
				for _, h := range tt.hs {
					if h.Count() > 0 {
						want = min(want, h.Percentile(p))
						mean = min(mean, h.Mean())
					}
				}
				// With another count, a rank may fall between two of a histogram.
				slack := time.Duration(0)
				if len(tt.hs) > 2 {
					slack = want / 10
				}
				assert.True(t, (got.Percentile(p)-want).Abs() <= slack, "p%v is %v, want %v", p, got.Percentile(p), want)
			}
			assert.True(t, (got.Mean()-mean).Abs() <= 1, "the mean is %v, want %v", got.Mean(), mean)
			again := NewHistogram() // all cells are within the span
			again.Merge(got)
			assert.True(t, again.Percentile(99) == got.Percentile(99) && again.Count() == got.Count(),
				"merged: p99 %v of %d, want %v of %d", again.Percentile(99), again.Count(), got.Percentile(99), got.Count())
		})
	}
	if got := LeastOf(nil, NewHistogram()); got.Count() != 0 || got.Percentile(50) != 0 {
		t.Errorf("of empty histograms: %d values, p50 %v", got.Count(), got.Percentile(50))
	}
}
