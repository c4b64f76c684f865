package explain

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"carronade/internal/layout"
	"carronade/internal/report"
	"carronade/internal/verdict/fault"
	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// document returns the report of a minute at 1,000 events a second, with a warm-up of five.
func document(t *testing.T) *report.Document {
	t.Helper()
	d := &report.Document{
		Schema: report.Schema, ID: "abcd1234", Target: "kafka://127.0.0.1:9092/t", Op: "produce", Mode: load.OpenLoop,
		Phases: []report.Phase{{Name: measure.Measurement}},
	}
	d.Service = summary(2 * time.Millisecond)
	for i := range 65 {
		iv := report.Interval{Phase: measure.Measurement, StartS: float64(i), EndS: float64(i + 1), EventsPerS: 1000 + float64(i%5), LagEvents: -1}
		iv.Offered = 1000
		if i < 5 {
			iv.Phase = measure.WarmUp
		}
		iv.Response = summary(5*time.Millisecond + time.Duration(i%4)*50*time.Microsecond)
		iv.Service = iv.Response
		d.Intervals = append(d.Intervals, iv)
	}
	return d
}

func summary(all time.Duration) *measure.Summary {
	h := measure.NewHistogram()
	h.RecordN(all, 100)
	return measure.Summarize(h, nil, nil)
}

// series adds a gauge with a value an interval.
func series(d *report.Document, from, name, unit string, value func(i int) float64) *report.Gauge {
	g := report.Gauge{From: from, Name: name, Unit: unit}
	for i := range d.Intervals {
		g.Points = append(g.Points, report.Point{AtS: float64(i+1) + 0.01, Value: value(i)})
	}
	d.Gauges = append(d.Gauges, g)
	return &d.Gauges[len(d.Gauges)-1]
}

// stalls adds stalls with pauses of a collector, and changes the rate of their intervals.
func addStalls(d *report.Document) {
	for _, s := range []int{9, 17, 28, 40, 51, 59} {
		at := float64(s) + 0.3
		d.Stall.Count++
		d.Stall.Spans = append(d.Stall.Spans, report.Span{AtS: at, LengthS: 0.4})
		d.Moments = append(d.Moments, report.Moment{From: "system", Name: "GC pause", AtS: at + 0.003, LengthS: 0.4})
		d.Intervals[s].EventsPerS = 600
		d.Intervals[s].Classes = measure.Classes{{Class: "timeout", Events: 3, Batches: 1}}
	}
}

