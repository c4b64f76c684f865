package picture

import (
	"math"
	"math/rand/v2"
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

// Reports lack what was not measured, and old ones lack histograms: no figure is empty and none causes a panic.
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

// Where two phases meet, two rows overlap, and the last interval of a run is usually short: neither distorts a rate.
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
	middle := (line[0] + line[1]) / 2
	assert.True(t, middle >= low && middle <= high, "the slope goes through %v, but the drawn values are %v to %v", middle, low, high)
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
	assert.True(t, !s.AtLeast[4] && strings.Contains(f.Note, "lower bounds"), "a bound before it: %v; the note: %s", s.AtLeast[4], f.Note)
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

// contrast is WCAG's contrast ratio of two colors.
func contrast(a, b string) float64 {
	l := func(hex string) float64 {
		c := rgb(hex)
		return 0.2126*linear(c[0]) + 0.7152*linear(c[1]) + 0.0722*linear(c[2])
	}
	x, y := l(a), l(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// blindness simulates color vision that lacks a kind of cones (Machado, Oliveira
// and Fernandes, 2009, severity 1), on linear colors.
var blindness = map[string][9]float64{
	"full vision":   {1, 0, 0, 0, 1, 0, 0, 0, 1},
	"without red":   {0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998},
	"without green": {0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.011820, 0.042940, 0.968881},
	"without blue":  {1.255528, -0.076749, -0.178779, -0.078411, 0.930809, 0.147602, 0.004733, 0.691367, 0.303900},
	"without color": {0.2126, 0.7152, 0.0722, 0.2126, 0.7152, 0.0722, 0.2126, 0.7152, 0.0722},
}

func seenBy(m [9]float64, hex string) [3]float64 {
	c := rgb(hex)
	in := [3]float64{linear(c[0]), linear(c[1]), linear(c[2])}
	var out [3]float64
	for i := range out {
		v := m[3*i]*in[0] + m[3*i+1]*in[1] + m[3*i+2]*in[2]
		out[i] = curved(min(max(v, 0), 1))
	}
	return lab(out)
}

func distance(a, b [3]float64) float64 {
	return math.Sqrt((a[0]-b[0])*(a[0]-b[0]) + (a[1]-b[1])*(a[1]-b[1]) + (a[2]-b[2])*(a[2]-b[2]))
}

func TestContrast(t *testing.T) {
	for name, c := range map[string]Colors{"light": light, "dark": dark} {
		for _, x := range []struct {
			what, color string
			least       float64
		}{{"ink", c.Ink, 7}, {"muted", c.Muted, 4.5}, {"axis", c.Axis, 2.9}, {"good", c.Good, 5}, {"bad", c.Bad, 5}, {"caution", c.Caution, 5}, {"live", c.Live, 5}} {
			got := contrast(x.color, c.Background)
			assert.True(t, got >= x.least, "%s %s: got a contrast of %.2f, want %.1f", name, x.what, got, x.least)
		}
		for i, tone := range c.Tones {
			for _, back := range []string{c.Background, c.Band, c.Stall, c.Freeze} {
				got := contrast(tone, back)
				assert.True(t, got >= 3, "%s tone %d on %s: got a contrast of %.2f, want 3", name, i, back, got)
			}
		}
	}
}

// The first five colors, which most pictures use, are pairwise distinguishable with
// each kind of color vision. Dashes distinguish lines without color.
func TestColorsForTheColorBlind(t *testing.T) {
	for name, c := range map[string]Colors{"light": light, "dark": dark} {
		for who, m := range blindness {
			if who == "without color" {
				continue
			}
			for i := range Red + 1 {
				for k := range i {
					got := distance(seenBy(m, c.Tones[i]), seenBy(m, c.Tones[k]))
					assert.True(t, got >= 0.06, "%s, %s: tones %d and %d are %.3f apart, want 0.06", name, who, i, k, got)
				}
			}
		}
	}
	seen := map[string]bool{}
	for d := range dashes {
		if a := DashArray(d); seen[a] {
			t.Errorf("two dashes are %q", a)
		} else {
			seen[a] = true
		}
	}
}

// Higher levels are darker on white and lighter on black, step by step, even without color, and the lowest level is visible.
func TestHeatIsOrdered(t *testing.T) {
	for name, c := range map[string]Colors{"light": light, "dark": dark} {
		for who, m := range blindness {
			last := math.NaN()
			for i, h := range c.Heat {
				l := seenBy(m, h)[0]
				assert.True(t, !(i > 0 && math.Abs(l-last) < 0.02 || i > 0 && (l < last) != (name == "light")),
					"%s, %s: level %d has a lightness of %.3f after %.3f", name, who, i, l, last)
				last = l
			}
		}
		got := contrast(c.Heat[0], c.Background)
		assert.True(t, got >= 1.35, "%s: the lowest level has a contrast of %.2f, want 1.35", name, got)
	}
	r := ramp("#000000", "#ffffff")
	assert.True(t, r[0] == "#000000" && r[heatLevels-1] == "#ffffff", "ends of a ramp: got %v", r)
}

// measured is a report of a run of this many seconds, with the data of all figures.
func measured(id string, seconds int, seed uint64) *report.Document {
	r := rand.New(rand.NewPCG(seed, 1))
	d := &report.Document{
		Schema: report.Schema, ID: id, Target: "kafka://127.0.0.1:9092/t", Op: "roundtrip", Mode: load.OpenLoop,
		Settings: []report.Setting{{Name: "rate", Value: "1k/s"}, {Name: "seed", Value: "1", Default: true}},
		Totals:   report.Totals{RateOf: report.RateAcked, InFlightMean: 10},
		Steady:   measure.Steady{Known: true, InFlightSlope: 0.5},
		Phases:   []report.Phase{{Name: "warm-up", StartS: 0, EndS: 2}, {Name: "measurement", StartS: 2, EndS: float64(seconds)}},
		Classes:  map[string]uint64{"timeout": 12, "refused": 3},
		Failures: []measure.Failure{{Class: "timeout", Text: "no answer", Events: 12, Batches: 1}},
	}
	overall := map[string]*measure.Histogram{}
	rss, pause := report.Gauge{From: "system", Name: "RSS", Unit: "bytes"}, report.Gauge{From: "system", Name: "GC pause time", Unit: "ms"}
	queue := report.Gauge{From: "server", Name: "queue", Unit: "events"}
	for i := range seconds {
		iv := report.Interval{
			Phase: "measurement", StartS: float64(i), EndS: float64(i + 1), LagEvents: -1, InFlight: uint64(10 + i%7),
			Counts:     measure.Counts{Offered: 1040, Sent: 1000, Acked: 990, Failed: uint64(i % 3), Batches: 100, Bytes: 100_000, AckedBytes: 99_000, WireBytes: 101_000},
			Statuses:   measure.Statuses{{Code: 202, Batches: 99, Events: 990}, {Code: 503, Batches: 1, Events: 10}},
			Classes:    measure.Classes{{Class: "refused", Events: uint64(i % 3), Batches: 1}},
			Generator:  report.Usage{CPUS: 0.1, RSSBytes: 40 << 20, GCPauseMaxUS: 80},
			Histograms: map[string]string{},
		}
		if i < 2 {
			iv.Phase = "warm-up"
		}
		for _, name := range []string{"response", "service", "end_to_end", "send_delay"} {
			h := measure.NewHistogram()
			for range 50 {
				h.Record(time.Duration(50e3 * (1 + r.ExpFloat64()*float64(1+i%5)*20)))
			}
			iv.Histograms[name] = h.EncodeHDR()
			s := measure.Summarize(h, nil, nil)
			switch name {
			case "response":
				iv.Response = s
			case "service":
				iv.Service = s
			case "end_to_end":
				iv.EndToEnd = s
			default:
				iv.SendDelay = s
			}
			if iv.Phase == "measurement" {
				if overall[name] == nil {
					overall[name] = measure.NewHistogram()
				}
				overall[name].Merge(h)
			}
		}
		rss.Points = append(rss.Points, report.Point{AtS: float64(i) + 0.99, Value: float64(100<<20 + i<<10)})
		pause.Points = append(pause.Points, report.Point{AtS: float64(i) + 0.99, Value: float64(i % 4)})
		queue.Points = append(queue.Points, report.Point{AtS: float64(i) + 0.98, Value: float64(i % 9)})
		d.Intervals = append(d.Intervals, iv)
	}
	d.Response, d.Service = measure.Summarize(overall["response"], nil, nil), measure.Summarize(overall["service"], nil, nil)
	d.EndToEnd, d.SendDelay = measure.Summarize(overall["end_to_end"], nil, nil), measure.Summarize(overall["send_delay"], nil, nil)
	d.Gauges = []report.Gauge{rss, pause, queue}
	return d
}
