package kafkatools

import (
	"bytes"
	"context"
	"errors"
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
	"carronade/test/testkit/assert"
)

// runProducerTool runs the tool on made-up data: five seconds of 10,000 records of 100 bytes, a tenth of them slower, and a sixth
// second that is cut short, in which one record failed.
func runProducerTool(t *testing.T, p dropin.Program) dropintest.Result {
	t.Helper()
	return dropintest.Run(t.Context(), t, &Producer, p, func(d *workload.Document, observer dropin.Observer) (*report.Document, error) {
		warmed := slices.ContainsFunc(d.Entries, func(e workload.Entry) bool { return e.Name == "warmup" })
		phases := []report.Phase{{Name: measure.Measurement, EndS: 5.5}, {Name: measure.Drain, StartS: 5.5, EndS: 6}}
		show := func(phase string, from, to time.Duration, n, failed uint64) {
			h := measure.NewHistogram()
			h.RecordN(1400*time.Microsecond, n-n/10)
			h.RecordN(11600*time.Microsecond, n/10)
			iv := measure.Interval{
				Phase: phase, Start: from, End: to, Set: measure.Set{Service: h, Response: h},
				Counts: measure.Counts{Sent: n + failed, Acked: n, Failed: failed, Batches: n, Answered: n, Bytes: (n + failed) * 100, AckedBytes: n * 100},
			}
			for i := range phases {
				if phases[i].Name == phase {
					phases[i].Totals.Counts.Add(iv.Counts)
				}
			}
			observer.Interval(load.Snapshot{Phase: phase, Interval: iv, Rows: []measure.Interval{iv}})
		}
		if warmed {
			phases = append([]report.Phase{{Name: measure.WarmUp, EndS: 5}}, phases...)
			phases[1].StartS, phases[1].EndS, phases[2].StartS, phases[2].EndS = 5, 10.5, 10.5, 11
			show(measure.WarmUp, 0, 5*time.Second, 2000, 0)
			show(measure.Measurement, 5*time.Second, 10*time.Second, 10_000, 0)
			show(measure.Measurement, 10*time.Second, 11*time.Second, 2000, 1)
		} else {
			show(measure.Measurement, 0, 5*time.Second, 10_000, 0)
			show(measure.Measurement, 5*time.Second, 6*time.Second, 2000, 1)
		}
		d2 := &report.Document{Stopped: load.ByEvents, Phases: phases, Version: "1", Trust: measure.Trust{OK: true}}
		d2.Failures = []measure.Failure{{Class: "too-large", Text: "no", Events: 1}}
		return d2, nil
	})
}

// grammar is the format of each generation's lines: Java's %d, %.1f, %.2f and %f.
var grammar = map[string]*regexp.Regexp{
	"2018": regexp.MustCompile(`\A((\d+ records sent, \d+\.\d records/sec \(\d+\.\d\d MB/sec\), \d+\.\d ms avg latency, \d+\.\d max latency\.\n)*` +
		`\d+ records sent, \d+\.\d{6}` + summaryRest + `)\z`),
	"4.1": regexp.MustCompile(`\A(` + windowLine + `)*\d+ records sent, \d+\.\d` + summaryRest + `\z`),
	"4.3": regexp.MustCompile(`\A(Option --producer(-props|\.config) has been deprecated .*\n)*(Warmup first \d+ records\. .*\n)?(` + windowLine + `)*(In steady state\.\n(` + windowLine + `)+)?` +
		`\d+ records sent, \d+\.\d{6}` + summaryRest + `(\d+ steady state records sent, \d+\.\d{6}` + summaryRest + `)?\z`),
}

const (
	windowLine  = `\d+ records sent, \d+\.\d records/sec \(\d+\.\d\d MB/sec\), \d+\.\d ms avg latency, \d+\.\d ms max latency\.\n`
	summaryRest = ` records/sec \(\d+\.\d\d MB/sec\), (\d+\.\d\d|NaN) ms avg latency, \d+\.\d\d ms max latency, \d+ ms 50th, \d+ ms 95th, \d+ ms 99th, \d+ ms 99\.9th\.\n`
)

