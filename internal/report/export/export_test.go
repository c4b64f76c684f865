package export

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"carronade/internal/report"
	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/kafkatest"
)

var started = time.Date(2026, 3, 1, 12, 0, 0, 123_000_000, time.UTC)

// spread is n durations spaced evenly from least to twice that.
func spread(least time.Duration, n int) *measure.Histogram {
	h := measure.NewHistogram()
	for i := range n {
		h.Record(least + least*time.Duration(i)/time.Duration(n))
	}
	return h
}

// result is a run of one second of warm-up and four of measurement, without answers in the last second.
func result() *load.Result {
	r := &load.Result{
		Started: started, Ended: started.Add(6 * time.Second), Stopped: load.ByTime, Mode: load.OpenLoop,
		Classes:  map[string]uint64{"timeout": 3},
		Failures: []measure.Failure{{Class: "timeout", Text: "no answer | in 10 s\x1b[31m <b>", Events: 3, Batches: 1}},
	}
	measurement := measure.Tally{Name: "measurement", Rate: 1000, Start: time.Second, End: 5 * time.Second}
	measurement.Response, measurement.Service, measurement.SendDelay, measurement.Censored = measure.NewHistogram(), measure.NewHistogram(), measure.NewHistogram(), measure.NewHistogram()
	for i := range 5 {
		iv := measure.Interval{Phase: "measurement", Start: time.Duration(i) * time.Second, End: time.Duration(i+1) * time.Second, InFlight: uint64(i)}
		if i == 0 {
			iv.Phase = "warm-up"
		}
		iv.Within, iv.Arrived = iv.Length(), 1000
		iv.Counts = measure.Counts{Offered: 1000, Sent: 1000, Acked: 1000, Batches: 100, Answered: 100, Bytes: 100_000, AckedBytes: 100_000, WireBytes: 110_000}
		iv.Generator = measure.Usage{CPU: 250 * time.Millisecond, RSS: 30 << 20, GCPauses: 2, GCPauseMax: 1500, GCCPU: time.Millisecond}
		iv.Response, iv.Service, iv.SendDelay = spread(time.Duration(i+1)*700*time.Microsecond, 1000), spread(time.Duration(i+1)*300*time.Microsecond, 100), spread(20*time.Microsecond, 100)
		if i == 4 {
			iv.Acked, iv.Answered, iv.Unknown, iv.Failed, iv.Arrived = 0, 0, 997, 3, 0
			iv.Response, iv.Service, iv.Censored = nil, nil, spread(time.Second, 997)
		}
		r.Intervals = append(r.Intervals, iv)
		if i == 0 {
			r.Warmup = measure.Tally{Name: "warm-up", End: time.Second, Counts: iv.Counts, Arrived: 1000}
			r.Warmup.Response, r.Warmup.Service = iv.Response, iv.Service
			continue
		}
		measurement.Counts.Add(iv.Counts)
		measurement.Set.Merge(&iv.Set)
	}
	measurement.Arrived, measurement.ArrivedBytes, measurement.InFlight = 3000, 300_000, 2.5
	measurement.Sends = measurement.Sent
	r.Measurement = measurement
	r.Drain = measure.Tally{Name: "drain", Start: 5 * time.Second, End: 6 * time.Second}
	return r
}

func document(t testing.TB, change func(in *report.Input)) *report.Document {
	t.Helper()
	in := report.Input{
		ID: "k3v9x2ab", RunID: "1f", Version: "1.2.3", Target: "mortar://127.0.0.1:9/a_topic", Op: "produce",
		Labels: map[string]string{"team": "pay*ments"}, Result: result(), Processors: 2,
		Trust: measure.Trust{OK: true, Notes: []string{"a short run"}},
		Settings: []report.Setting{
			{Name: "rate", Value: "1000/s"}, {Name: "linger", Value: "5ms", Default: true}, {Name: "payload", Value: "a|b`c"},
		},
		Host:   map[string]any{"os": "linux", "name": "lab_1", "cores": 8, "memory_modules": []any{map[string]any{"bytes": 1 << 34, "locator": "DIMM_A1", "part_number": "M393|A4"}}},
		Hosts:  []any{map[string]any{"os": "linux", "name": "kafka-1", "cores": 48}, map[string]any{"os": "linux", "name": "kafka-2", "cores": 48}},
		Checks: []report.Check{{Name: "failure-rate", Text: "0.075% of the answered events failed, 0.05% allowed"}, {Name: "unsent <= 10", OK: true, Text: "0"}},
		Samples: &report.Samples{Of: 3000, Every: 1000, EndToEnd: []report.Sample{
			{Item: "a_topic-0/17", StartUS: 1000.5, EndToEndUS: 2400}, {Item: "stream-1/5, odd", StartUS: 2_000_000, EndToEndUS: 30_107_249_488},
		}},
	}
	if change != nil {
		change(&in)
	}
	return report.Build(in)
}

