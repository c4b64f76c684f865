package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"carronade/internal/host"
	"carronade/internal/layout"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// measured is an input of several seconds in which the measurement is the sum of its intervals, as it is in every run.
func measured(seconds int) Input {
	in := openLoop()
	in.ID, in.RunID, in.Note = "0a1b2c3d", "5c1f09b2", "before the change"
	in.Attachments = []Attachment{{Name: "server.properties", Text: "num.io.threads=8\n"}}
	in.Facts = map[string]any{"brokers": 3, "big": int64(1) << 60, "share": 0.1, "where": "<a&b>", "none": nil}
	r := in.Result
	r.Intervals, r.Measurement, r.Warmup, r.Drain = nil, measure.Tally{Name: "measurement", Start: time.Second}, measure.Tally{Name: "warm-up", End: time.Second}, measure.Tally{}
	for i := range seconds {
		iv := measure.Interval{Phase: "measurement", Start: time.Duration(i) * time.Second, End: time.Duration(i+1) * time.Second, LagEvents: -1}
		if i == 0 {
			iv.Phase = "warm-up"
		}
		iv.Counts = measure.Counts{Offered: 500, Sent: 500, Acked: 490, Failed: 10, Bytes: 50_000, AckedBytes: 49_000, Batches: 50}
		iv.Response = spread(time.Duration(i+2)*700*time.Microsecond, 0.8, 490)
		iv.Service = spread(time.Duration(i+1)*500*time.Microsecond, 0.3, 50)
		iv.SendDelay, iv.Batching, iv.Queueing = same(3*time.Microsecond, 50), same(time.Millisecond, 500), measure.NewHistogram()
		iv.Censored = same(2*time.Second, 1)
		iv.InFlight = uint64(i)
		iv.Each(func(_ string, h **measure.Histogram) { *h = (*h).Compact() })
		into := &r.Measurement
		if i == 0 {
			into = &r.Warmup
		}
		into.Counts.Add(iv.Counts)
		into.Merge(&iv.Set)
		into.End = iv.End
		r.Intervals = append(r.Intervals, iv)
	}
	r.Measurement.Arrived, r.Measurement.ArrivedBytes = r.Measurement.Acked, r.Measurement.AckedBytes
	return in
}

func sealed(t *testing.T, in Input) *Document {
	t.Helper()
	d := build(in)
	assert.OK(t, d.Seal())
	return d
}

func TestIDOf(t *testing.T) {
	for run, want := range map[uint64]string{0: "00000000", 35: "0000000z", 1<<64 - 1: strconv.FormatUint(1<<64-1, 36)[5:]} {
		assert.Equal(t, IDOf(run), want, "%d", run)
	}
}

// A sealed document stays valid through a file, indented or in one line, and through head and intervals.
func TestSeal(t *testing.T) {
	for name, input := range inputs {
		t.Run(name, func(t *testing.T) {
			d := sealed(t, input())
			assert.OK(t, d.Check())
			var file bytes.Buffer
			assert.OK(t, d.WriteJSON(&file))
			read, err := Read(bytes.NewReader(file.Bytes()))
			assert.OK(t, err)
			assert.OK(t, read.Check(), "as a file")
			// A document that was read can be written again unchanged.
			if err := read.Seal(); err != nil || read.Hash != d.Hash {
				t.Errorf("sealed again: got %s, want %s (%v)", read.Hash, d.Hash, err)
			}
			var line bytes.Buffer
			assert.OK(t, json.Compact(&line, file.Bytes()))
			read, err = Read(&line)
			assert.True(t, err == nil && read.Check() == nil, "in a line: %v", err)
			head := assert.Value(d.Head())(t)
			var rows [][]byte
			for i := range d.Intervals {
				e := assert.Value(d.Intervals[i].Encode())(t)
				rows = append(rows, e.JSON)
			}
			joined := assert.Value(Join(head, rows))(t)
			assert.OK(t, joined.Check(), "in parts")
			assert.Same(t, jsonOf(t, joined), jsonOf(t, d), "in parts")
		})
	}
}

