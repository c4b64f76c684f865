package picture

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"carronade/internal/report"
	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

func names(figures []Figure) (out []string) {
	for _, f := range figures {
		out = append(out, f.Name)
	}
	return out
}

func lines(f *Figure) (out []string) {
	for _, s := range f.Series {
		out = append(out, s.Name)
	}
	return out
}

func figure(t *testing.T, figures []Figure, name string) *Figure {
	t.Helper()
	f, ok := ByName(figures, name)
	if !ok {
		t.Fatalf("no figure %s among %v", name, names(figures))
	}
	return f
}

func TestFiguresOfAReport(t *testing.T) {
	got := names(Of(measured("a", 30, 1)))
	want := []string{
		"throughput", "response", "distribution", "response-map", "service", "end-to-end", "outstanding", "send-delay", "answers", "failures", "classes", "bytes",
		"memory", "cpu", "collector", "figures-server-events", "percentiles",
		"service-map", "end-to-end-map",
	}
	assert.True(t, slices.Equal(got, want), "figures:\n got %v\nwant %v", got, want)
}

func TestLines(t *testing.T) {
	one, two := measured("aaaa", 30, 1), measured("bbbb", 40, 2)
	two.Settings[0].Value = "2k/s"
	single, several := Of(one), Of(one, two)
	for _, c := range []struct {
		name, figure string
		of           []Figure
		want         []string
	}{
		{"counts of one", "throughput", single, []string{"offered", "sent", "acked", "failed"}},
		{"percentiles of one", "response", single, []string{"p50", "p90", "p99", "p99.9", "max"}},
		{"the slope and the events in flight", "outstanding", single, []string{"in flight", "slope +0.5 events a second"}},
		{"status codes", "answers", single, []string{"202", "503"}},
		{"system and generator on one axis", "memory", single, []string{"system", "generator"}},
		{"curves of one", "percentiles", single, []string{"response", "service", "end to end", "send delay"}},
		{"several, distinguished by a setting", "percentiles", several, []string{"aaaa (rate 1k/s)", "bbbb (rate 2k/s)"}},
		{"several over time", "response", several, []string{
			"aaaa (rate 1k/s): p50", "aaaa (rate 1k/s): p99", "bbbb (rate 2k/s): p50", "bbbb (rate 2k/s): p99",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := lines(figure(t, c.of, c.figure))
			assert.True(t, slices.Equal(got, c.want), "%s:\n got %q\nwant %q", c.figure, got, c.want)
		})
	}
	maps := slices.DeleteFunc(names(several), func(n string) bool { return !strings.HasPrefix(n, "end-to-end-map") })
	want := []string{"end-to-end-map", "end-to-end-map-2"}
	assert.True(t, slices.Equal(maps, want), "maps of several: got %v, want %v", maps, want)
}

// Reports lack what was not measured, and old ones lack histograms: no figure is
// empty and none causes a panic.
func TestSparseReports(t *testing.T) {
	full := measured("a", 10, 1)
	for _, c := range []struct {
		name string
		d    *report.Document
		want []string
	}{
		{"nothing at all", &report.Document{}, nil},
		{"one interval, nothing counted", &report.Document{Intervals: []report.Interval{{EndS: 1}}}, []string{"throughput", "outstanding"}},
		{"times that are not numbers", &report.Document{Intervals: []report.Interval{{StartS: math.NaN(), EndS: 1}, {StartS: 1, EndS: math.Inf(1)}}}, nil},
		{"a histogram that cannot be decoded", &report.Document{
			Mode: load.Consuming, Intervals: []report.Interval{{EndS: 1, LagEvents: 5, Histograms: map[string]string{"response": "xx"}}},
		}, []string{"throughput", "behind"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := names(Of(c.d))
			assert.True(t, slices.Equal(got, c.want), "figures: got %v, want %v", got, c.want)
			// Also next to a complete report.
			for _, f := range Of(full, c.d) {
				var b strings.Builder
				assert.OK(t, f.SVG(&b, Auto))
				f.Table(40)
			}
		})
	}
}

// Where two phases meet, two rows overlap, and the last interval of a run is
// usually short: neither distorts a rate.
func TestRatesOfShortIntervals(t *testing.T) {
	row := func(from, to float64, acked uint64) report.Interval {
		return report.Interval{StartS: from, EndS: to, Counts: measure.Counts{Acked: acked}}
	}
	d := &report.Document{Totals: report.Totals{RateOf: report.RateAcked}, Intervals: []report.Interval{
		row(0, 1, 1000), row(1, 2, 960), row(1, 2, 40), row(2, 3, 990), row(3, 3.002, 10),
	}}
	f := figure(t, Of(d), "throughput")
	i := slices.IndexFunc(f.Series, func(s Series) bool { return s.Name == "acked" })
	got := f.Series[i].Y
	want := []float64{1000, 1000, 1000 / 1.002}
	assert.Must(t, len(got) == len(want), "rates: got %v, want %v", got, want)
	for k := range want {
		assert.True(t, math.Abs(got[k]-want[k]) <= 0.01, "rates: got %v, want %v", got, want)
	}
}