func written(t testing.TB, format string, o Options, ds ...*report.Document) string {
	t.Helper()
	var b bytes.Buffer
	assert.OK(t, Write(&b, format, Of(ds...), o))
	return b.String()
}

// TestGolden compares each format with its file in testdata.
func TestGolden(t *testing.T) {
	d := document(t, nil)
	for _, name := range []string{"markdown", "csv", "percentiles", "junit", "e2e-csv"} {
		t.Run(name, func(t *testing.T) {
			f := assert.Value(Named(name))(t)
			testkit.Golden(t, filepath.Join("testdata", name+f.Ext), written(t, name, Options{}, d))
		})
	}
}

func TestCSV(t *testing.T) {
	d := document(t, nil)
	other := document(t, func(in *report.Input) {
		in.ID, in.Result.Mode = "other", load.ClosedLoop
		for i := range in.Result.Intervals {
			in.Result.Intervals[i].Response = nil
		}
	})
	rows := assert.Value(csv.NewReader(strings.NewReader(written(t, "csv", Options{}, d, other))).ReadAll())(t)
	assert.Must(t, len(rows) == 1+5+5, "%d rows, want a head and ten", len(rows))
	cell := func(row int, name string) string { return rows[row][slices.Index(rows[0], name)] }
	for _, tt := range []struct {
		row        int
		name, want string
	}{
		{1, "phase", "warm-up"},
		{2, "id", "k3v9x2ab"},
		{2, "start_s", "1"},
		{2, "response_count", "1000"},
		{2, "response_min_us", "1400"},
		{2, "response_at_least_from_us", ""},
		{2, "response_at_least_from_p", ""},
		{5, "response_count", "0"},
		{5, "response_mean_us", ""},
		{5, "response_max_us", ""},
		{5, "response_p50_us", "1499136"}, // nothing was answered: at least this
		{5, "response_at_least_from_us", "1000000"},
		{5, "response_at_least_from_p", "50"},
		{5, "service_p99_us", ""},
		{5, "lag_events", ""},
		{5, "end_to_end_count", ""},
		{5, "generator_cpu_s", "0.25"},
		{6, "id", "other"},
		{6, "response_count", ""}, // nothing is due in a closed loop
		{6, "service_count", "100"},
	} {
		assert.Equal(t, cell(tt.row, tt.name), tt.want, "row %d, %s", tt.row, tt.name)
	}
	// The sums of the series are the totals.
	acked := 0
	for i := 2; i <= 5; i++ {
		n := assert.Value(strconv.Atoi(cell(i, "acked")))(t)
		acked += n
	}
	assert.Equal(t, uint64(acked), d.Totals.Acked, "events acked, of %d in the series", acked)
}

// TestColumnsAreKept: docs/reports.md promises the columns.
func TestColumnsAreKept(t *testing.T) {
	got := strings.Join(seriesColumns()[:24], " ")
	want := "id phase start_s end_s offered sent dropped unsent acked failed unknown consumed retries batches answered bytes acked_bytes wire_bytes " +
		"events_per_s in_flight lag_events response_count response_mean_us response_min_us"
	assert.Equal(t, got, want, "beginning of the series")
	assert.Equal(t, len(seriesColumns()), 75, "columns")
	assert.Equal(t, strings.Join(seriesColumns()[69:], " "), "generator_gc_cpu_s response_at_least_from_p unread end_to_end_at_least_from_p within_s arrived", "end of the series")
}

// TestDocumented: docs/reports.md lists every format and every column.
func TestDocumented(t *testing.T) {
	b := assert.Value(os.ReadFile("../../../docs/reports.md"))(t)
	text := string(b)
	for _, f := range Formats {
		assert.True(t, strings.Contains(text, "`"+f.Name+"`"), "docs/reports.md does not have the format %s", f.Name)
	}
	for i, c := range seriesColumns() {
		if strings.Contains(text, "`"+c+"`") {
			continue
		}
		for _, t := range seriesTimes {
			if rest, ok := strings.CutPrefix(c, t); ok && i > slices.Index(seriesColumns(), "lag_events") {
				c = rest // the same for each time
			}
		}
		assert.True(t, strings.Contains(text, "`"+c+"`"), "docs/reports.md does not have the column %s", c)
	}
}