func jsonOf(t *testing.T, d *Document) string {
	t.Helper()
	var b bytes.Buffer
	assert.OK(t, d.WriteJSON(&b))
	return b.String()
}

func TestTampered(t *testing.T) {
	whole := jsonOf(t, sealed(t, measured(4)))
	swap := func(old, with string) string {
		assert.Must(t, strings.Contains(whole, old), "no %q in the report", old)
		return strings.Replace(whole, old, with, 1)
	}
	rows := strings.Split(whole, "\"histograms\": {")
	for _, tt := range []struct{ name, text, want string }{
		{"untouched", whole, ""},
		{"a field of a later program", swap(`"version": `, `"later": {"x": 1}, "version": `), "was changed"},
		{"a number", swap(`"sent": 1500`, `"sent": 1600`), "was changed"},
		{"a word", swap("before the change", "after the change"), "was changed"},
		{"a number of an interval", swap(`"sent": 500`, `"sent": 501`), "was changed"},
		{"a histogram", swap(rows[1][40:60], rows[2][40:60]), ""},
		{"without a hash", swap(`"hash": `, `"hasch": `), "no hash"},
		{"another hash", swap(`"hash": "`, `"hash": "0`), "was changed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := assert.Value(Read(strings.NewReader(tt.text)))(t)
			err := d.Check()
			var tampered *Tampered
			switch {
			case tt.text == whole:
				assert.True(t, err == nil, "%v", err)
			case !errors.As(err, &tampered) || !strings.Contains(err.Error(), tt.want):
				t.Errorf("got %v, want a Tampered with %q", err, tt.want)
			}
		})
	}
}

// A later program of the same schema may add fields; this one checks the bytes that it read, not only the fields that it knows.
func TestFieldsOfLaterPrograms(t *testing.T) {
	d := sealed(t, measured(3))
	head := assert.Value(d.Head())(t)
	later := []byte(`{"later":{"x":1.50},` + string(head[1:]))
	var rows [][]byte
	for i := range d.Intervals {
		e := assert.Value(d.Intervals[i].Encode())(t)
		rows = append(rows, []byte(`{"later":2,`+string(e.JSON[1:])))
	}
	found := assert.Value(Join(later, rows))(t)
	found.Hash = found.computedHash // as the later program sealed it
	assert.OK(t, found.Check())
}

func TestReadFaults(t *testing.T) {
	whole := jsonOf(t, sealed(t, measured(4)))
	for _, tt := range []struct{ name, text, want string }{
		{"nothing", "", "truncated"},
		{"cut short", whole[:len(whole)*2/3], "truncated"},
		{"not JSON", "report:\n", "invalid character"},
		{"not an object", "[]", "cannot unmarshal"},
		{"another schema", strings.Replace(whole, Schema, "carronade.report/2", 1), `"carronade.report/2"`},
		{"intervals of another type", `{"schema":"carronade.report/1","intervals":7}`, "cannot unmarshal"},
		{"an interval of another type", `{"schema":"carronade.report/1","intervals":[7]}`, "interval 1"},
	} {
		_, err := Read(strings.NewReader(tt.text))
		assert.ErrorHas(t, err, tt.want, tt.name)
	}
}

// The histograms of the measurement are restored from the JSON of the intervals, exactly except for the rounding of the mean.
func TestHistogram(t *testing.T) {
	in := measured(5)
	d := assert.Value(Read(strings.NewReader(jsonOf(t, build(in)))))(t)
	measurement := in.Result.Measurement.Set
	measurement.Each(func(name string, h **measure.Histogram) {
		got := d.Histogram(name)
		if (*h).Count() == 0 {
			if got != nil {
				t.Errorf("%s: got %d observations, want none", name, got.Count())
			}
			return
		}
		if got.Count() != (*h).Count() || name != "censored" && (got.Max() != (*h).Max() || got.Min() != (*h).Min()) {
			t.Errorf("%s: got %d to %v, want %d to %v", name, got.Count(), got.Max(), (*h).Count(), (*h).Max())
		}
		for _, p := range measure.StandardPercentiles() {
			if name != "censored" && got.Percentile(p) != (*h).Percentile(p) {
				t.Errorf("%s: p%v: got %v, want %v", name, p, got.Percentile(p), (*h).Percentile(p))
			}
		}
	})
	got := d.Histogram("latency")
	assert.True(t, got == nil, "an unknown name: got %v", got)
}