// The slope lies within the drawn values, regardless of the events in flight between the ends of intervals.
func TestSlopeLiesWithinDrawnValues(t *testing.T) {
	d := measured("a", 30, 1)
	d.Totals.InFlightMean = 500
	f := figure(t, Of(d), "outstanding")
	low, high := slices.Min(f.Series[0].Y), slices.Max(f.Series[0].Y)
	line := f.Series[1].Y
	if middle := (line[0] + line[1]) / 2; middle < low || middle > high {
		t.Errorf("the slope goes through %v, but the drawn values are %v to %v", middle, low, high)
	}
}

// TestOutage: in seconds without an answer the times rise; they are not a gap.
func TestOutage(t *testing.T) {
	d := measured("a", 12, 1)
	for i := range d.Intervals {
		iv := &d.Intervals[i]
		iv.Offered = iv.Acked + iv.Failed
		if i >= 5 && i < 10 {
			iv.Acked, iv.Failed, iv.Response = 0, 0, measure.Summarize(measure.NewHistogram(), nil, nil)
		}
	}
	answer, age := measure.NewHistogram(), measure.NewHistogram()
	answer.Record(time.Millisecond)
	age.Record(3 * time.Second)
	lost := measure.Summarize(answer, age, nil)
	f := figure(t, Of(d), "response")
	i := slices.IndexFunc(f.Series, func(s Series) bool { return s.Name == "p99" })
	s := f.Series[i]
	for k := 6; k < 10; k++ {
		if want := float64(k-5) * 1e6; s.Y[k] != want || !s.AtLeast[k] {
			t.Errorf("second %d: got %v us (at least: %v), want at least %v", k+1, s.Y[k], s.AtLeast[k], want)
		}
	}
	assert.True(t, !s.AtLeast[4] && strings.Contains(f.Note, "lower bounds"),
		"a bound before it: %v; the note: %s", s.AtLeast[4], f.Note)
	most, _ := percentileSeries([]row{{response: lost}}, 100, func(r *row) summary { return r.response }, false)
	assert.True(t, most.Y[0] == 3e6 && most.AtLeast[0], "the maximum with an event without an answer: %v", most)
}

// A system that answered half of the events is not drawn as fast, and one that answered none is drawn, too.
func TestUnanswered(t *testing.T) {
	d := measured("a", 12, 1)
	answered := uint64(0)
	for i := range d.Intervals {
		if d.Intervals[i].Phase == measure.Measurement {
			answered += d.Intervals[i].Response.Count
		}
	}
	ages := measure.NewHistogram()
	ages.RecordSpan(time.Second, 3*time.Second, answered)
	last := &d.Intervals[len(d.Intervals)-1]
	last.Histograms["censored"] = ages.EncodeHDR()
	last.Response = measure.Summarize(last.Histogram("response"), ages, nil)
	f := figure(t, Of(d), "distribution")
	sum := 0.0
	for _, y := range f.Series[0].Y {
		sum += y
	}
	assert.True(t, f.Series[0].Name == "response" && math.Abs(sum-50) <= 0.1 && strings.Contains(f.Note, "in no bin"),
		"%s: the bars have %v%%, want half; the note: %s", f.Series[0].Name, sum, f.Note)
	for i := range d.Intervals {
		delete(d.Intervals[i].Histograms, "response")
	}
	curve := figure(t, Of(d), "percentiles")
	assert.Equal(t, curve.Series[0].Name, "response, at least", "nothing was answered: the first line")
}

// An interval without readings is a gap in the line.
func TestHoles(t *testing.T) {
	d := measured("a", 12, 1)
	g := &d.Gauges[0]
	g.Points = slices.Delete(g.Points, 4, 9)
	f := figure(t, Of(d), "memory")
	got := slices.IndexFunc(f.Series[0].Y, math.IsNaN)
	assert.True(t, got == 4, "the gap: got it at %d of %v, want it at 4", got, f.Series[0].Y)
	x, y := f.scales(rect{0, 0, 100, 100})
	assert.Equal(t, len(pathsOf(&f.Series[0], x, y)), 2, "parts of the line")
}