// The log of a stored report is the one that the run writes.
func TestHDRIsTheLogOfTheRun(t *testing.T) {
	d := document(t, nil)
	var live bytes.Buffer
	log := report.NewLog(&live, "x")
	log.Begin(d.StartedAt, "carronade 1.2.3", "target "+d.Target, "report k3v9x2ab")
	for _, iv := range result().Intervals {
		log.Interval(&iv)
	}
	assert.OK(t, log.Close())
	assert.Same(t, written(t, "hdr", Options{}, d), live.String(), "during the run, and from the report")
}

// dataLine is a line of a percentile distribution.
var dataLine = regexp.MustCompile(`^ *[0-9.]+ +[01]\.\d{12} +\d+`)

// TestReadByJava lets HdrHistogram's tool read the log: its table of percentiles equals ours, line by line.
func TestReadByJava(t *testing.T) {
	// All events are answered, because the log has only answers, and the table would also have ages.
	d := document(t, func(in *report.Input) { in.Result.Measurement.Censored, in.Result.Intervals[4].Censored = nil, nil })
	path := filepath.Join(t.TempDir(), "run.hlog")
	assert.OK(t, os.WriteFile(path, []byte(written(t, "hdr", Options{}, d)), 0o600))
	for _, tag := range []string{"response", "service", "send_delay"} {
		out := kafkatest.Tool(t, "org.HdrHistogram.HistogramLogProcessor", "-i", path, "-tag", tag, "-outputValueUnitRatio", "1")
		ours := written(t, "percentiles", Options{Time: tag}, d)
		if got, want := table(ours), table(out); got != want || strings.Count(got, "\n") < 20 {
			t.Errorf("%s (-Java, +ours):\n%s", tag, cmp.Diff(want, got))
		}
	}
}

