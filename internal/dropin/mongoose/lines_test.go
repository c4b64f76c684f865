package mongoose

import (
	"context"
	"encoding/csv"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"carronade/internal/dropin"
	"carronade/internal/host"
	"carronade/internal/report"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

func matches(expr, text string) bool { return regexp.MustCompile(expr).MatchString(text) }

// The grammar of mongoose's output.
const (
	javaDouble  = `(?:NaN|-?\d+\.\d+(?:E-?\d+)?)`
	tableHead   = `-{120}\n Step Id  \| Timestamp  \|  Op  \|     Concurrency     \|       Count       \| Step  \|   Last Rate    \|  Mean    \|   Mean    \n \(last 10 \|            \| type \|-{21}\|-{19}\| Time  \|-{16}\| Latency  \| Duration  \n symbols\) \|yyMMddHHmmss\|      \| Current  \|   Mean   \|   Success  \|Failed\|  \[s\]  \| \[op/s\] \|\[MB/s\] \|  \[us\]    \|   \[us\]    \n-{10}\|-{12}\|-{6}\|-{10}\|-{10}\|-{12}\|-{6}\|-{7}\|-{8}\|-{7}\|-{10}\|-{11}\n`
	tableRow    = `[ \S]{10}\|\d{12}\|(?:NOOP  |CREATE|READ  |UPDATE|DELETE|LIST  )\|[ \d]{9}\d\|[\d.E-]+ *\|[ \d]{11}\d\|[ \d]{5}\d\|[\d.E-]+ *\|[\d.E-]+ *\|[\d.E-]+ *\|[ \d]{9}\d\|[ \d]{10}\d\n`
	summaryTail = `- Load Step Id: {16}\S+\n  Operation Type: {14}[A-Z]+\n  Node Count: {18}\d+\n  Concurrency: {17}\n    Limit Per Storage Driver:  \d+\n    Actual: {20}\n      Last: {20}\d+\n      Mean: {20}` + javaDouble +
		`\n  Operations Count: {12}\n    Successful: {16}\d+\n    Failed: {20}\d+\n  Transfer Size: {15}\d+(?:\.\d{1,3})?[KMGTPE]?B\n  Duration \[s\]: {16}\n    Elapsed: {19}` + javaDouble + `\n    Sum: {23}` + javaDouble +
		`\n  Throughput \[op/s\]: {11}\n    Last: {22}` + javaDouble + `\n    Mean: {22}` + javaDouble + `\n  Bandwidth \[MB/s\]: {12}\n    Last: {22}` + javaDouble + `\n    Mean: {22}` + javaDouble +
		`\n  Operations Duration \[us\]:    \n` + summaryTimes + `  Operations Latency \[us\]:     \n` + summaryTimes + `\.\.\.\n`
	summaryTimes = `    Avg: {23}` + javaDouble + `\n    Min: {23}\d+\n(?:    LoQ: {23}\d+\n    Med: {23}\d+\n    HiQ: {23}\d+\n|(?:    Quantile [\d.]+: *\d+\n)+)    Max: {23}\d+\n`
	console      = `^(?:(?:` + tableHead + `)?` + tableRow + `)+---\n# Results #{110}\n` + summaryTail + `$`
	traceRow     = `^(?:\d+\.\d+\.\d+\.\d+:\d+)?,[^,\n]+,[0-5],(?:\d|1[0-4]),\d{16},\d*,\d*,\d*,\d*$`
	itemRow      = `^[^,\n]+,[0-9a-f]+,\d+,\d+/[0-9a-f]+$`
)

// seedResults are results from the documentation of the driver.
const seedResults = `- Load Step Id:                linear_20190607.181733.007
  Operation Type:              CREATE
  Node Count:                  1
  Concurrency:                 
    Limit Per Storage Driver:  0
    Actual:                    
      Last:                    1
      Mean:                    0.9955257270693513
  Operations Count:            
    Successful:                2000000
    Failed:                    0
  Transfer Size:               1.907MB
  Duration [s]:                
    Elapsed:                   93.913
    Sum:                       9763.191236
  Throughput [op/s]:           
    Last:                      31365.05419108817
    Mean:                      21505.37634408602
  Bandwidth [MB/s]:            
    Last:                      0.029912046614730996
    Mean:                      0.020509125084005375
  Operations Duration [us]:    
    Avg:                       4881.9910592758015
    Min:                       275
    LoQ:                       880
    Med:                       1426
    HiQ:                       1973
    Max:                       998292
  Operations Latency [us]:     
    Avg:                       4876.804555168968
    Min:                       9
    LoQ:                       879
    Med:                       1424
    HiQ:                       1971
    Max:                       344294
...
`

// The grammar accepts mongoose's output and carronade's.
func TestGrammar(t *testing.T) {
	assert.True(t, matches("^"+summaryTail+"$", seedResults), "the grammar does not accept mongoose's own results")
	for _, broken := range []string{strings.Replace(seedResults, "93.913", "93", 1), strings.Replace(seedResults, "    LoQ:                       880\n", "", 1), strings.Replace(seedResults, "  Node", " Node", 1)} {
		assert.True(t, !matches("^"+summaryTail+"$", broken), "the grammar accepts\n%s", broken)
	}
	for name, args := range map[string][]string{
		"create": nil, "quantiles": {"--output-metrics-quantiles=[0.5,0.99]"}, "read": {"--read", "--item-input-path=t"}, "noop": {"--noop"},
		"often":  {"--output-metrics-average-period=1s", "--output-metrics-average-table-header-period=3"},
		"topics": {"--item-type=path", "--load-op-limit-count=10"}, "list": {"--item-type=path", "--load-op-type=list"},
	} {
		for _, strict := range []bool{false, true} {
			got := runTool(t, dropin.Program{Strict: strict}, args...)
			assert.True(t, matches(console, got.out), "%s, strict %v: %v:\n%s", name, strict, got.err, got.out)
			for line := range strings.Lines(got.out) {
				var widths []int
				for column := range strings.SplitSeq(strings.TrimSuffix(line, "\n"), "|") {
					widths = append(widths, len(column))
				}
				assert.True(t, len(widths) <= 9 || slices.Equal(widths, []int{10, 12, 6, 10, 10, 12, 6, 7, 8, 7, 10, 11}),
					"%s: columns of %d in %q", name, widths, line)
			}
		}
	}
}

// Operations and failures have colors only on a terminal.
func TestColors(t *testing.T) {
	for _, tt := range []struct {
		terminal bool
		args     []string
		want     bool
	}{{true, nil, true}, {false, nil, false}, {true, []string{"--output-color=false"}, false}} {
		got := runTool(t, dropin.Program{Color: tt.terminal}, tt.args...)
		painted := matches(`\|\x1b\[38;5;67mCREATE\x1b\[0m\| +4\|4\.0 +\| +75000\|\x1b\[38;2;\d+;199;0m +10\x1b\[0m\|`, got.out)
		assert.True(t, painted == tt.want && (tt.want || !strings.Contains(got.out, "\x1b")), "%+v:\n%q", tt, got.out)
	}
}

// value is the value after a label of the results.
func value(t *testing.T, out, section, label string) string {
	t.Helper()
	_, out, _ = strings.Cut(out, "# Results")
	_, rest, _ := strings.Cut(out, section)
	m := regexp.MustCompile(`(?m)^ *` + label + `: +(\S+)$`).FindStringSubmatch(rest)
	assert.Must(t, m != nil, "no %s of %s in\n%s", label, section, out)
	return m[1]
}

// The lines have the values that the labels name; with --strict they have the values that mongoose computed.
func TestNumbersOfLines(t *testing.T) {
	const rate = "--load-op-limit-rate=7500"
	right, strict := runTool(t, dropin.Program{}, rate), runTool(t, dropin.Program{Strict: true}, rate)
	// Quantiles are within a thousandth. Two of the trace's acknowledged records
	// are in mongoose's means, 4 and 7 ms after they were due.
	for _, tt := range []struct{ section, label, right, strict string }{
		{"Count", "Successful", "90000", "90000"},
		{"Count", "Failed", "12", "12"},
		{"Throughput", "Mean", "7500.0", "7500.0"},
		{"Throughput", "Last", "7500.0", "7500.0"},
		{"Operations Duration", "Avg", "4333.333333333333", "5500.0"},
		{"Operations Duration", "Min", "3000", "4000"},
		{"Operations Duration", "Med", "3001", "3001"},
		{"Operations Duration", "HiQ", "7000", "7000"},
		{"Operations Latency", "Avg", "3333.3333333333335", "4000.0"},
		{"Operations Latency", "Max", "6000", "5000"},
		{"Duration", "Sum", "390.0", "0.011"},
	} {
		assert.Equal(t, value(t, right.out, tt.section, tt.label), tt.right, "%s %s", tt.section, tt.label)
		assert.Equal(t, value(t, strict.out, tt.section, tt.label), tt.strict, "with --strict %s %s", tt.section, tt.label)
	}
	assert.True(t, right.code == host.ExitBroken && strict.code == host.ExitOK,
		"twelve failed: exit %d, with --strict %d", right.code, strict.code)
	assert.Equal(t, runTool(t, dropin.Program{}, "--load-op-limit-fail-count=20").code, host.ExitOK,
		"twelve failures of twenty allowed: exit")
	s := &step{strict: true, quantiles: []float64{0.5}}
	m := &metrics{succ: 2_000_000, elapsed: 93_913 * time.Millisecond}
	if s.rates(m); m.meanRate != 21505.376344086020 {
		t.Errorf("with --strict the mean rate is %v", m.meanRate)
	}
	s.strict = false
	if s.rates(m); int(m.meanRate) != 21296 {
		t.Errorf("the mean rate is %v", m.meanRate)
	}
	h := measure.NewHistogram()
	h.Record(time.Millisecond)
	h.Record(2 * time.Millisecond)
	assert.Equal(t, s.quantile(h, 0.5), time.Millisecond, "the median of two")
	s.strict = true
	assert.Equal(t, s.quantile(h, 0.5), 2*time.Millisecond, "sorted[int(0.5*2)]")
}

// Bytes are those of values, megabytes are 2^20 bytes, and each record has its batch's time.
func TestBytesAndSums(t *testing.T) {
	total := func(got result) map[string]string {
		all, err := csv.NewReader(strings.NewReader(got.files["metrics.total.csv"])).ReadAll()
		assert.Must(t, err == nil && len(all) == 2, "%v:\n%s", err, got.files["metrics.total.csv"])
		row := make(map[string]string)
		for i, name := range all[0] {
			row[name] = all[1][i]
		}
		return row
	}
	if row := total(runTool(t, dropin.Program{})); row["BWAvg[MB/s]"] != "7.32421875" || row["BWLast[MB/s]"] != "7.32421875" || row["Size"] != "92160000" {
		t.Errorf("got %v", row)
	}
	row := total(runTool(t, dropin.Program{Strict: true}))
	assert.True(t, row["BWAvg[MB/s]"] == "7.68", "with --strict %v", row)
	row = total(runTool(t, dropin.Program{}, "--storage-driver-record-headers=ab:cde", "--storage-driver-record-key-enabled", "--item-data-size=1KB"))
	assert.True(t, row["Size"] == "92160000", "with headers and keys, the values are %v", row)
	m := newMeter(&step{work: writeRecords})
	iv := interval(0, false, false)
	iv.Interval.Service = measure.NewHistogram()
	iv.Interval.Service.RecordN(2*time.Millisecond, 75) // of a hundred records each
	m.interval(iv)
	got := m.metrics(time.Now()).duration
	assert.True(t, got.sum >= 14.999 && got.sum <= 15.001 && got.mean == 2000, "7,500 records of 2 ms took %v s", got.sum)
}

// Times are those of records: a batch's time counts once for each of its records,
// and each scheduled record has a separate response time.
func TestTimesOfRecords(t *testing.T) {
	run := func(t *testing.T, args ...string) string {
		t.Helper()
		t.Setenv("HOME", t.TempDir())
		var out, errs strings.Builder
		p := &dropin.Program{Called: "mongoose", Out: &out, Err: &errs, Args: append([]string{"--storage-driver-limit-concurrency=0", "--output-metrics-average-period=1s"}, args...)}
		p.Run = func(_ context.Context, _ *workload.Document, observer dropin.Observer) (*report.Document, error) {
			iv := interval(0, len(args) > 0, false)
			iv.Interval.Service = measure.NewHistogram()
			iv.Interval.Service.RecordN(2*time.Millisecond, 75)
			iv.Interval.Service.RecordN(12*time.Millisecond, 25)
			for range 75 {
				observer.Completed([]load.Outcome{{Batch: load.Batch{Events: 20}, Sent: time.Second, Done: time.Second + 2*time.Millisecond, Acked: 20}})
			}
			observer.Completed([]load.Outcome{{Batch: load.Batch{Events: 20}, Sent: -1, Done: 9 * time.Second, Failed: 20}})
			for i := range 25 {
				if i == 24 {
					observer.Interval(iv)
				}
				observer.Completed([]load.Outcome{{Batch: load.Batch{Events: 240, Attempt: 1, FirstSent: time.Second}, Sent: time.Second + time.Millisecond, Done: time.Second + 12*time.Millisecond, Acked: 240}})
			}
			return document(), nil
		}
		assert.Value(Tool.Main(t.Context(), p))(t)
		return out.String()
	}
	out := run(t) // 1,500 records of 2 ms and 6,000 of 12
	for label, want := range map[string]string{"Avg": "10000.0", "LoQ": "12000", "Med": "12000", "Min": "2000"} {
		for _, times := range []string{"Operations Latency", "Operations Duration"} {
			got := value(t, out, times, label)
			if x, _ := strconv.ParseFloat(got, 64); got != want && (label != "LoQ" && label != "Med" || x < 11_980 || x > 12_020) {
				t.Errorf("%s %s is %s, want %s", times, label, got, want)
			}
		}
	}
	assert.Equal(t, value(t, out, "Duration", "Sum"), "75.0", "sum of durations")
	out = run(t, "--load-op-limit-rate=7500")
	l, d := value(t, out, "Operations Latency", "Avg"), value(t, out, "Operations Duration", "Avg")
	assert.True(t, l == "10000.0" && d == "4333.333333333333", "at a rate the latency is %s and the duration %s", l, d)
}

// The header line and the rows of the CSV files have the same columns, except in 4.3 with --strict.
func TestCSV(t *testing.T) {
	for _, tt := range []struct {
		name          string
		p             dropin.Program
		args          []string
		head, row     int // columns of metrics.csv
		total         int // of metrics.total.csv
		label, folder string
	}{
		{"4.2", dropin.Program{}, nil, 27, 27, 27, "DurationLoQ[us]", "/.mongoose/4.2.11/log/"},
		{"4.3", dropin.Program{Generation: "4.3"}, nil, 27, 27, 27, "DurationQ_0.25[us]", "/.mongoose/4.3.3/log/"},
		{"4.3, strict", dropin.Program{Generation: "4.3", Strict: true}, nil, 27, 21, 27, "DurationQ_0.25[us]", "/.mongoose/4.3.3/log/"},
		{"other quantiles", dropin.Program{}, []string{"--output-metrics-quantiles=0.9,0.99"}, 25, 25, 25, "DurationQ_0.99[us]", "/.mongoose/4.3.3/log/"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := runTool(t, tt.p, append(tt.args, "--load-step-id=s")...)
			assert.Equal(t, got.dir, tt.folder+"s", "folder of the files")
			read := func(name string, head, row, rows int) []string {
				r := csv.NewReader(strings.NewReader(got.files[name]))
				r.FieldsPerRecord = -1
				all, err := r.ReadAll()
				assert.Must(t, err == nil && len(all) == rows+1 && len(all[0]) == head && len(all[1]) == row,
					"%s: %v, %d lines:\n%s", name, err, len(all), got.files[name])
				assert.True(t, matches(`^"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d,\d{3}",CREATE,1,1,4,\d`, strings.Split(got.files[name], "\n")[1]), "%s: %s", name, got.files[name])
				return all[0]
			}
			read("metrics.csv", tt.head, tt.row, 1)
			head := read("metrics.total.csv", tt.total, tt.total, 1)
			assert.True(t, slices.Contains(head, tt.label), "no %s in %v", tt.label, head)
			assert.True(t, got.files["cli.args.log"] != "" && strings.Contains(got.files["config.yaml"], "\n    limit:\n"),
				"arguments %q and configuration:\n%s", got.files["cli.args.log"], got.files["config.yaml"])
		})
	}
}

