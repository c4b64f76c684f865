package live

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// An exampleFrame is a run of random intervals of a given length.
type exampleFrame struct {
	every, at time.Duration
	dice      *rand.Rand
	warm      time.Duration
	sum       measure.Counts // of the measurement
	early     measure.Counts // of the warm-up
	all       measure.Set
	times     [2]measure.Set // of the newest interval, by phase, as the engine reuses them
}

func newExample(every, warm time.Duration) *exampleFrame {
	return &exampleFrame{every: every, warm: warm, dice: rand.New(rand.NewPCG(1, 2))}
}

// next is the next interval. In the one after the warm-up, events of both phases are answered.
func (x *exampleFrame) next() load.Snapshot {
	row := func(phase string) measure.Interval {
		iv := measure.Interval{Phase: phase, Start: x.at, End: x.at + x.every, LagEvents: -1, InFlight: x.dice.Uint64N(100)}
		n := x.dice.Uint64N(50) + 1
		iv.Offered, iv.Sent, iv.Acked, iv.Failed, iv.Bytes = n, n, n-n%3, n%3, 100*n
		set := &x.times[0]
		if phase == measure.WarmUp {
			set = &x.times[1]
		}
		if set.Response == nil {
			set.Response, set.Service, set.SendDelay = measure.NewHistogram(), measure.NewHistogram(), measure.NewHistogram()
		}
		set.Response.Reset()
		set.Service.Reset()
		set.SendDelay.Reset()
		iv.Set = *set
		for range n {
			d := time.Duration(x.dice.Int64N(int64(time.Second)))
			iv.Response.Record(d)
			iv.Service.Record(d / 2)
			iv.SendDelay.Record(d / 1000)
		}
		if phase == measure.WarmUp {
			x.early.Add(iv.Counts)
		} else {
			x.sum.Add(iv.Counts)
		}
		x.all.Merge(&iv.Set)
		return iv
	}
	s := load.Snapshot{At: x.at + x.every, Phase: measure.Measurement}
	switch {
	case x.at < x.warm:
		s.Phase = measure.WarmUp
		s.Rows = []measure.Interval{row(measure.WarmUp)}
		s.Interval = s.Rows[0]
	case x.at == x.warm && x.warm > 0:
		s.Rows = []measure.Interval{row(measure.WarmUp), row(measure.Measurement)}
		s.Interval = measure.Join(s.Rows[0], s.Rows[1])
		s.Interval.Start, s.Interval.End = x.at, x.at+x.every
	default:
		s.Rows = []measure.Interval{row(measure.Measurement)}
		s.Interval = s.Rows[0]
	}
	x.at += x.every
	return s
}

func (x *exampleFrame) done() Done {
	d := Done{Report: "abc", Totals: measure.Signed(x.sum)}
	if !x.early.IsZero() {
		warm := measure.Signed(x.early)
		d.Warmup = &warm
	}
	return d
}

// sum adds up frames: of the measurement and of the warm-up.
func sum(frames []Frame) (measurement, warmup Counts) {
	for i := range frames {
		measurement.Add(frames[i].Counts)
		if w := frames[i].Warmup; w != nil {
			measurement.Subtract(*w)
			warmup.Add(*w)
		}
	}
	return measurement, warmup
}