// table is the percentile distribution in the output of a tool: its lines and the lines after it, except the
// number of buckets: Java's tool joins the log's lines in a histogram with another number.
func table(out string) string {
	var b strings.Builder
	for line := range strings.Lines(out) {
		line = strings.TrimRight(line, " \r\n")
		if dataLine.MatchString(line) || strings.HasPrefix(line, "#[Mean") || strings.HasPrefix(line, "#[Max ") || strings.Contains(line, "1/(1-Percentile)") {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

func TestPercentilesOf(t *testing.T) {
	h := measure.NewHistogram()
	h.RecordN(2*time.Hour, 3) // beyond the range
	h.Record(500 * time.Nanosecond)
	var b bytes.Buffer
	assert.Value(distribution(&b, h, nil, 5))(t)
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	want := "3600000000.000 1.000000000000          4"
	assert.Equal(t, lines[len(lines)-4], want, "the last line")
	assert.True(t, strings.Contains(lines[len(lines)-2], "Total count    =            4"), "got %q", lines[len(lines)-2])
}

// Events without an answer are in the table at their age, and the table says so. They are a quarter of the events of the fixture.
func TestPercentilesOfADeadSystem(t *testing.T) {
	d := document(t, nil)
	got := written(t, "percentiles", Options{}, d)
	assert.Has(t, got,
		"Total count    =         3997]",
		"#[At least =  1096704.000, No answer      =          997]",
		"# 997 of 3,997 events had no answer: from percentile 0.775000 on,")
	// The table and the report agree on values and on bounds.
	at := func(p float64) float64 {
		for line := range strings.Lines(got) {
			var us, level float64
			if n, _ := fmt.Sscan(line, &us, &level); n == 2 && 100*level >= p {
				return us
			}
		}
		return 0
	}
	for _, want := range d.Response.Percentiles[:3] { // levels that the table has
		if us := at(want.P); us != measure.Micros(want.D) || want.AtLeast != (want.P >= 77.5) {
			t.Errorf("p%v: the table has %v us, the report %v (at least: %v)", want.P, us, want.D, want.AtLeast)
		}
	}
	other := written(t, "percentiles", Options{Time: "service"}, d)
	assert.True(t, !strings.Contains(other, "No answer"), "service times are of answers alone:\n%s", other)
	dead := document(t, func(in *report.Input) {
		in.Result.Measurement.Response = measure.NewHistogram()
		for i := range in.Result.Intervals[1:] {
			in.Result.Intervals[i+1].Response = nil
		}
	})
	if got := written(t, "percentiles", Options{}, dead); !strings.Contains(got, "# 997 of 997 events") {
		t.Errorf("nothing was answered:\n%s", got)
	}
}

// One event of thousands, however early it was given up, leaves nearly the entire table exact.
func TestPercentilesOfOneWithoutAnAnswer(t *testing.T) {
	h, ages := measure.NewHistogram(), measure.NewHistogram()
	for i := range 5000 {
		h.Record(time.Millisecond + time.Duration(i)*2*time.Microsecond)
	}
	ages.Record(500 * time.Microsecond)
	var b bytes.Buffer
	first, err := distribution(&b, h, ages, ticksPerHalf)
	assert.OK(t, err)
	assert.True(t, first.P >= 99.9 && first.AtLeast && first.D >= 10*time.Millisecond, "bounds from p%v on, %v", first.P, first.D)
	first, err = distribution(&b, h, nil, ticksPerHalf)
	assert.True(t, err == nil && !first.AtLeast, "all were answered, and p%v is a bound (%v)", first.P, err)
}

func TestJUnit(t *testing.T) {
	broken := document(t, func(in *report.Input) {
		in.Trust = measure.Trust{Reasons: []string{"it was \x00 too slow"}}
		in.Problems = []string{"--hdr: no space left on device"}
	})
	var got xmlSuites
	assert.OK(t, xml.Unmarshal([]byte(written(t, "junit", Options{}, document(t, nil), broken)), &got))
	assert.True(t, got.Tests == 8 && got.Failures == 2 && got.Errors == 2 && len(got.Suites) == 2,
		"%d tests, %d failures, %d errors in %d suites; want 8, 2, 2 in 2",
		got.Tests, got.Failures, got.Errors, len(got.Suites))
	trust := got.Suites[1].Cases[1]
	assert.True(t, trust.Error != nil && trust.Error.Message == "it was  too slow", "got %+v", trust)
	var b bytes.Buffer
	assert.OK(t, JUnit(&b, []Suite{{Name: "verify", Cases: []Case{{Name: "p99", Skipped: true, Text: "cannot tell"}}}}))
	assert.True(t, strings.Contains(b.String(), `<skipped message="cannot tell">`), "got %s", b.String())
}

// One report is a document, several are one line each, and both are read back unchanged.
func TestJSONReadBack(t *testing.T) {
	d := document(t, nil)
	assert.OK(t, d.Seal())
	assert.OK(t, assert.Value(report.Read(strings.NewReader(written(t, "json", Options{}, d))))(t).Check())
	lines := strings.Split(strings.TrimSpace(written(t, "json", Options{}, d, d)), "\n")
	assert.Must(t, len(lines) == 2 && json.Valid([]byte(lines[0])), "%d lines", len(lines))
	assert.OK(t, assert.Value(report.Read(strings.NewReader(lines[1])))(t).Check())
}

// TestRefused: what a format cannot be made of.
func TestRefused(t *testing.T) {
	d := document(t, nil)
	empty := report.Build(report.Input{ID: "k3v9x2ab", Result: &load.Result{Mode: load.OpenLoop}})
	lacking := new(MissingError)
	for _, tt := range []struct {
		name, format string
		ds           []*report.Document
		o            Options
		want         string
		lacks        bool
	}{
		{name: "no such format", format: "xlsx", ds: []*report.Document{d}, want: `unknown format "xlsx"; the formats are text, markdown`},
		{name: "no report", format: "text", want: "no report was given"},
		{name: "two where one fits", format: "hdr", ds: []*report.Document{d, d}, want: "it holds one report, but there are 2"},
		{name: "no histograms", format: "hdr", ds: []*report.Document{empty}, want: "report k3v9x2ab: it has no histograms", lacks: true},
		{name: "none of the usual times", format: "percentiles", ds: []*report.Document{empty}, want: "no histogram of a response, service or end-to-end time", lacks: true},
		{name: "not that time", format: "percentiles", o: Options{Time: "end_to_end"}, ds: []*report.Document{d}, want: "no histogram of the time end_to_end", lacks: true},
		{name: "no such time", format: "percentiles", o: Options{Time: "latency"}, ds: []*report.Document{d}, want: `unknown time "latency"; the times are response, service`},
		{name: "no picture named", format: "svg", ds: []*report.Document{d}, want: "it holds one picture: name it"},
		{name: "no such picture", format: "png", o: Options{Picture: "mona-lisa"}, ds: []*report.Document{d}, want: `unknown picture "mona-lisa"; the pictures are throughput, `},
		{name: "nothing to draw", format: "png", o: Options{Picture: "throughput"}, ds: []*report.Document{empty}, want: "there is nothing to draw", lacks: true},
		{name: "no samples", format: "e2e-csv", ds: []*report.Document{empty}, want: "no sampled end-to-end times", lacks: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var b bytes.Buffer
			err := Write(&b, tt.format, Of(tt.ds...), tt.o)
			assert.ErrorHas(t, err, tt.want)
			assert.Equal(t, errors.As(err, &lacking), tt.lacks, "whether %v is a MissingError", err)
		})
	}
}

// TestFullDisk: every format reports the error.
func TestFullDisk(t *testing.T) {
	d := document(t, nil)
	d.Groups = []report.Group{{Name: "g-1"}}
	for i := range d.Intervals {
		d.Intervals[i].Groups = []report.GroupInterval{{Consumed: 1}}
	}
	for _, f := range Formats {
		err := Write(full{}, f.Name, Of(d), Options{Picture: "throughput"})
		assert.True(t, errors.Is(err, errFull), "%s: got %v, want the disk's error", f.Name, err)
	}
}

var errFull = errors.New("no space left on device")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

// A format that writes one report after the other reads each only after the ones before are written: there
// may be more than fit into memory. If one cannot be read, that is the error.
func TestReportsAreReadLazily(t *testing.T) {
	d := document(t, nil)
	damaged := errors.New("damaged")
	for _, name := range []string{"text", "markdown", "json", "csv"} {
		t.Run(name, func(t *testing.T) {
			size := len(written(t, name, Options{}, d, d, d)) - len(written(t, name, Options{}, d, d))
			n := 2 + 1<<20/size // more than any buffer holds
			var b bytes.Buffer
			err := Write(&b, name, Reports{N: n, All: func(yield func(*report.Document, error) bool) {
				for i := range n - 1 {
					if late := (i - b.Len()/size) * size; late > 256<<10 {
						t.Errorf("%d bytes of earlier reports are not yet written when report %d is read", late, i)
						return
					}
					if !yield(d, nil) {
						return
					}
				}
				yield(nil, damaged)
			}}, Options{})
			assert.True(t, errors.Is(err, damaged), "error %v, want that of the last report", err)
		})
	}
}

// A run that ended before it measured anything has every format except those that need missing data.
func TestEmpty(t *testing.T) {
	d := report.Build(report.Input{ID: "none", Result: &load.Result{Mode: load.OpenLoop}})
	for _, f := range Formats {
		var b bytes.Buffer
		err := Write(&b, f.Name, Of(d), Options{Picture: "throughput"})
		lacking := new(MissingError)
		assert.True(t, err == nil || errors.As(err, &lacking), "%s: %v", f.Name, err)
		// the script of a page may contain the word
		assert.True(t, f.Name == "html" || !strings.Contains(b.String(), "NaN"), "%s contains NaN:\n%s", f.Name, b.String())
	}
}

// TestPictures: every picture exists as SVG and as PNG.
func TestPictures(t *testing.T) {
	d, other := document(t, nil), document(t, func(in *report.Input) { in.ID = "other" })
	names := Pictures([]*report.Document{d})
	assert.Must(t, len(names) >= 5 && names[0] == "throughput", "pictures: %q", names)
	for _, name := range names[:testkit.Cases(len(names), 3)] {
		svg := written(t, "svg", Options{Picture: name}, d)
		assert.OK(t, xml.Unmarshal([]byte(svg), new(struct{})), "%s", name)
		small := assert.Value(png.DecodeConfig(strings.NewReader(written(t, "png", Options{Picture: name, Scale: 1}, d))))(t)
		usual := assert.Value(png.DecodeConfig(strings.NewReader(written(t, "png", Options{Picture: name}, d))))(t)
		assert.True(t, small.Width >= 300 && usual.Width == 2*small.Width,
			"%s: %d pixels wide, %d at the default scale", name, small.Width, usual.Width)
	}
	alone, both := written(t, "svg", Options{Picture: "throughput"}, d), written(t, "svg", Options{Picture: "throughput"}, d, other)
	assert.True(t, strings.Contains(both, "other") && !strings.Contains(alone, "other"), "reports are not overlaid")
	assert.True(t, written(t, "svg", Options{Picture: "throughput", Dark: true}, d) != alone, "the dark picture equals the light one")
}

// TestHTML: the page contains the report, and escapes text from other programs.
func TestHTML(t *testing.T) {
	got := written(t, "html", Options{}, document(t, nil))
	assert.True(t, strings.HasPrefix(strings.ToLower(got), "<!doctype html>") && strings.Contains(got, "k3v9x2ab") &&
		!strings.Contains(got, " <b>"), "got %.300s", got)
}