// The time above a threshold has separate files, from when enough operations are in flight until fewer are.
func TestThreshold(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	v, err := parse([]string{"--output-metrics-threshold=0.5", "--storage-driver-limit-concurrency=8", "--output-metrics-average-period=2s", "--load-step-id=s"}, t.Logf)
	assert.OK(t, err)
	s := assert.Value(newStep(v, false, "", time.Now(), t.Logf))(t)
	f, _, err := openFiles(s, nil)
	assert.OK(t, err)
	var out strings.Builder
	above := newThreshold(s, f, &out)
	for i, inFlight := range []uint64{3, 4, 8, 4, 3, 8} {
		iv := interval(time.Duration(i)*time.Second, false, false)
		iv.Interval.InFlight = inFlight
		above.interval(iv)
	}
	above.end()
	assert.True(t, matches(`^\S+ I MetricsManagerImpl {13}main {27}MetricsContextImpl\(CREATE-8x1@s\): the threshold of 4 active load operations count is reached, starting the additional metrics accounting\n`+
		`\S+ I MetricsManagerImpl {13}main {27}MetricsContextImpl\(CREATE-8x1@s\): the active load operations count is below the threshold of 4, stopping the additional metrics accounting\n$`, out.String()), "lines:\n%s", out.String())
	for name, want := range map[string]string{
		"metrics.threshold.csv":       `^DateTime.*\n"[^"]+",CREATE,8,1,8,6\.0,15000,2,15360000,2\.0,.*\n$`,
		"metrics.threshold.total.csv": `^DateTime.*\n"[^"]+",CREATE,8,1,4,5\.33\d+,22500,3,23040000,3\.0,.*\n$`,
	} {
		data, err := os.ReadFile(f.path(name))
		assert.True(t, err == nil && matches(want, string(data)), "%s: %v\n%s", name, err, data)
	}
}