// Lines printed by the tools match the grammar of their generation.
func TestProducerGrammar(t *testing.T) {
	const (
		summary = "10000 records sent, 9680.542110 records/sec (18.46 MB/sec), 27.31 ms avg latency, 247.00 ms max latency, 2 ms 50th, 92 ms 95th, 108 ms 99th, 112 ms 99.9th.\n"
		old     = "561241 records sent, 112248.2 records/sec (214.10 MB/sec), 130.1 ms avg latency, 487.0 max latency.\n"
		steady  = "9000 steady state records sent, 1989.829759 records/sec (0.19 MB/sec), 4.68 ms avg latency, 28.00 ms max latency, 4 ms 50th, 8 ms 95th, 13 ms 99th, 26 ms 99.9th.\n"
	)
	today := strings.Replace(old, "487.0 max", "487.0 ms max", 1)
	for _, tt := range []struct {
		generation, text string
		want             bool
	}{
		{"2018", summary, true},
		{"2018", old + old + summary, true},
		{"2018", today + summary, false},
		{"2018", old, false},
		{"4.1", strings.Replace(summary, "9680.542110", "9680.5", 1), true},
		{"4.1", summary, false},
		{"4.3", today + summary, true},
		{"4.3", "Warmup first 3000 records. Steady state results will print after the complete test summary.\n" + today + "In steady state.\n" + today + summary + steady, true},
		{"4.3", steady, false},
	} {
		assert.Equal(t, grammar[tt.generation].MatchString(tt.text), tt.want, "%s: whether the grammar has\n%s", tt.generation, tt.text)
	}
}

const (
	producerArgs = "--topic t --num-records 12001 --record-size 100 "
	servers      = "--bootstrap-server a:1 "
)

// Every flag of every generation leads to a setting or a message, and lines are those of their generation.
func TestProducerCases(t *testing.T) {
	tested := map[string]bool{}
	dropintest.RunCases(t, "producer", "", func(t *testing.T, c *dropintest.Case) dropintest.Result {
		tested[c.Name] = true
		got := runProducerTool(t, dropin.Program{Args: c.Args, Strict: c.Strict, Generation: c.Generation})
		assert.True(t, c.Data == "" || grammar[c.Data].MatchString(got.Out), "want lines of %s, got\n%s", c.Data, got.Out)
		return got
	})
	for _, f := range producerFlags {
		assert.True(t, tested[f.name], "%s is not tested", f.name)
	}
}

// A record's content is fresh because of the tool, and not because of a flag that may not have been given.
func TestProducerFreshIsTheTools(t *testing.T) {
	from := ""
	p := dropin.Program{Args: strings.Fields(producerArgs + servers + "--throughput -1")}
	dropintest.Run(t.Context(), t, &Producer, p, func(d *workload.Document, _ dropin.Observer) (*report.Document, error) {
		for _, e := range d.Entries {
			if e.Name == "fresh" {
				from = e.Where
			}
		}
		return &report.Document{Stopped: load.ByEvents}, nil
	})
	assert.Equal(t, from, Producer.Name, "where fresh comes from")
}

// With --strict and --generation 2018 all records have one payload. With --strict a value with = is refused.
func TestProducerStrict(t *testing.T) {
	args := strings.Fields(producerArgs + "--throughput -1 --producer-props bootstrap.servers=a:1")
	for generation, want := range map[string]string{"2018": "letters(1)", "": "letters", "4.1": "letters"} {
		got := runProducerTool(t, dropin.Program{Args: args, Strict: true, Generation: generation}).Last()
		assert.True(t, got["payload"] == want && got["fresh"] == "true",
			"%q: payload is %q and fresh %q, want %q and true", generation, got["payload"], got["fresh"], want)
	}
	args = strings.Fields(producerArgs + "--throughput -1 --producer-props bootstrap.servers=a:1 sasl.jaas.config=hunter2=x")
	s := runProducerTool(t, dropin.Program{Args: args})
	assert.True(t, s.Workloads != nil, "refused: %s", s.Errs)
	if s := runProducerTool(t, dropin.Program{Args: args, Strict: true}); s.Workloads != nil || s.Code != 1 || !strings.Contains(s.Errs, "Invalid property: sasl.jaas.config\n") || strings.Contains(s.Errs, "hunter2") {
		t.Errorf("exit %d: %s", s.Code, s.Errs)
	}
}