// A report assembled from the intervals agrees with the complete report, as far as the intervals go.
func TestAssemble(t *testing.T) {
	in := measured(5)
	whole := build(in)
	begun := in
	begun.Result = &load.Result{Started: in.Result.Started, Mode: in.Result.Mode, Stopped: load.Killed}
	head := assert.Value(Read(strings.NewReader(jsonOf(t, build(begun)))))(t)
	kept := assert.Value(Read(strings.NewReader(jsonOf(t, whole))))(t)
	d := Assemble(head, kept.Intervals)
	assert.OK(t, d.Check())
	assert.True(t, d.Stopped == load.Killed && d.Partial && !d.Trust.OK && d.ID == whole.ID && d.ExitCode() != host.ExitOK,
		"got %q, partial %v, trusted %v, id %q", d.Stopped, d.Partial, d.Trust.OK, d.ID)
	assert.Equal(t, d.Totals.Counts, whole.Totals.Counts)
	assert.True(t, d.Totals.EventsPerS == whole.Totals.EventsPerS && d.Totals.ElapsedS == 4 && d.Totals.RateOf == RateAcked,
		"got %v events/s %s over %v s, want %v over 4",
		d.Totals.EventsPerS, d.Totals.RateOf, d.Totals.ElapsedS, whole.Totals.EventsPerS)
	off := whole.Response.Mean - d.Response.Mean
	assert.True(t, math.Abs(off) <= 0.001, "a mean of %v us, want %v", d.Response.Mean, whole.Response.Mean)
	d.Response.Mean = whole.Response.Mean
	assert.Same(t, d.Response, whole.Response, "response")
	assert.Equal(t, d.Batching.Count, whole.Batching.Count, "batching")
	assert.True(t, len(d.Phases) == 2 && d.Phases[0].Totals.Sent == 500, "got phases %+v", d.Phases)
	assert.Equal(t, Assemble(head, kept.Intervals).Hash, d.Hash, "hash of a report of the same parts")
	var text bytes.Buffer
	if err := d.Text(&text, layout.Style{}); err != nil || !strings.Contains(text.String(), "the program was killed") {
		t.Errorf("the text does not say that the program was killed (%v):\n%s", err, text.String())
	}
}

// A run that died before its first interval, and one with events in flight.
func TestAssembleLittle(t *testing.T) {
	in := measured(3)
	head := build(Input{Result: &load.Result{Mode: load.OpenLoop, Started: started}, ID: "0a1b2c3d"})
	d := Assemble(head, nil)
	err := d.Check()
	assert.True(t, err == nil && d.Totals.Sent == 0 && d.EndedAt.Equal(started), "got %d sent, ended %v (%v)", d.Totals.Sent, d.EndedAt, err)
	assert.OK(t, d.Text(&bytes.Buffer{}, layout.Style{}))
	in.Result.Intervals[2].Acked -= 7
	in.Result.Intervals[2].Offered += 3
	d = Assemble(head, build(in).Intervals)
	c := d.Totals.Counts
	assert.True(t, c.Unknown == 7 && c.Unsent == 3 && c.Sent == c.Acked+c.Failed+c.Unknown && c.Offered == c.Sent+c.Dropped+c.Unsent, "the identities do not hold: %+v", c)
}