// A repeated step id keeps the earlier rows, and the files keep one header line.
func TestAgain(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	for i := range 2 {
		v := assert.Value(parse([]string{"--load-step-id=s"}, t.Logf))(t)
		s := assert.Value(newStep(v, false, "", time.Now(), t.Logf))(t)
		f, again, err := openFiles(s, nil)
		assert.Must(t, err == nil && again == (i == 1), "%v, again: %v", err, again)
		m := newMeter(s)
		m.interval(interval(0, false, false))
		f.total(m.metrics(time.Now()))
	}
	data, _ := os.ReadFile(filepath.Join(home, ".mongoose/4.2.11/log/s/metrics.total.csv"))
	lines := strings.Split(string(data), "\n")
	assert.True(t, len(lines) == 4 && strings.HasPrefix(lines[0], "DateTime") && strings.HasPrefix(lines[2], `"`), "got:\n%s", data)
}

// The trace and the list of items are made from the rows of single records.
func TestTrace(t *testing.T) {
	got := runTool(t, dropin.Program{}, "--output-metrics-trace-persist", "--item-output-file=items.csv", "--item-output-path=topic1", "--load-op-limit-rate=7", "--item-naming-type=serial", "--item-naming-seed=-1", "--item-data-size=1KB")
	us := began.UnixMicro()
	at := func(ms int64) string { return strconv.FormatInt(us+1000*ms, 10) }
	want := "127.0.0.1:9092,topic1/0,1,4," + at(1) + ",4000,3000,,1024\n" +
		"127.0.0.1:9092,topic1/1,1,4," + at(2) + ",7000,5000,,1024\n" +
		"127.0.0.1:9092,topic1/2,1,4," + at(3) + ",1000,1000,,1024\n" +
		"127.0.0.1:9092,topic1/3,1,6," + at(4) + ",2000,1000,,0\n"
	assert.Same(t, got.files["op.trace.csv"], want, "op.trace.csv")
	assert.Same(t, got.files["items.csv"], "topic1/0,0,1024,0/0\ntopic1/1,1,1024,0/0\ntopic1/2,2,1024,0/0\n", "items.csv")
	for _, name := range []string{"op.trace.csv", "items.csv"} {
		expr := map[string]string{"op.trace.csv": traceRow, "items.csv": itemRow}[name]
		for line := range strings.Lines(got.files[name]) {
			assert.True(t, matches(expr, strings.TrimSuffix(line, "\n")), "%s: %s", name, line)
		}
	}
}