func TestProducerGenerations(t *testing.T) {
	s := runProducerTool(t, dropin.Program{Args: []string{"--help"}, Generation: "1999"})
	assert.True(t, s.Err != nil && strings.Contains(s.Err.Error(), "2018, 4.1 and 4.3"), "%v", s.Err)
	for _, tt := range []struct{ generation, args, text string }{
		{"4.1", servers, "producer-performance: error: unrecognized arguments: '--bootstrap-server'"},
		{"2018", "--payload-monotonic", "producer-performance: error: unrecognized arguments: '--payload-monotonic'"},
		{"2018", "--topic t --num-records 5 --record-size 5 --throughput 1.5", "could not convert '1.5' to Integer"},
		{"4.1", "--topic t --num-records 0 --record-size 5 --throughput 1", "--num-records should be greater than zero"},
		{"4.1", "--topic t --num-records 5 --record-size 5 --throughput 1", "Either --producer-props or --producer.config must be specified."},
	} {
		s := runProducerTool(t, dropin.Program{Args: strings.Fields(tt.args), Generation: tt.generation})
		if s.Code != 1 || !strings.Contains(strings.Join(strings.Fields(s.Errs), " "), tt.text) || !strings.HasPrefix(s.Errs, "usage: producer-performance [-h] --topic TOPIC --num-records NUM-RECORDS\n                            [--payload-delimiter PAYLOAD-DELIMITER]\n") {
			t.Errorf("%s %s: exit %d:\n%s", tt.generation, tt.args, s.Code, s.Errs)
		}
	}
}

// An interruption before anything is sent ends with the tool's exit code, and an error is passed on.
func TestProducerNoReport(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		ctx  context.Context
		code int
	}{{ctx, 130}, {t.Context(), 0}} { // an error with code 0 exits with 2
		s := dropintest.Run(tt.ctx, t, &Producer, dropin.Program{Args: strings.Fields(producerArgs + servers + "--throughput -1")}, func(*workload.Document, dropin.Observer) (*report.Document, error) {
			return nil, errors.New("connection refused")
		})
		assert.True(t, s.Code == tt.code && (s.Err == nil) == (tt.code == 130) && s.Out == "",
			"exit %d, %v, %q; want exit %d", s.Code, s.Err, s.Out, tt.code)
	}
}

// An ordinary command line causes no warning.
func TestProducerNoRemarks(t *testing.T) {
	s := runProducerTool(t, dropin.Program{Args: strings.Fields(producerArgs + servers + "--throughput 50 --command-property acks=1")})
	assert.True(t, !strings.Contains(s.Errs, "warning: --") && !strings.Contains(s.Errs, "no effect"), "%v", s.Errs)
}

// An invalid topic is refused with Kafka's message: an address without a topic would select another one.
func TestProducerTopicNames(t *testing.T) {
	for name, want := range map[string]string{
		"":                       "the empty string is not allowed",
		"..":                     "'..' is not allowed",
		"t?acks=0":               "'t?acks=0' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'",
		strings.Repeat("t", 250): "is longer than the max allowed length 249",
		"a.B_c-1":                "",
	} {
		s := runProducerTool(t, dropin.Program{Args: []string{"--topic", name, "--num-records", "5", "--record-size", "5", "--throughput", "5", "--bootstrap-server", "a:1"}})
		refused := s.Workloads == nil && s.Code == 1 && strings.Contains(s.Errs, `Exception in thread "main" org.apache.kafka.common.errors.InvalidTopicException: Topic name is invalid: `) && strings.Contains(s.Errs, want)
		assert.Equal(t, refused, (want != ""), "%q: exit %d, %q, ran: %v; want %q", name, s.Code, s.Errs, s.Workloads != nil, want)
	}
	s := runProducerTool(t, dropin.Program{Args: []string{"--topic", "t", "--num-records", "5", "--payload-file", "", "--throughput", "5", "--bootstrap-server", "a:1"}})
	assert.True(t, s.Workloads == nil && s.Code == 1, "a payload file without a name: exit %d, ran: %v", s.Code, s.Workloads != nil)
}