func TestFramesAddUp(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name        string
		every, warm time.Duration
		n           int
		frames      int // of the series
		negative    bool
	}{
		{name: "seconds", every: time.Second, n: 25, frames: 26},
		{name: "shorter", every: 100 * time.Millisecond, warm: 300 * time.Millisecond, n: 57, frames: 6},
		{name: "odd", every: 300 * time.Millisecond, warm: 900 * time.Millisecond, n: 10, frames: 4},
		{name: "longer", every: 10 * time.Second, warm: 20 * time.Second, n: 7, frames: 8},
		{name: "fewer were due", every: time.Second, n: 5, frames: 6, negative: true},
		{name: "merged", every: time.Second, n: 2*mostKept + 7, frames: mostKept + (mostKept+67)/10},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.n > mostKept {
				testkit.Need(t, "a second")
			}
			x := newExample(tt.every, tt.warm)
			var series Series
			var last *Done
			r := NewRecorder("abc", Run{}, func(e Event) {
				switch {
				case e.Frame != nil:
					err := series.Add(e.Frame)
					assert.True(t, err == nil, "%v", err)
				case e.Done != nil:
					last = e.Done
				}
			})
			for range tt.n {
				r.Show(x.next())
			}
			want := x.done()
			if tt.negative {
				want.Totals.Offered -= 100000
			} else {
				want.Totals.Unsent += 3
			}
			r.End(want)
			r.End(Done{}) // it has ended
			r.Show(x.next())
			frames := series.After(0)
			got, warm := sum(frames)
			assert.Equal(t, got, want.Totals, "sum of the measurement's frames")
			w := want.Warmup
			assert.True(t, (w == nil || warm == *w) && (w != nil || warm == (Counts{})), "the warm-up's frames add up to %+v, want %+v", warm, w)
			assert.True(t, last != nil && last.Totals == want.Totals, "the end: got %+v, want %+v", last, want)
			d := len(frames) - tt.frames
			assert.True(t, d >= -60 && d <= 60 && (tt.n >= 100 || d == 0), "got %d frames, want %d", len(frames), tt.frames)
			for i := 1; i < len(frames); i++ {
				assert.Must(t, frames[i].From == frames[i-1].To,
					"frame %d begins at %v, and the one before ends at %v", i, frames[i].From, frames[i-1].To)
			}
		})
	}
}

// TestWithoutAReport: a run that fails has the totals of its frames.
func TestWithoutAReport(t *testing.T) {
	x := newExample(time.Second, 0)
	var done Done
	r := NewRecorder("a", Run{}, func(e Event) {
		if e.Done != nil {
			done = *e.Done
		}
	})
	for range 3 {
		r.Show(x.next())
	}
	r.End(Done{Error: "broken"})
	assert.Equal(t, done.Totals, measure.Signed(x.sum))
}

// TestMergedPercentiles: those of a merged frame are of all its events, at the
// histograms' full precision, and not computed from shorter frames.
func TestMergedPercentiles(t *testing.T) {
	t.Parallel()
	x := newExample(time.Second, 0)
	got := map[int64]Frame{}
	r := NewRecorder("a", Run{}, func(e Event) {
		if e.Frame != nil && e.Frame.Number == 100 {
			got[e.Frame.Span] = *e.Frame
		}
	})
	for range 100 {
		r.Show(x.next())
	}
	f := got[100]
	want := Times{
		P50: Micros(x.all.Response.Percentile(50)), P90: Micros(x.all.Response.Percentile(90)),
		P99: Micros(x.all.Response.Percentile(99)), Max: Micros(x.all.Response.Max()),
	}
	assert.True(t, f.Response == want && f.SendDelay == Micros(x.all.SendDelay.Percentile(99)) && f.From == 0 &&
		f.To == Seconds(100*time.Second), "got %+v in %+v, want %+v", f.Response, f, want)
	assert.Equal(t, len(got), 3, "spans that end at frame 100")
}

// TestNothingMeasured: percentiles of nothing are null, and so is an unknown lag.
func TestNothingMeasured(t *testing.T) {
	var line []byte
	r := NewRecorder("a", Run{}, func(e Event) {
		if e.Frame != nil {
			line, _ = json.Marshal(e.Frame)
		}
	})
	r.Show(load.Snapshot{Interval: measure.Interval{End: time.Second, LagEvents: -1}})
	for _, want := range []string{`"response":{"p50_us":null,"p90_us":null,"p99_us":null,"max_us":null}`, `"lag":null`, `"send_delay_p99_us":null`} {
		assert.True(t, strings.Contains(string(line), want), "got %s, want %s in it", line, want)
	}
	var back Frame
	err := json.Unmarshal(line, &back)
	assert.True(t, err == nil && back.Response.P99 == NoTime && back.Lag == -1, "read again: %+v, %v", back, err)
}