// A limit of failures that ends a step causes mongoose's message; an interrupt has
// a separate exit code and prints the results so far.
func TestEnds(t *testing.T) {
	for _, tt := range []struct {
		stopped load.Reason
		strict  bool
		bad     func(*report.Document)
		code    int
		want    string
	}{
		{load.ByFailures, false, nil, host.ExitBroken, `W LoadStepContextImpl {12}main {27}s: failure count \(1\) is more than the configured limit \(100000\), stopping the step\n`},
		{load.ByFailureRate, true, nil, host.ExitOK, `s: failures rate \(1\.0 failures/sec\) is more than success rate \(7500\.0 op/sec\), stopping the step\n`},
		{load.Interrupted, true, nil, host.ExitInterrupted, `\| +7500\| +1\|`},
		{load.Interrupted, false, nil, host.ExitInterrupted, `\| +7500\| +1\|`},
		// Untrusted and failed; undetermined and failed.
		{load.ByTime, false, func(d *report.Document) { d.Trust.OK = false }, host.ExitBroken, `\| +7500\| +1\|`},
		{load.ByTime, false, func(d *report.Document) { d.Checks = []report.Check{{CannotTell: true}} }, host.ExitBroken, `\| +7500\| +1\|`},
	} {
		t.Setenv("HOME", t.TempDir())
		var out, errs strings.Builder
		p := &dropin.Program{Called: "mongoose", Args: []string{"--load-step-id=s", "--load-step-limit-time=1"}, Strict: tt.strict, Out: &out, Err: &errs}
		p.Run = func(_ context.Context, _ *workload.Document, observer dropin.Observer) (*report.Document, error) {
			sendRows(observer)
			observer.Interval(interval(0, false, false))
			d := document()
			d.Stopped = tt.stopped
			if tt.bad != nil {
				tt.bad(d)
			}
			return d, nil
		}
		if code, err := Tool.Main(t.Context(), p); code != tt.code || err != nil || !matches(tt.want, out.String()) || !strings.Contains(out.String(), "# Results") {
			t.Errorf("%s: exit %d, %v:\n%s", tt.stopped, code, err, out.String())
		}
	}
}