func text(t *testing.T, x *Explanation) string {
	t.Helper()
	var b bytes.Buffer
	assert.OK(t, x.Text(&b, layout.Style{}))
	for line := range strings.Lines(b.String()) {
		assert.True(t, layout.Width(strings.TrimSuffix(line, "\n")) <= layout.Columns, "wider than %d columns: %q", layout.Columns, line)
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// TestExplainReading: the stalls of a run that only reads are explained by the connections that it lost.
func TestExplainReading(t *testing.T) {
	d := document(t)
	d.Op, d.Mode, d.Service = "consume", load.Consuming, nil
	for i := range d.Intervals {
		iv := &d.Intervals[i]
		iv.Response, iv.Service, iv.Offered, iv.Consumed = nil, nil, 0, 1000
	}
	addStalls(d)
	for i := range d.Moments {
		m := &d.Moments[i]
		m.From, m.Name, m.LengthS = "client", "connection lost", 0
	}
	x := Explain(d)
	assert.Must(t, len(x.Groups) == 1 && x.Groups[0].Unexplained == 0, "got %+v, want one group, all of it explained", x)
	got, want := text(t, x), "all 6 began within 20 ms of a lost connection"
	assert.True(t, strings.Contains(got, want), "got %s, want %q in it", got, want)
}

func TestExplain(t *testing.T) {
	d := document(t)
	addStalls(d)
	series(d, "system", "CPU", "cores", func(i int) float64 { return float64(i % 3) })
	series(d, "system", "GC pause time", "ms", func(int) float64 { return 0 })
	series(d, "system", "acked by its output", "", func(i int) float64 { return d.Intervals[i].EventsPerS })
	series(d, "system", "queue", "", func(i int) float64 { return float64(i * i % 7) })
	x := Explain(d)
	assert.Must(t, len(x.Groups) == 1 && x.Groups[0].Unexplained == 0 && x.StartS == 5 && x.EndS == 65,
		"got %+v, want one group, all of it explained", x)
	why := map[string]string{}
	for _, w := range x.Watched {
		why[w.From+" "+w.Name] = w.NotTried
	}
	for name, want := range map[string]string{
		"system CPU": followsLoad, "system acked by its output": followsLoad, "system GC pause time": "the pauses themselves were compared",
		"system queue": "", "system GC pause": "", "client failures: timeout": "",
	} {
		got, ok := why[name]
		assert.True(t, ok && got == want, "%s: got %q, %v, want %q", name, got, ok, want)
	}
	got := text(t, x)
	for _, want := range []string{
		"produce kafka://127.0.0.1:9092/t, report abcd1234: seconds 5 to 65",
		"6 stalls, the largest: 400 ms at",
		"coincided all 6 began within 20 ms of a GC pause (the system); by chance in 0.1%",
		"came with all 6 began at a peak of failures: timeout (the clients);",
		"the system's processes", // they were not watched
	} {
		if want == "the system's processes" {
			assert.True(t, !strings.Contains(got, want), "%q, although CPU was read:\n%s", want, got)
			continue
		}
		assert.True(t, strings.Contains(got, want), "no %q in:\n%s", want, got)
	}
	assert.True(t, !strings.Contains(got, "unexplained"), "all are explained:\n%s", got)
	b, err := json.Marshal(x)
	assert.True(t, err == nil && strings.Contains(string(b), `"schema":"carronade.explain/1"`) &&
		!strings.Contains(string(b), "null"), "%v: %s", err, b)
}

func TestNothingExplainsIt(t *testing.T) {
	d := document(t)
	addStalls(d)
	d.Moments = nil
	for i := range d.Intervals {
		d.Intervals[i].Classes = nil
	}
	got := text(t, Explain(d))
	assert.Has(t, got,
		"unexplained nothing that was watched explains the 6: 400 ms at 9.3 s; 400 ms at 17.3 s; 400 ms at 28.3 s; and 3 more",
		"nothing that could be compared", "the pauses of a JVM's collector: --system-gc-log FILE")
}

func TestNothingToExplain(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(d *report.Document)
		want   string
	}{
		{"a quiet run", func(*report.Document) {}, "the run had no stall, no spike of p99 and no step in throughput"},
		{"no series", func(d *report.Document) { d.Intervals = nil }, "the report has no series"},
		{"only a warm-up", func(d *report.Document) { d.Intervals = d.Intervals[:5] }, "no interval of a measurement"},
		{"no percentiles", func(d *report.Document) {
			for i := range d.Intervals {
				d.Intervals[i].Response, d.Intervals[i].Service = nil, nil
			}
		}, "the run had no stall and no step in throughput; its intervals have no p99"},
		{"short", func(d *report.Document) { d.Intervals = d.Intervals[:9] }, "too short to show spikes or steps (4 intervals"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := document(t)
			c.change(d)
			got := text(t, Explain(d))
			assert.True(t, strings.Contains(got, c.want), "no %q in:\n%s", c.want, got)
		})
	}
}

func TestIncidentTexts(t *testing.T) {
	spike, usual, before, after := 61_400.0, 4300.0, 50_000.0, 32_000.0
	for _, c := range []struct {
		kind string
		in   Incident
		want string
	}{
		{"stall", Incident{AtS: 9.304, LengthS: 1.2}, "1.2 s at 9.3 s"},
		{"spike", Incident{AtS: 17, P99US: &spike, UsualUS: &usual}, "61.4 ms, usually 4.3 ms, at 17 s"},
		{"step", Incident{AtS: 40, BeforePerS: &before, AfterPerS: &after}, "50 k/s to 32 k/s at 40 s"},
	} {
		assert.Equal(t, c.in.text(c.kind), c.want)
	}
	f := Finding{From: "host", Name: "I/O pressure", Change: "peak", Hits: 1, Of: 1, WithinS: 1, Corrected: 0.012}
	assert.Equal(t, f.sentence("spike"), "it came within 1 s of a peak of I/O pressure (this machine); by chance in 1.2%")
}