// TestAssembleAges: events that a killed program left without an answer, or unread, are in the times with the
// least ages that they can have.
func TestAssembleAges(t *testing.T) {
	// 100 events a second, all acked within a second; reading stops after two: 250 of 400 are read.
	in := measured(3)
	d := build(in)
	d.Op, d.Intervals = workload.RoundTrip, nil
	consumed := []uint64{100, 100, 50, 0}
	for i := range 4 { // and 3 more are due in the last second
		iv := Interval{Phase: measure.Measurement, StartS: float64(i), EndS: float64(i + 1), WithinS: 1, Counts: measure.Counts{Offered: 100 + 3*uint64(i/3), Sent: 100, Acked: 90 - 30*uint64(i/3), Consumed: consumed[i]}}
		iv.Response, iv.times = new(measure.Summary), new(measure.Set)
		d.Intervals = append(d.Intervals, iv)
	}
	got := Assemble(d, d.Intervals)
	assert.OK(t, got.Check())
	c := got.Totals.Counts
	assert.True(t, c.Unknown == 70 && c.Unread == 80 && c.Unsent == 3, "%d unknown, %d unread, %d unsent, want 70, 80 and 3", c.Unknown, c.Unread, c.Unsent)
	last := &got.Intervals[3]
	for _, tt := range []struct {
		name       string
		sum, whole *measure.Summary
		ages       *measure.Histogram
		count      uint64
	}{
		// 330 were answered: nothing sent before the last second must be without an answer.
		{"response", last.Response, got.Response, last.Histogram("censored"), 73},
		// Of 300 that were sent until second 3, 50 were not read then, and another 100 since.
		{"end to end", last.EndToEnd, got.EndToEnd, last.Histogram("unread"), 153},
	} {
		assert.True(t, tt.sum != nil && tt.whole != nil && tt.sum.Censored == tt.count && tt.whole.Censored == tt.count && tt.ages.Count() == tt.count,
			"%s: %+v, of the run %+v; want %d ages", tt.name, tt.sum, tt.whole, tt.count)
	}
	v, ok := got.EndToEnd.At(90)
	assert.True(t, ok && v.AtLeast && v.D.Round(10*time.Millisecond) == time.Second, "end to end p90 is %+v, want at least 1 s", v)
}

// TestAssembleGroups: each consumer group of a killed program was to read each event.
func TestAssembleGroups(t *testing.T) {
	d := build(measured(3))
	d.Op, d.Intervals = workload.RoundTrip, nil
	for i, second := range []uint64{100, 20} { // what the second group reads of 100 events a second
		iv := Interval{Phase: measure.Measurement, StartS: float64(i), EndS: float64(i + 1), WithinS: 1, Counts: measure.Counts{Offered: 100, Sent: 100, Acked: 100, Consumed: 100 + second}}
		iv.Groups, iv.Response, iv.times = []GroupInterval{{Consumed: 100}, {Consumed: second}}, new(measure.Summary), new(measure.Set)
		d.Intervals = append(d.Intervals, iv)
	}
	got := Assemble(d, d.Intervals)
	assert.OK(t, got.Check())
	assert.Equal(t, got.Totals.Unread, 80, "unread")
	assert.Equal(t, got.EndToEnd.Censored, 80, "without an end-to-end time")
}

// The text shows the note, the attachments, and the report's id and hash.
func TestTextOfEvidence(t *testing.T) {
	d := sealed(t, measured(3))
	var text bytes.Buffer
	assert.OK(t, d.Text(&text, layout.Style{}))
	assert.Has(t, text.String(), "noted         before the change", "attached      server.properties (17 B)", "report        0a1b2c3d, hash "+d.Hash[:12])
}

// Build takes a row that was already encoded as it is.
func TestBuildTakesEncodedRows(t *testing.T) {
	in := measured(3)
	in.Series = []Interval{{Phase: "measurement", EndS: 1, EventsPerS: 42}}
	d := build(in)
	assert.True(t, len(d.Intervals) == 1 && d.Intervals[0].EventsPerS == 42, "got %+v", d.Intervals)
}

func BenchmarkEncodeInterval(b *testing.B) {
	in := measured(3)
	s := Series{Mode: load.OpenLoop}
	b.ReportAllocs()
	for b.Loop() {
		iv := s.Interval(&in.Result.Intervals[2])
		assert.Value(iv.Encode())(b)
	}
}