// TestReadTimes checks that reading has times: each record that of the poll that it came with, and only records up to the limit.
func TestReadTimes(t *testing.T) {
	for _, tt := range []struct {
		name       string
		args, want []string
	}{
		{"all", nil, []string{"Sum:                       390.0", "Avg:                       4333.333333333333", "Min:                       3000", "HiQ:                       7000", "Max:                       7000"}},
		{"up to a count", []string{"--load-op-limit-count=5000"}, []string{"Avg:                       3000.0", "HiQ:                       3000", "Max:                       3000"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := runTool(t, dropin.Program{}, append([]string{"--read", "--item-input-path=t"}, tt.args...)...)
			for _, want := range tt.want {
				n := strings.Count(got.out, "    "+want+"\n")
				assert.True(t, n != 0 && (n != 1 || strings.HasPrefix(want, "Sum")), "%d times %q in\n%s", n, want, got.out)
			}
			assert.Equal(t, got.errs, "", "stderr")
			assert.Has(t, got.files["metrics.total.csv"], "3000")
		})
	}
}

// TestPolls checks the times of polls: of each lane on its own, the first from the beginning.
func TestPolls(t *testing.T) {
	p := newPolls(10)
	p.arrived(0, []load.Arrival{{Events: 4, At: 100 * time.Millisecond}})
	p.arrived(1, []load.Arrival{{Events: 2, At: 40 * time.Millisecond}, {Events: 1, At: 60 * time.Millisecond}})
	p.arrived(0, []load.Arrival{{Events: 0, At: 150 * time.Millisecond}})
	h := p.take()
	assert.True(t, h.Count() == 7 && h.Max() >= 100*time.Millisecond && h.Min() <= 61*time.Millisecond,
		"got %d times from %v to %v, want 7 from 60ms to 100ms", h.Count(), h.Min(), h.Max())
	p.arrived(0, []load.Arrival{{Events: 100, At: 170 * time.Millisecond}}) // more than the limit
	if h = p.take(); h.Count() != 3 || h.Max() > 21*time.Millisecond {
		t.Errorf("got %d times up to %v, want 3 of 20ms", h.Count(), h.Max())
	}
	h = p.take()
	assert.True(t, h.Count() == 0, "%d times were taken twice", h.Count())
}

// TestGeneration checks which options select the lines of 4.3.
func TestGeneration(t *testing.T) {
	for arg, want := range map[string]bool{
		"--output-metrics-quantiles=0.25,0.5,0.75": true, "--output-metrics-timing-persist=true": true, "--load-op-recycle-mode=false": true,
		"--load-op-recycle=false": false, "--load-op-limit-count=5": false,
	} {
		got := runTool(t, dropin.Program{}, arg)
		is43 := strings.Contains(got.out, "    Quantile 0.25:") && strings.HasPrefix(got.dir, "/.mongoose/4.3.3/log/")
		assert.True(t, is43 == want, "%s: lines of 4.3: %v, want %v:\n%s", arg, is43, want, got.out)
	}
}