// TestOneStep: a step and the cause that came with it, in a run that is long enough for a series of
// means, and too short for one of readings among others that change.
func TestOneStep(t *testing.T) {
	steps := func(at float64) func(i int) float64 { // a second before it, and a part of that in which it comes
		return func(i int) float64 { return float64(i%2) + 40*min(1, max(0, float64(i+1)-at)) }
	}
	run := func() *report.Document {
		d := document(t)
		for i := range d.Intervals {
			d.Intervals[i].EventsPerS *= 1 - 0.01*steps(40.4)(i)
		}
		return d
	}
	d := run()
	series(d, "host", "steal", "%", steps(40.4))
	if got, want := text(t, Explain(d)), "coincided it came within"; !strings.Contains(got, want) || !strings.Contains(got, "of a step of steal (this machine)") {
		t.Errorf("no %q in:\n%s", want, got)
	}
	d = run()
	for i, at := range []float64{41, 15, 22, 30, 50} {
		series(d, "system", fmt.Sprintf("queue %d", i), "", steps(at))
	}
	x := Explain(d)
	g := &x.Groups[0]
	assert.True(t, len(g.Findings) == 0 && g.NeededS >= 70 && math.Mod(g.NeededS, 5) == 0,
		"got %+v, want nothing, and how long a run must be", g)
	got, want := text(t, x), "too short a series of readings that changes once with it may be chance in a run of 1m00s; in one of "
	assert.True(t, strings.Contains(got, want), "no %q in:\n%s", want, got)
}

// TestMarks: a fault explains what happens until it is healed.
func TestMarks(t *testing.T) {
	d := document(t)
	d.Faults = &report.Faults{Marks: []fault.Mark{
		{Kind: fault.MarkFault, Name: "disk", AtS: 20.3},
		{Kind: fault.MarkHeal, Name: "disk", AtS: 22},
		{Kind: "note", Name: "nothing", AtS: 50},
	}}
	d.Stall.Count = 1
	d.Stall.Spans = []report.Span{{AtS: 20.305, LengthS: 1.6}}
	got, want := text(t, Explain(d)), "coincided it began within 20 ms of fault disk (a mark); by chance in"
	assert.True(t, strings.Contains(got, want), "no %q in:\n%s", want, got)
}

// TestCounter: a counter is compared by how fast it rises, at the times in between.
func TestCounter(t *testing.T) {
	g := report.Gauge{From: "system", Name: "x", Total: true, Points: []report.Point{{AtS: 1, Value: 10}, {AtS: 2, Value: 30}, {AtS: 5, Value: 30}, {AtS: 6, Value: 5}}}
	c := gaugeCause(&g)
	var got []string
	for _, x := range c.Cells {
		got = append(got, fmt.Sprintf("%v-%v %g", x.Start, x.End, x.Value))
	}
	want := []string{"1s-2s 20", "2.5s-5s 0", "5s-6s 0"}
	assert.True(t, slices.Equal(got, want) && !c.Falls, "got %v, falls %v, want %v", got, c.Falls, want)
}

func TestCorrelation(t *testing.T) {
	x := []float64{1, 2, 3, 4}
	for _, c := range []struct {
		y    []float64
		want float64
	}{{x, 1}, {[]float64{4, 3, 2, 1}, -1}, {[]float64{2, 2, 2, 2}, 0}} {
		got := correlation(x, c.y)
		assert.True(t, math.Abs(got-c.want) <= 1e-12, "%v: got %g, want %g", c.y, got, c.want)
	}
}