// TestLowerBounds: from the first percentile on that is among unanswered events.
func TestLowerBounds(t *testing.T) {
	h, c := measure.NewHistogram(), measure.NewHistogram()
	h.RecordN(time.Millisecond, 95)
	c.RecordN(time.Second, 5)
	if got := timesOf(h, c); got.AtLeast != 99 || got.P90 != Micros(time.Millisecond) || got.P99 < Micros(900*time.Millisecond) {
		t.Errorf("got %+v", got)
	}
	h.RecordN(time.Millisecond, 1_000_000)
	got := timesOf(h, c)
	assert.True(t, got.AtLeast == 100 && got.Max == Micros(time.Second), "only the maximum is a bound: got %+v", got)
}

// TestBins: the bins of a frame are those of its first time, and none if that has only lower bounds.
func TestBins(t *testing.T) {
	of := func(all ...time.Duration) *measure.Histogram {
		h := measure.NewHistogram()
		for _, d := range all {
			h.Record(d)
		}
		return h
	}
	const us, ms = time.Microsecond, time.Millisecond
	some := of(100*us, 100*us, 113*us)
	for _, tt := range []struct {
		set  measure.Set
		want []int64
	}{
		{measure.Set{Response: some, EndToEnd: of(ms), Service: of(us)}, []int64{40, 2, 1}},
		{measure.Set{EndToEnd: of(ms), Service: some}, []int64{60, 1}},
		{measure.Set{Service: of(0, 2*time.Hour)}, append(append([]int64{0, 1}, make([]int64, 190)...), 1)},
		{measure.Set{Censored: of(ms), EndToEnd: some}, nil},
		{measure.Set{UnreadAges: of(ms), Service: some}, nil},
		{measure.Set{}, nil},
	} {
		p := mergedSpan{Interval: measure.Interval{Set: tt.set}, n: 1}
		assert.Same(t, p.frame(1, 1).Bins, tt.want, "%v", tt.want)
	}
}

// largest is a frame with everything that a recorder can put into one.
func largest() Frame {
	var out Frame
	r := NewRecorder("a", Run{}, func(e Event) {
		if e.Frame != nil {
			out = *e.Frame
		}
	})
	var figures []measure.Figure
	for i := range 100 {
		figures = append(figures, measure.Figure{Name: strings.Repeat("é\"", 30) + string(rune('a'+i%26)), Unit: strings.Repeat("<u", 60), Value: 1.2345678901234567e-100})
	}
	r.Figures("server", figures)
	for range 20 {
		r.Mark(strings.Repeat("<é\n", 100))
	}
	set := measure.Set{}
	set.Each(func(_ string, h **measure.Histogram) { *h = measure.NewHistogram(); (*h).Record(123456789) })
	const n = 1 << 52
	counts := measure.Counts{Offered: n, Sent: n, Dropped: n, Unsent: n, Acked: n, Failed: n, Unknown: n, Consumed: n, Retries: n, Batches: n, Answered: n, Bytes: n, AckedBytes: n, WireBytes: n}
	iv := measure.Interval{Phase: measure.WarmUp, End: 1234567891 * time.Nanosecond, Counts: counts, Set: set, InFlight: n, LagEvents: n}
	r.Show(load.Snapshot{Phase: measure.WarmUp, Interval: iv, Rows: []measure.Interval{iv}})
	return out
}

func TestSize(t *testing.T) {
	f := largest()
	line := assert.Value(json.Marshal(f))(t)
	assert.True(t, len(line) <= mostFrameBytes, "a frame has %d bytes, want %d at most:\n%s", len(line), mostFrameBytes, line)
	assert.True(t, len(f.Gauges) >= 5 && len(f.Marks) >= 3, "got %d gauges and %d marks, want more", len(f.Gauges), len(f.Marks))
}