// A blank is a valid expression.
func TestProducerDelimiterIsVerbatim(t *testing.T) {
	file := filepath.Join(t.TempDir(), "records")
	assert.OK(t, os.WriteFile(file, []byte("a b, c, d"), 0o600))
	for delimiter, want := range map[string]string{" ": "4", ", ": "3", ",": "3", `\x20`: "4", ",|b": "4"} {
		s := runProducerTool(t, dropin.Program{Args: []string{"--topic", "t", "--num-records", "5", "--payload-file", file, "--payload-delimiter", delimiter, "--throughput", "5", "--bootstrap-server", "a:1"}})
		assert.Has(t, s.Out, "Number of records read: "+want+"\n")
	}
}

// An error about a surplus argument does not show the arguments after it.
func TestProducerSecretsAreNotPrinted(t *testing.T) {
	for _, args := range [][]string{
		{"--topic", "t", "stray", "--producer-props", `sasl.jaas.config=M required username="u" password="hunter2";`},
		{"--topic", "t", "ssl.key.password=hunter2"},
		{"--topic", "t", "stray", "--password", "hunter2"},
		{"--command-property", "a=1", "--ssl.key.password=hunter2"},
	} {
		s := runProducerTool(t, dropin.Program{Args: args})
		assert.True(t, !strings.Contains(s.Out+s.Errs, "hunter2") && strings.Contains(strings.Join(strings.Fields(s.Errs), " "), "unrecognized arguments: '") && s.Code == 1,
			"%q: exit %d:\n%s", args, s.Code, s.Errs)
	}
}

// Problems are printed for every run, even an interrupted one.
func TestProducerProblems(t *testing.T) {
	for _, tt := range []struct {
		name    string
		stopped load.Reason
		strict  bool
		code    int
	}{
		{"complete", load.ByEvents, false, host.ExitFailed},
		{"complete, strict", load.ByEvents, true, 0},
		{"interrupted", load.Interrupted, false, 130},
		{"interrupted, strict", load.Interrupted, true, 130},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := dropin.Program{Args: strings.Fields(producerArgs + servers + "--throughput -1"), Strict: tt.strict}
			s := dropintest.Run(t.Context(), t, &Producer, p, func(*workload.Document, dropin.Observer) (*report.Document, error) {
				return &report.Document{
					Stopped: tt.stopped, Problems: []string{"the broker went away"}, Trust: measure.Trust{Reasons: []string{"pauses"}},
					Checks:   []report.Check{{Name: "fail-above", Text: "too much"}},
					Failures: []measure.Failure{{Class: "timeout", Text: "no answer", Events: 7}},
				}, nil
			})
			const want = "timeout: no answer (7 records)\nwarning: the broker went away\nwarning: not to be trusted: pauses\nwarning: fail-above: too much\n"
			assert.True(t, s.Code == tt.code && s.Err == nil && s.Errs == want && (s.Out == "") == (tt.stopped == load.Interrupted),
				"exit %d, %v, stdout %q, stderr %q; want exit %d and %q", s.Code, s.Err, s.Out, s.Errs, tt.code, want)
		})
	}
}

// Failed records determine the exit code even if the run is untrusted or a check is undetermined.
func TestProducerFailedAndUntrusted(t *testing.T) {
	for _, tt := range []struct {
		name   string
		failed uint64
		trust  measure.Trust
		checks []report.Check
		code   int
	}{
		{"untrusted", 0, measure.Trust{}, nil, host.ExitUntrusted},
		{"untrusted and failed", 7, measure.Trust{}, nil, host.ExitBroken},
		{"undetermined", 0, measure.Trust{OK: true}, []report.Check{{CannotTell: true}}, host.ExitCannotTell},
		{"undetermined, and failed", 7, measure.Trust{OK: true}, []report.Check{{CannotTell: true}}, host.ExitBroken},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := dropin.Program{Args: strings.Fields(producerArgs + servers + "--throughput -1")}
			s := dropintest.Run(t.Context(), t, &Producer, p, func(*workload.Document, dropin.Observer) (*report.Document, error) {
				d := &report.Document{Stopped: load.ByEvents, Trust: tt.trust, Checks: tt.checks}
				if tt.failed > 0 {
					d.Phases = []report.Phase{{Name: measure.Measurement}}
					d.Phases[0].Totals.Failed = tt.failed
				}
				return d, nil
			})
			assert.True(t, s.Code == tt.code && s.Err == nil, "exit %d, %v, want %d", s.Code, s.Err, tt.code)
		})
	}
}