func TestIndexing(t *testing.T) {
	share := func(x float64) *float64 { return &x }
	counter := func(d *report.Document, name string, before, after float64) {
		d.Gauges = append(d.Gauges, report.Gauge{From: "server", Name: name, Total: true, Before: &before, After: &after})
	}
	for _, c := range []struct {
		name         string
		share        float64
		change       func(d *report.Document)
		verdict, say string
	}{
		{"enough", 0.95, func(*report.Document) {}, "", ""},
		{"rejections", 0.6, func(d *report.Document) { counter(d, "output failed", 100, 480) }, Rejections, "the store rejected 380 of the server's events, of 400 documents that are missing"},
		{"a queue", 0.6, func(d *report.Document) { d.Indexed.Queued = share(350) }, Queue, "350 events were still queued"},
		{"a full queue", 0.6, func(d *report.Document) { counter(d, "queue was full", 0, 400) }, Queue, "queue was full for 400"},
		{"the link", 0.6, func(d *report.Document) {
			counter(d, "output failed", 0, 2)
			counter(d, "output acked", 0, 600)
			series(d, "server", "output active", "events", func(int) float64 { return 50 })
		}, Link, "acknowledged 600 of 1,000 events, rejected 2"},
		{"elsewhere", 0.6, func(d *report.Document) { counter(d, "output acked", 0, 1000) }, CannotTell, "in indices that traces-* does not match"},
		{"no metrics", 0.6, func(*report.Document) {}, CannotTell, "do not have rejections, acknowledgements, events queued"},
		{"nothing shows", 0.6, func(d *report.Document) {
			counter(d, "output failed", 0, 2)
			counter(d, "output acked", 0, 600)
			d.Indexed.Queued = share(0)
		}, CannotTell, "neither rejections (2) nor a queue (0)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := document(t)
			d.Indexed = &report.Indexed{Share: share(c.share), Expected: 1000, Docs: int64(1000 * c.share), Pattern: "traces-*"}
			c.change(d)
			x := Explain(d)
			if c.verdict == "" {
				assert.True(t, x.Indexing == nil, "got %+v, want nothing", x.Indexing)
				return
			}
			assert.Must(t, x.Indexing != nil && x.Indexing.Verdict == c.verdict && strings.Contains(x.Indexing.Text, c.say),
				"got %+v, want %s: %s", x.Indexing, c.verdict, c.say)
			got := text(t, x)
			assert.True(t, strings.Contains(got, c.verdict), "the text does not say so:\n%s", got)
		})
	}
}

// TestStepsMeet: an interval in which two steps meet has a row for each, and is one interval.
func TestStepsMeet(t *testing.T) {
	d := document(t)
	half := d.Intervals[30]
	half.EventsPerS, half.Offered, half.Acked, half.Retries = 400, 400, 400, 2
	half.Classes = measure.Classes{{Class: "timeout", Events: 3, Batches: 1}}
	rest := half
	rest.EventsPerS, rest.Offered, rest.Acked, rest.Response = 600, 600, 600, summary(7*time.Millisecond)
	d.Intervals = slices.Replace(d.Intervals, 30, 31, half, rest)
	r, _ := inputOf(d)
	assert.Must(t, len(r.Intervals) == 60, "%d intervals, want 60", len(r.Intervals))
	got := r.Intervals[25]
	assert.True(t, got.Rate == 1000 && got.Due == 1000 && got.P99 >= 6*time.Millisecond, "got %+v", got)
	for _, c := range r.Causes {
		if want := map[string]float64{"retries": 4, "failures: timeout": 6}[c.Name]; want > 0 && (len(c.Cells) != 60 || c.Cells[25].Value != want) {
			t.Errorf("%s: %d values, %+v", c.Name, len(c.Cells), c.Cells[25])
		}
	}
}

// TestManyStalls: a report has the longest stalls, and says how many there were.
func TestManyStalls(t *testing.T) {
	d := document(t)
	addStalls(d)
	d.Stall.Count = 5000
	x := Explain(d)
	got := x.Groups[0]
	assert.True(t, got.Left == 4994 && len(got.Incidents) == 6, "%d stalls, and %d more", len(got.Incidents), got.Left)
	if got := text(t, x); !strings.Contains(got, "5,000 stalls, the largest") || !strings.Contains(got, "(the 6 largest were compared)") {
		t.Errorf("got\n%s", got)
	}
}