func TestGauges(t *testing.T) {
	t.Parallel()
	var got []Gauge
	r := NewRecorder("a", Run{}, func(e Event) {
		if e.Frame != nil {
			got = e.Frame.Gauges
		}
	})
	i := 0
	second := func() {
		iv := measure.Interval{Start: time.Duration(i) * time.Second, End: time.Duration(i+1) * time.Second}
		i++
		r.Show(load.Snapshot{Interval: iv})
	}
	r.Figures("host", []measure.Figure{{Name: "CPU", Unit: "cores", Value: 1}, {Name: "disk read", Value: 9}})
	r.Figures("system", []measure.Figure{{Name: "CPU", Unit: "cores", Value: 0.5}, {Name: "GCs", Value: 7, Total: true}})
	second()
	assert.Same(t, got, []Gauge{{"host", "CPU", "cores", 1}, {"system", "CPU", "cores", 0.5}})
	r.Figures("system", nil) // it did not answer: a gap
	second()
	assert.Same(t, got, []Gauge{{"host", "CPU", "cores", 1}})
	many := make([]measure.Figure, 20)
	for i := range many {
		many[i] = measure.Figure{Name: string(rune('a' + i))}
	}
	r.Figures("server", many)
	second()
	assert.True(t, len(got) == mostGauges && got[0].Name == "a" && !slices.ContainsFunc(got, func(g Gauge) bool { return g.From == "host" }),
		"got %+v, want %d of the server", got, mostGauges)
}

// TestImportantGauges: those that a program reports about itself stay.
func TestImportantGauges(t *testing.T) {
	r := NewRecorder("a", Run{}, func(Event) {})
	r.Figures("host", []measure.Figure{{Name: "CPU"}, {Name: "steal"}})
	var own []measure.Figure
	for _, name := range []string{"CPU", "RSS", "PSS", "processes", "threads", "open files", "disk read", "disk written", "read", "written", "heap after GC", "GC pause", "GC", "x"} {
		own = append(own, measure.Figure{Name: name})
	}
	r.Figures("system", own)
	var got []string
	for _, g := range r.gauges {
		got = append(got, g.From+" "+g.Name)
	}
	want := "system CPU, system RSS, system PSS, system processes, system threads, system open files, system disk read, system disk written, system heap after GC, system GC pause, system GC, system x"
	assert.Equal(t, strings.Join(got, ", "), want)
}

// TestTenHours: a run of ten hours takes at most 2 MB.
func TestTenHours(t *testing.T) {
	testkit.Need(t, "some seconds")
	t.Parallel()
	f := Frame{Phase: measure.Measurement}
	for i := range mostGauges {
		f.Gauges = append(f.Gauges, Gauge{From: "system", Name: string(rune('a' + i))})
	}
	dice := rand.New(rand.NewPCG(1, 2))
	var s Series
	const end = 36000
	for n := int64(1); n <= end; n++ {
		for span := int64(1); span <= maxSpan && n%span == 0; span *= tenfold {
			for _, v := range f.numbers() {
				*v = dice.Int64N(1 << 26) // 10 M events/s, times of some 100 ms
			}
			for i := range f.Gauges {
				f.Gauges[i].Value = dice.Float64() * 1e9
			}
			f.Number, f.Span, f.From, f.To = n, span, Seconds(n-span)*1e9, Seconds(n)*1e9
			if n%100 == 0 {
				f.Marks = []Mark{{At: f.To, Text: "a phase"}}
			} else {
				f.Marks = nil
			}
			assert.OK(t, s.Add(&f))
		}
	}
	n := s.Bytes()
	assert.True(t, n <= 2<<20, "ten hours take %d bytes, want 2 MB at most", n)
	all := s.After(0)
	covered := int64(0)
	for i := range all {
		covered += all[i].Span
	}
	if covered != end || all[len(all)-1].Span != 1 || all[0].Span != 10 && all[0].Span != 100 {
		t.Errorf("%d frames cover %d seconds, want %d; the first has %d, the last %d", len(all), covered, end, all[0].Span, all[len(all)-1].Span)
	}
}