// The times of --print-metrics cover all phases, as its totals do, and all names
// are those of the Java client. Rates do not divide by the wait for the last answers: ten seconds here.
func TestProducerMetrics(t *testing.T) {
	phase := func(name string, start, end float64, n, ms uint64, perS float64) report.Phase {
		ph := report.Phase{Name: name, StartS: start, EndS: end}
		ph.Totals = report.Totals{Counts: measure.Counts{Sent: n, Batches: n, WireBytes: 100 * n}, SentPerS: &perS, WireBytesPerS: 100 * perS}
		ph.Service = &measure.Summary{Count: n, Mean: float64(ms) * 1e3, Max: float64(ms) * 2e3}
		return ph
	}
	g, _ := producerReading{lines: of43, clientGeneration: of43}.options(map[string][]string{"--num-records": {"4"}, "--record-size": {"1"}, "--throughput": {"-1"}, "--topic": {"t"}, "--bootstrap-server": {"a:1"}}, false)
	assert.OK(t, g.read())
	m := producerMetrics(&report.Document{Phases: []report.Phase{
		phase(measure.WarmUp, 0, 1, 100, 40, 100), phase(measure.Measurement, 1, 2, 300, 20, 200), phase(measure.Drain, 2, 12, 0, 0, 10),
	}}, g)
	for name, want := range map[string]string{
		"record-send-total": "400.000", "record-send-rate": "150.000", "outgoing-byte-rate": "15000.000", "request-total": "400.000", "request-rate": "150.000",
		"request-latency-avg": "25.000", "request-latency-max": "80.000", "record-queue-time-avg": "NaN",
	} {
		assert.Equal(t, m.values["producer-metrics:"+name+":{client-id=perf-producer-client}"], want, "%s", name)
	}
}

// Flags that fit several generations select the lines of the oldest and today's client; a note names the generations.
func TestProducerReadArgs(t *testing.T) {
	const props = "--producer-props bootstrap.servers=a:1"
	for _, tt := range []struct {
		name, generation, args, profile, lines, note string
	}{
		{"of all", "", props + " acks=1", "java", "2018", noteAll},
		{"of all, by a file", "", "--producer.config testdata/client.properties", "java", "2018", noteAll},
		{"of all, with a codec", "", props + " compression.type=lz4 enable.idempotence=true", "java", "2018", noteAll},
		{"of all, in transactions", "", props + " --transactional-id x --transaction-duration-ms 100", "java", "2018", noteAll},
		{"2018", "2018", props, "java1", "2018", ""},
		{"4.1", "4.1", props, "java", "4.1", ""},
		{"4.3", "4.3", props, "java", "4.3", ""},
		{"4.2", "4.2", props, "java", "4.3", ""},
		{"a property that came later", "", props + " delivery.timeout.ms=1000", "java", "4.1", noteTwo},
		{"a codec that came later", "", props + " compression.type=zstd", "java", "4.1", noteTwo},
		{"a codec's level", "", props + " compression.gzip.level=9", "java", "4.1", noteTwo},
		{"an id alone", "", props + " --transactional-id x", "java", "4.1", noteTwo},
		{"a fractional rate", "", props + " --throughput 33.5", "java", "4.1", noteTwo},
		{"a flag of 4.3", "", props + " --warmup-records 5", "java", "4.3", ""},
		{"4.3 alone", "", "--bootstrap-server a:1", "java", "4.3", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := runProducerTool(t, dropin.Program{Args: strings.Fields(producerArgs + "--throughput -1 " + tt.args), Generation: tt.generation})
			assert.Equal(t, s.Last()["profile"], tt.profile, "the profile")
			assert.True(t, grammar[tt.lines].MatchString(s.Out), "lines are not those of %s:\n%s", tt.lines, s.Out)
			note, _, _ := strings.Cut(s.Errs, "\n")
			assert.True(t, (tt.note == "" || note == tt.note) && strings.Contains(s.Errs, "note: these") == (tt.note != ""), "stderr %q, want %q", s.Errs, tt.note)
		})
	}
}