// Fields of a later program are kept when a report is copied to another store or into a file.
func TestLaterFieldsAreKept(t *testing.T) {
	d := sealed(t, measured(3))
	file := bytes.NewBufferString(strings.NewReplacer(
		`"schema": `, `"later": {"x": 1.50}, "schema": `,
		`"phase": `, `"later": "<2>", "phase": `,
	).Replace(jsonOf(t, d)))
	read := assert.Value(Read(file))(t)
	read.Hash = read.computedHash // as the later program sealed it
	read.raw = bytes.Replace(read.raw, []byte(d.Hash), []byte(read.computedHash), 1)
	text := jsonOf(t, read)
	for _, want := range []string{`"later": {`, `"x": 1.50`, `"later": "<2>"`} {
		assert.True(t, strings.Contains(text, want), "written without %s", want)
	}
	head := assert.Value(read.Head())(t)
	var rows [][]byte
	for i := range read.Intervals {
		e := assert.Value(read.Intervals[i].Encode())(t)
		rows = append(rows, e.JSON)
	}
	assert.OK(t, assert.Value(Join(head, rows))(t).Check(), "from a store")
	assert.OK(t, assert.Value(Read(strings.NewReader(text)))(t).Check(), "from the file")
}

// Phases need not meet where intervals do: the rates of a killed run are those of its phases. In a report of an
// older version the intervals do not say how much of them lies in their phase.
func TestAssemblePhaseBoundary(t *testing.T) {
	row := func(phase string, start float64, acked, arrived uint64, within float64) Interval {
		return Interval{Phase: phase, StartS: start, EndS: start + 1, WithinS: within, Arrived: arrived, Counts: measure.Counts{Offered: acked, Sent: acked, Acked: acked}}
	}
	for _, tt := range []struct {
		name              string
		rows              []Interval
		warm, measurement float64 // events/s
		from, to          float64 // of the measurement
	}{
		{"a boundary within an interval", []Interval{
			row("warm-up", 0, 100, 100, 1), row("warm-up", 1, 50, 50, 0.5), row("measurement", 1, 45, 50, 0.5), row("warm-up", 2, 5, 0, 0), row("measurement", 2, 100, 100, 1),
		}, 100, 100, 1.5, 3},
		{"a step that ends within the first interval", []Interval{
			row("warm-up", 0, 30, 30, 0.3), row("measurement", 0, 20, 20, 0.2), row("measurement", 0, 50, 50, 0.5), row("measurement", 1, 100, 100, 1),
		}, 100, 100, 0.3, 2},
		{"a measurement within the first interval", []Interval{
			row("warm-up", 0, 30, 30, 0.3), row("measurement", 0, 40, 40, 0.4),
		}, 100, 100, 0.3, 0.7},
		{"nothing is due at the end of the warm-up", []Interval{
			row("warm-up", 0, 100, 100, 1), row("measurement", 1, 20, 20, 0.2), row("measurement", 1, 50, 50, 0.5), row("measurement", 2, 100, 100, 1),
		}, 100, 100, 1.3, 3},
		{"an older version", []Interval{
			row("warm-up", 0, 100, 0, 0), row("warm-up", 1, 50, 0, 0), row("measurement", 1, 50, 0, 0), row("warm-up", 2, 0, 0, 0), row("measurement", 2, 100, 0, 0),
		}, 50, 75, 1, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			head := &Document{}
			head.Totals.RateOf = RateAcked
			d := Assemble(head, tt.rows)
			assert.True(t, math.Abs(d.Phases[0].Totals.EventsPerS-tt.warm) < 1e-6 && math.Abs(d.Totals.EventsPerS-tt.measurement) < 1e-6,
				"%v events/s in the warm-up and %v in the measurement, want %v and %v", d.Phases[0].Totals.EventsPerS, d.Totals.EventsPerS, tt.warm, tt.measurement)
			near := func(got, want float64) bool { return math.Abs(got-want) < 1e-9 }
			assert.True(t, near(d.Phases[1].StartS, tt.from) && near(d.Phases[1].EndS, tt.to),
				"the measurement is from %v to %v, want %v to %v", d.Phases[1].StartS, d.Phases[1].EndS, tt.from, tt.to)
		})
	}
}