// TestSeriesKeeps: a frame is read as it was added, except that values of gauges lose digits.
func TestSeriesKeeps(t *testing.T) {
	var s Series
	var want []Frame
	for n := int64(1); n <= 3*perBlock; n++ {
		f := largest()
		f.Number = n
		f.Counts.Acked = -n
		for i := range f.Gauges {
			f.Gauges[i].Value = float64(n) + 0.5
		}
		if n%2 == 0 {
			f.Warmup, f.Marks, f.Gauges, f.Phase = nil, nil, nil, "drain"
			f.Response = Times{NoTime, NoTime, NoTime, NoTime, 0}
		}
		want = append(want, f)
		assert.OK(t, s.Add(&f))
	}
	assert.Same(t, s.After(0), want)
	assert.Same(t, s.After(70), want[70:])
	got := s.After(3 * perBlock)
	assert.True(t, len(got) == 0, "after the last: %d frames, want none", len(got))
}

func TestSeriesRefuses(t *testing.T) {
	var s Series
	ok := Frame{Number: 10, Span: 1}
	assert.OK(t, s.Add(&ok))
	for _, f := range []Frame{{Number: 10, Span: 1}, {Number: 9, Span: 1}, {Number: 11}, {Number: 11, Span: 7}, {Number: 11, Span: -1}, {Number: 15, Span: 10}, {Number: 20000, Span: 10000}, {Number: -10, Span: 10}, {Number: math.MinInt64, Span: 1}} {
		err := s.Add(&f)
		assert.True(t, errors.Is(err, errFrame), "number %d, span %d: got %v, want an error", f.Number, f.Span, err)
	}
}

// A slowReader takes nothing until it is released.
type slowReader struct {
	release chan struct{}
	got     bytes.Buffer
}

func (w *slowReader) Write(b []byte) (int, error) {
	<-w.release
	return w.got.Write(b)
}

// TestSlowReader: a reader that takes nothing for hours delays no other, and then gets frames with the same sums.
func TestSlowReader(t *testing.T) {
	testkit.Need(t, "some seconds")
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := &slowReader{release: make(chan struct{})}
		w := NewFrameWriter(slow)
		x := newExample(time.Second, 20*time.Second)
		r := NewRecorder("abc", Run{}, w.Write)
		const n = 12345
		for range n {
			r.Show(x.next())
		}
		r.End(x.done())
		synctest.Wait()
		w.mu.Lock()
		assert.True(t, len(w.queue) <= mostQueued, "%d events wait, want %d at most", len(w.queue), mostQueued)
		w.mu.Unlock()
		close(slow.release)
		assert.OK(t, w.Close())
		var s Series
		var done *Done
		assert.OK(t, ReadFrames(&slow.got, func(e Event) error {
			if done = e.Done; e.Frame != nil {
				return s.Add(e.Frame)
			}
			return nil
		}))
		got, warm := sum(s.After(0))
		want := x.done()
		if got != want.Totals || warm != *want.Warmup || done == nil || done.Totals != want.Totals {
			t.Errorf("got %+v and %+v, want %+v and %+v", got, warm, want.Totals, *want.Warmup)
		}
	})
}

// TestStuckReader: the end does not wait for a reader forever, nor for one that has gone.
func TestStuckReader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := &slowReader{release: make(chan struct{})}
		w := NewFrameWriter(slow)
		w.Write(Event{ID: "a", Run: &Run{}})
		began := time.Now()
		if err := w.Close(); !errors.Is(err, errSlow) || time.Since(began) != pipeCloseTimeout {
			t.Errorf("got %v after %v, want %v after %v", err, time.Since(began), errSlow, pipeCloseTimeout)
		}
		close(slow.release)
		r, gone := io.Pipe()
		r.Close()
		w = NewFrameWriter(gone)
		w.Write(Event{ID: "a", Run: &Run{}})
		synctest.Wait()
		w.Write(Event{ID: "a", Done: &Done{}})
		err := w.Close()
		assert.True(t, errors.Is(err, io.ErrClosedPipe), "got %v, want %v", err, io.ErrClosedPipe)
	})
}