// Above the cluster's rate, the tool's clock starts when its buffer has room: 32 MiB of batches of 16 KiB. The
// times since records were due are on stderr.
func TestProducerLatencyOfSendCall(t *testing.T) {
	var out, errs bytes.Buffer
	o := &producerOptions{topic: "t", records: 1_000_000, throughput: 1_000_000, interval: 5000, generation: of41, clientGeneration: of41, client: &properties{}}
	l := newProducerLines(o, &dropin.Program{Out: &out, Err: &errs})
	for i := range 2 { // 149 records of 100 bytes fit a batch, so 305,152 fit the buffer: at 250,000 a second 1.22 s
		r := measure.NewHistogram()
		r.RecordN(time.Duration(1+3*i)*time.Second, 1_250_000)
		iv := measure.Interval{Start: time.Duration(i) * 5 * time.Second, End: time.Duration(i+1) * 5 * time.Second, Phase: measure.Measurement}
		iv.Response, iv.Service = r, measure.NewHistogram()
		sent := uint64(1_500_000 - 250_000*i) // more than was answered
		iv.Counts = measure.Counts{Sent: sent, Acked: 1_250_000, Bytes: 100 * sent, AckedBytes: 125_000_000}
		l.interval(load.Snapshot{Interval: iv})
	}
	lines := strings.Split(out.String(), "\n")
	assert.True(t, strings.HasSuffix(lines[0], " 1000.0 ms avg latency, 1000.0 ms max latency."), "before the buffer is full: %s", lines[0])
	assert.True(t, strings.HasSuffix(lines[1], " 1220.6 ms avg latency, 1220.6 ms max latency."), "when it is full: %s", lines[1])
	d := &report.Document{}
	d.Totals.EventsPerS, d.Totals.ElapsedS = 250_000, 10
	l.complain(d)
	assert.Has(t, errs.String(), "from when records were due, as in the report, they were 2500.00 ms avg, 4000.00 ms max")
}

func TestBufferRecords(t *testing.T) {
	o := &producerOptions{client: &properties{}}
	assert.Equal(t, bufferRecords(o, 100), 2048*149., "many in a batch")
	assert.Equal(t, bufferRecords(o, 20_000), float64(32<<20)/20_070, "one in a batch")
}

// The first window after a warm-up that ended within an interval lasts for the rest of the interval. The windows of
// the drain last as long as they took.
func TestProducerWindowAfterWarmup(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	o := &producerOptions{interval: 1000, warmup: 904, throughput: 1000, client: &properties{}}
	l := newProducerLines(o, &dropin.Program{Out: &out})
	h := func(n uint64) measure.Set {
		h := measure.NewHistogram()
		h.RecordN(time.Millisecond, n)
		return measure.Set{Service: h, Response: h}
	}
	row := func(phase string, at, within time.Duration, n uint64) measure.Interval {
		return measure.Interval{Phase: phase, Start: at, End: at + time.Second, Within: within, Arrived: n, Counts: measure.Counts{Sent: n, Acked: n}, Set: h(n)}
	}
	show := func(rows ...measure.Interval) { l.interval(load.Snapshot{Interval: rows[0], Rows: rows}) }
	show(row(measure.WarmUp, 0, 904*time.Millisecond, 904), row(measure.Measurement, 0, 96*time.Millisecond, 96))
	show(row(measure.Measurement, time.Second, time.Second, 1000))
	show(row(measure.Measurement, 2*time.Second, 0, 10))
	var got []string
	for line := range strings.Lines(out.String()) {
		if n, rest, ok := strings.Cut(line, " records sent, "); ok {
			rate, _, _ := strings.Cut(rest, " ")
			got = append(got, n+" at "+rate)
		}
	}
	assert.Same(t, strings.Join(got, ", "), "96 at 1000.0, 1000 at 1000.0, 10 at 10.0")
}
