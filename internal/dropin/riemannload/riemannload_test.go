package riemannload

import (
	"bytes"
	"context"
	"errors"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"carronade/internal/dropin"
	"carronade/internal/dropin/dropintest"
	"carronade/internal/host"
	"carronade/internal/report"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// A riemannTrial is the result of a command line.
type riemannTrial struct {
	dropintest.Result
	files map[string]string // of the reports folder, by name
}

// runRiemannTool runs the tool on made-up data: three seconds, the second with twice the rate
// of the others, and 200 ms of the fourth.
func runRiemannTool(t *testing.T, strict bool, args ...string) (got riemannTrial) {
	t.Helper()
	dir := t.TempDir()
	p := dropin.Program{Called: "riemann-load.sh", Args: append([]string{"-r", dir}, args...), Strict: strict}
	got.Result = dropintest.Run(t.Context(), t, &Tool, p, func(d *workload.Document, observer dropin.Observer) (*report.Document, error) {
		if slices.ContainsFunc(d.Entries, func(e workload.Entry) bool { return slices.Contains(e.Values, "riemann://unreachable:1") }) {
			return nil, errors.New("connection refused")
		}
		observer.Opened()
		var all measure.Counts
		interval := func(start, end time.Duration, n, inFlight uint64, each time.Duration) {
			h := measure.NewHistogram()
			h.RecordN(each, n-n/10)
			h.RecordN(10*each, n/10)
			iv := measure.Interval{
				Phase: "measurement", Start: start, End: end, Set: measure.Set{Service: h}, InFlight: inFlight,
				Counts: measure.Counts{Sent: n, Acked: n, Batches: n, Answered: n, WireBytes: 22 * n},
			}
			all.Add(iv.Counts)
			observer.Interval(load.Snapshot{At: end, Phase: "measurement", Interval: iv, Total: all})
		}
		interval(0, time.Second, 1000, 100, time.Millisecond)
		interval(time.Second, 2*time.Second, 2000, 200, 2*time.Millisecond)
		interval(2*time.Second, 3*time.Second, 1000, 300, time.Millisecond)
		interval(3*time.Second, 3200*time.Millisecond, 200, 0, 3*time.Millisecond)
		return &report.Document{
			Stopped: load.Interrupted, Totals: report.Totals{Counts: all, ElapsedS: 3.2, EventsPerS: 4200 / 3.2},
			Failures: []measure.Failure{{Class: "refused", Text: "overloaded", Events: 3, Batches: 3}},
		}, nil
	})
	got.files = map[string]string{}
	paths := assert.Value(filepath.Glob(filepath.Join(dir, "*", "*")))(t)
	for _, path := range paths {
		data := assert.Value(os.ReadFile(path))(t)
		got.files[filepath.Base(path)] = string(data)
	}
	return got
}

// The console has the grammar of Yammer's reporter, with any metrics.
var (
	riemannBlockForm = regexp.MustCompile(`(?m)^\d{1,2}/\d{1,2}/\d\d \d{1,2}:\d\d:\d\d [AP]M =+\n`)
	riemannGroupForm = regexp.MustCompile(`^(?:[\w.]+\w:\n(?:  [\w-]+:\n(?:` + gaugeForm + `|` + meterForm + `(?:` + timesForm + `)?)\n)+\n)+\n$`)
)

const (
	numberForm = `-?\d+\.\d\d`
	gaugeForm  = `    value = \d+\n`
	meterForm  = `             count = \d+\n` +
		`         mean rate = ` + numberForm + ` \w+/s\n     1-minute rate = ` + numberForm + ` \w+/s\n` +
		`     5-minute rate = ` + numberForm + ` \w+/s\n    15-minute rate = ` + numberForm + ` \w+/s\n`
	timesForm = `               min = ` + numberForm + `s\n               max = ` + numberForm + `s\n` +
		`              mean = ` + numberForm + `s\n            stddev = ` + numberForm + `s\n            median = ` + numberForm + `s\n` +
		`              75% <= ` + numberForm + `s\n              95% <= ` + numberForm + `s\n              98% <= ` + numberForm + `s\n` +
		`              99% <= ` + numberForm + `s\n            99\.9% <= ` + numberForm + `s\n`
)

func riemannBlocks(t *testing.T, text string) (out []string) {
	t.Helper()
	heads := riemannBlockForm.FindAllStringIndex(text, -1)
	assert.Must(t, len(heads) != 0 && heads[0][0] == 0, "the output does not begin with a time:\n%s", text)
	for i, h := range heads {
		head := text[h[0]:h[1]]
		assert.True(t, len(head) == 81, "a first line of %d characters, want 80 and a newline: %q", len(head), head)
		end := len(text)
		if i+1 < len(heads) {
			end = heads[i+1][0]
		}
		body := text[h[1]:end]
		assert.True(t, riemannGroupForm.MatchString(body), "a block of the wrong form:\n%s", body)
		out = append(out, body)
	}
	return out
}

const riemannSample = `3/11/13 9:15:02 AM =============================================================
org.robotninjas.riemann.load.ClientWorker:
  acks:
             count = 103898
         mean rate = 103898.00 ack/s
     1-minute rate = 0.00 ack/s
     5-minute rate = 0.00 ack/s
    15-minute rate = 0.00 ack/s

  rtt:
             count = 103898
         mean rate = 103898.00 calls/s
     1-minute rate = 0.00 calls/s
     5-minute rate = 0.00 calls/s
    15-minute rate = 0.00 calls/s
               min = 0.00s
               max = 0.41s
              mean = 0.20s
            stddev = 0.02s
            median = 0.20s
              75% <= 0.21s
              95% <= 0.24s
              98% <= 0.30s
              99% <= 0.31s
            99.9% <= 0.40s


a.b.Queue:
  unacked:
    value = 15012



`

func TestRiemannConsole(t *testing.T) {
	got := riemannBlocks(t, riemannSample)
	assert.True(t, len(got) == 1, "the sample has %d blocks", len(got))
	for _, tt := range []struct {
		name   string
		strict bool
		count  int
		last   []string // parts of the last block
	}{
		{"right", false, 4, []string{
			"  acks:\n             count = 4200\n         mean rate = 1312.50 ack/s\n     1-minute rate = 1312.50 ack/s\n",
			"  throughput:\n             count = 92400\n         mean rate = 28875.00 bytes/s\n",
			"               min = 0.00s\n               max = 0.03s\n              mean = 0.00s\n", "  unacked:\n    value = 0\n",
			"  event-acks:\n             count = 4200\n         mean rate = 1312.50 send/s\n",
		}},
		{"strict", true, 3, []string{
			"  acks:\n             count = 4000\n         mean rate = 1333.33 ack/s\n     1-minute rate = 0.00 ack/s\n",
			"  unacked:\n    value = 300\n",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := runRiemannTool(t, tt.strict)
			all := riemannBlocks(t, got.Out)
			assert.Must(t, len(all) == tt.count, "%d blocks, want %d", len(all), tt.count)
			for _, want := range tt.last {
				last := all[len(all)-1]
				assert.True(t, strings.Contains(last, want), "the last block has no\n%s\nin\n%s", want, last)
			}
			assert.True(t, got.Code == host.ExitInterrupted && got.Err == nil, "exit %d, %v", got.Code, got.Err)
			assert.True(t, strings.Contains(got.Errs, "3 messages were not acked: refused: overloaded\n") != tt.strict,
				"stderr: %s", got.Errs)
		})
	}
}

// A row per second, in the forms of Yammer's reporter, with Java's numbers.
const doubleForm = `(?:-?\d+\.\d+(?:E-?\d+)?|NaN)`

var riemannRowForms = map[string]*regexp.Regexp{
	"meter": regexp.MustCompile(`^# time,count,1 min rate,mean rate,5 min rate,15 min rate\n(?:\d+,\d+(?:,` + doubleForm + `){4}\n)+$`),
	"timer": regexp.MustCompile(`^# time,min,max,mean,median,stddev,95%,99%,99\.9%\n(?:\d+(?:,` + doubleForm + `){8}\n)+$`),
	"gauge": regexp.MustCompile(`^# time,value\n(?:\d+,\d+\n)+$`),
}

func TestRiemannFiles(t *testing.T) {
	got, strict := runRiemannTool(t, false), runRiemannTool(t, true)
	want := []string{
		"acks.csv", "acks.png", "buffered-sends.csv", "event-acks.csv", "plots.html", "rtt.csv", "rtt.png",
		"sends.csv", "throughput.csv", "throughput.png", "unacked.csv", "unacked.png",
	}
	names := slices.Sorted(maps.Keys(got.files))
	assert.True(t, slices.Equal(names, want), "files %q, want %q", names, want)
	for name, kind := range map[string]string{
		"acks": "meter", "sends": "meter", "event-acks": "meter", "throughput": "meter", "rtt": "timer", "unacked": "gauge", "buffered-sends": "gauge",
	} {
		for _, files := range []map[string]string{got.files, strict.files} {
			text := files[name+".csv"]
			assert.True(t, riemannRowForms[kind].MatchString(text), "%s.csv is not a file of a %s:\n%s", name, kind, text)
		}
	}
	for _, tt := range []struct{ name, text, want string }{
		{"rates of the seconds", got.files["acks.csv"], "1,1000,1000.0,1000.0,1000.0,1000.0\n2,3000,1500.0,2000.0,1500.0,1500.0\n" +
			"3,4000,1333.3333333333333,1000.0,1333.3333333333333,1333.3333333333333\n4,4200,1312.5,1000.0,1312.5,1312.5\n"},
		{"rates since the beginning", strict.files["acks.csv"], "1,1000,0.0,1000.0,0.0,0.0\n2,3000,0.0,1500.0,0.0,0.0\n3,4000,0.0,1333.3333333333333,0.0,0.0\n"},
		{"times of a second", got.files["rtt.csv"], "\n2,0.002,0.02,0.0038,0.002,"},
		{"a part of a second with the one before", got.files["rtt.csv"], "\n4,0.001,0.03,0.0025333"},
		{"times since the beginning", strict.files["rtt.csv"], "\n3,0.001,0.02,0.00285,"},
		{"unacked messages", got.files["unacked.csv"], "1,100\n2,200\n3,300\n4,0\n"},
	} {
		assert.True(t, strings.Contains(tt.text, tt.want), "%s: no %q in\n%s", tt.name, tt.want, tt.text)
	}
	for name, data := range got.files {
		if !strings.HasSuffix(name, ".png") {
			continue
		}
		assert.True(t, strings.Contains(got.files["plots.html"], `src="`+name+`"`), "plots.html does not show %s", name)
		img, err := png.DecodeConfig(strings.NewReader(data))
		assert.True(t, err == nil && img.Width == 1600 && img.Height == 400, "%s is %d x %d, %v", name, img.Width, img.Height, err)
	}
}

// Every flag has an effect or causes a warning.
func TestRiemannCases(t *testing.T) {
	dropintest.RunCases(t, "riemannload", "", func(t *testing.T, c *dropintest.Case) dropintest.Result {
		if len(c.Args) == 2 {
			testkit.Need(t, "a second")
		}
		got := runRiemannTool(t, c.Strict, c.Args...).Result
		assert.True(t, len(c.Has) > 0 || !strings.Contains(got.Errs, "warning"), "stderr:\n%s", got.Errs)
		return got
	})
	for _, strict := range []bool{false, true} {
		p := dropin.Program{Args: []string{"-r", filepath.Join(os.DevNull, "reports")}, Strict: strict}
		got := dropintest.Run(t.Context(), t, &Tool, p, nil)
		assert.True(t, got.Err != nil && got.Code == 1 && got.Last() == nil, "a folder that cannot be made, strict %v: exit %d, %v", strict, got.Code, got.Err)
	}
	if got := runRiemannTool(t, false, "unreachable:1"); got.Err == nil || got.Code != host.ExitFailed || len(got.files) > 0 {
		t.Errorf("unreachable: exit %d, %v, files %v", got.Code, got.Err, got.files)
	}
	got := runRiemannTool(t, true, "unreachable:1")
	assert.True(t, got.Err != nil && got.Code == 1, "unreachable, strict: exit %d, %v", got.Code, got.Err)
}

// Reports that cannot be written cause a message and a failure.
func TestRiemannIncompleteReports(t *testing.T) {
	for strict, want := range map[bool]int{false: host.ExitFailed, true: 0} {
		dir := t.TempDir()
		var o, e bytes.Buffer
		p := &dropin.Program{
			Called: "riemann-load", Args: []string{"-r", dir}, Strict: strict, Out: &o, Err: &e,
			Run: func(_ context.Context, _ *workload.Document, observer dropin.Observer) (*report.Document, error) {
				err := os.RemoveAll(dir)
				assert.True(t, err == nil, "%v", err)
				observer.Interval(load.Snapshot{At: time.Second, Phase: "measurement", Interval: measure.Interval{Phase: "measurement", End: time.Second}})
				return &report.Document{Trust: measure.Trust{OK: true}}, nil
			},
		}
		if code, err := Tool.Main(t.Context(), p); code != want || err != nil || !strings.Contains(e.String(), "the reports are incomplete: ") {
			t.Errorf("strict %v: exit %d, %v, want %d:\n%s", strict, code, err, want, e.String())
		}
	}
}

// Unacked counts all connections, or one with --strict.
func TestRiemannUnacked(t *testing.T) {
	for strict, want := range map[bool]string{false: "3,300\n", true: "3,150\n"} {
		got := runRiemannTool(t, strict, "-w", "2").files["unacked.csv"]
		assert.True(t, strings.Contains(got, want), "strict %v: no %q in\n%s", strict, want, got)
	}
}

// Yammer's averages are updated every five seconds, starting with the first five's rate.
func TestRiemannAverage(t *testing.T) {
	m := meter{strict: true}
	for range 5 {
		m.add(100, time.Second)
	}
	assert.Equal(t, m.minutes(0), 100, "minutes after five seconds")
	for range 60 {
		m.add(0, time.Second)
	}
	if got := m.minutes(0); got < 36.7 || got > 36.9 { // 100/e
		t.Errorf("after a minute of nothing %v, want 36.8", got)
	}
	m.strict = false
	assert.Equal(t, m.minutes(0), 0, "the last minute's mean")
}

// The sample drops old values.
func TestRiemannReservoir(t *testing.T) {
	s := newReservoir()
	for at := range 1200 {
		h := measure.NewHistogram()
		h.RecordN(time.Millisecond, 50)
		if at >= 600 {
			h.Reset()
			h.RecordN(time.Second, 50)
		}
		s.add(h, time.Duration(at)*time.Second)
	}
	assert.Equal(t, len(s.priorityHeap), reservoirSize, "values")
	assert.Equal(t, s.quantile(0.5), time.Second, "the median")
	s = newReservoir()
	for i, v := range []time.Duration{time.Millisecond, time.Second} { // a second apart: both are kept
		h := measure.NewHistogram()
		h.RecordN(v, 2000)
		s.add(h, time.Duration(i)*time.Second)
	}
	low, high := s.quantile(0.3), s.quantile(0.7)
	assert.True(t, low == time.Millisecond && high == time.Second, "three tenths are below %v, seven below %v", low, high)
	s = newReservoir()
	h := measure.NewHistogram()
	for _, v := range []time.Duration{time.Millisecond, 2 * time.Millisecond, 3 * time.Millisecond, 5 * time.Millisecond} {
		h.Record(v)
	}
	s.add(h, time.Second)
	for q, want := range map[float64]time.Duration{0.1: time.Millisecond, 0.5: 2500 * time.Microsecond, 0.75: 4500 * time.Microsecond, 0.99: 5 * time.Millisecond} {
		got := s.quantile(q)
		assert.True(t, (got-want).Abs() <= want/1000, "the %v quantile is %v, want %v", q, got, want)
	}
}

// The remainder at the end of a run has its own second, even if it is very short.
func TestRiemannShortRemainder(t *testing.T) {
	dir := t.TempDir()
	m, f := newRiemannMetrics(&riemannOptions{batch: 1, connections: 1, workers: 1}, false), newRiemannFiles(dir)
	for _, m.at = range []time.Duration{time.Second, 2 * time.Second, 2020 * time.Millisecond} {
		f.row(m)
	}
	assert.OK(t, f.close())
	got, err := os.ReadFile(filepath.Join(dir, "unacked.csv"))
	want := gaugeHeader + "\n1,0\n2,0\n3,0\n"
	assert.True(t, err == nil && string(got) == want, "got %q, %v, want %q", got, err, want)
}