func TestRead(t *testing.T) {
	var ids []string
	take := func(e Event) error { ids = append(ids, e.ID); return nil }
	err := ReadFrames(strings.NewReader("{\"id\":\"a\",\"run\":{}}\n{\"id\":\"b\",\"other\":1}\n"), take)
	assert.True(t, err == nil && strings.Join(ids, "") == "ab", "got %v and %v, want a and b", ids, err)
	assert.ErrorHas(t, ReadFrames(strings.NewReader("{}\n{\"frame\":[]}\n"), take), "line 2")
	assert.True(t, ReadFrames(strings.NewReader(strings.Repeat("x", longestLine+1)), take) != nil, "a line that is too long was accepted")
	stop := errors.New("stop")
	err = ReadFrames(strings.NewReader("{}\n"), func(Event) error { return stop })
	assert.True(t, errors.Is(err, stop), "got %v, want %v", err, stop)
}

// FuzzRead: whatever another process writes, a series keeps what it took.
func FuzzRead(f *testing.F) {
	one := largest()
	line, _ := json.Marshal(Event{ID: "a", Frame: &one})
	f.Add(line)
	f.Add([]byte(`{"frame":{"n":10,"span":10,"from":-1e300,"to":null,"gauges":[{"value":1e300}],"marks":[{"at":1}]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var s Series
		var took []int64
		_ = ReadFrames(bytes.NewReader(text), func(e Event) error {
			if e.Frame != nil && s.Add(e.Frame) == nil && e.Frame.Span == 1 {
				took = append(took, e.Frame.Number)
			}
			return nil
		})
		for _, n := range took {
			assert.Must(t, len(s.After(n-1)) > 0, "frame %d is missing", n)
		}
	})
}

// TestMissingFrames: where frames are missing, the merged one takes the place of the others that it covers.
func TestMissingFrames(t *testing.T) {
	var s Series
	for _, f := range [][2]int64{{1, 1}, {2, 1}, {7, 1}, {10, 10}, {11, 1}, {19, 1}, {20, 1}, {20, 10}, {21, 1}} {
		assert.OK(t, s.Add(&Frame{Number: f[0], Span: f[1]}))
	}
	for after, want := range map[int64]string{
		0: "10/10 20/10 21/1", 7: "10/10 20/10 21/1", 10: "20/10 21/1", 18: "19/1 20/1 21/1", 20: "21/1", 21: "",
	} {
		var got []string
		for _, f := range s.After(after) {
			got = append(got, fmt.Sprintf("%d/%d", f.Number, f.Span))
		}
		assert.Equal(t, strings.Join(got, " "), want, "after %d", after)
	}
}

// TestPlannedMarks: each remark on a moment to come is in the frame of its moment, and only a freeze
// that is longer than those before it is a remark.
func TestPlannedMarks(t *testing.T) {
	var got []string
	r := NewRecorder("r", Run{}, func(e Event) {
		if e.Frame != nil && e.Frame.Span == 1 {
			for _, m := range e.Frame.Marks {
				got = append(got, fmt.Sprintf("%d: %v %s", e.Frame.Number, time.Duration(m.At), m.Text))
			}
		}
	})
	r.Plan(Mark{Text: "trial 1"}, Mark{At: Seconds(1500 * time.Millisecond), Text: "2k/s"})
	r.Plan(Mark{At: Seconds(time.Minute), Text: "never"})
	for i, frozen := range []time.Duration{20 * time.Millisecond, 0, 15 * time.Millisecond, 1200 * time.Millisecond} {
		at := time.Duration(i) * time.Second
		s := load.Snapshot{Phase: measure.Measurement, Left: load.Never, Frozen: frozen, Interval: measure.Interval{Start: at, End: at + time.Second}}
		if frozen > 0 {
			s.Freezes = 1
		}
		r.Show(s)
	}
	want := []string{"1: 0s trial 1", "1: 0s froze for 20 ms, the longest so far", "2: 1.5s 2k/s", "4: 3s froze for 1.2 s, the longest so far"}
	assert.True(t, slices.Equal(got, want), "got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
}
