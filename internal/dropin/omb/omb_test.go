package omb

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"carronade/internal/advice"
	"carronade/internal/dropin"
	"carronade/internal/dropin/dropintest"
	"carronade/internal/kafka"
	"carronade/internal/report"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/measure"
	"carronade/protocol"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// resolve checks a workload as a run does.
func resolve(d *workload.Document) error {
	_, err := workload.Resolve([]protocol.Kind{kafka.Kind{}}, d, nil)
	return err
}

// fixed is the tool with a clock that stands still and names without chance.
func fixed() *dropin.Tool {
	at := time.Date(2026, 11, 30, 20, 15, 4, 5e6, time.UTC)
	own := Tool
	own.Main = (&tool{now: func() time.Time { return at }, suffix: func() string { return "AbCdE-_" }}).main
	return &own
}

// folder is a folder with files, of name and text.
func folder(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i < len(files); i += 2 {
		assert.OK(t, os.WriteFile(filepath.Join(dir, files[i]), []byte(files[i+1]), 0o600))
	}
	return dir
}

const (
	driverFile = "name: Kafka\ndriverClass: io.openmessaging.benchmark.driver.kafka.KafkaBenchmarkDriver\nreplicationFactor: 1\ncommonConfig: bootstrap.servers=a:9092\n"
	plainFile  = "name: plain\ntopics: 1\npartitionsPerTopic: 1\nmessageSize: 100\nuseRandomizedPayloads: true\nrandomBytesRatio: 0.5\nrandomizedPayloadPoolSize: 10\n" +
		"subscriptionsPerTopic: 1\nconsumerPerSubscription: 1\nproducersPerTopic: 1\nproducerRate: 1000\ntestDurationMinutes: 1\n"
)

// A file with a field of the wrong type is an error with its line and column; of an unknown field there is a warning.
func TestFiles(t *testing.T) {
	replaced := func(line, by string) string {
		name, _, _ := strings.Cut(line, ":")
		return regexp.MustCompile(`(?m)^`+name+`:.*$`).ReplaceAllLiteralString(plainFile, by)
	}
	driver := func(line, by string) string {
		name, _, _ := strings.Cut(line, ":")
		return regexp.MustCompile(`(?m)^`+name+`:.*$`).ReplaceAllLiteralString(driverFile, by)
	}
	for _, tt := range []struct{ name, load, driver, err, hint, warns string }{
		{name: "a word for a number", load: replaced("producerRate", "producerRate: fast"), err: `w.yaml:11:15: producerRate: "fast" is not a whole number`},
		{name: "a list for a number", load: replaced("topics", "topics: [1, 2]"), err: "w.yaml:2:9: topics: must be one value, not a list"},
		{name: "fields for a text", load: replaced("name", "name: {a: b}"), err: "w.yaml:1:7: name: must be one value, not several fields"},
		{name: "below 0", load: replaced("producerRate", "producerRate: -1"), err: "w.yaml:11:15: producerRate: must not be below 0"},
		{name: "more than Java's int", load: replaced("topics", "topics: 3000000000"), err: "w.yaml:2:9: topics: must be at most 2147483647"},
		{name: "a share above 1", load: replaced("randomBytesRatio", "randomBytesRatio: 50"), err: "w.yaml:6:19: randomBytesRatio: must be at most 1, not 50"},
		{name: "a truth value", load: replaced("useRandomizedPayloads", "useRandomizedPayloads: maybe"), err: `w.yaml:5:24: useRandomizedPayloads: "maybe" is neither true nor false`},
		{name: "an unknown distributor", load: plainFile + "keyDistributor: RANDOM\n", err: `w.yaml:13:17: keyDistributor: "RANDOM" is none of NO_KEY, KEY_ROUND_ROBIN, RANDOM_NANO`},
		{name: "numbers in quotes and with fractions", load: replaced("producerRate", `producerRate: "50000"`) + "consumerBacklogSizeGB: 0\nbacklogDrainRatio: 1e0\nwarmupDurationMinutes: 0.5\n"},
		{name: "an unknown field", load: plainFile + "producerRat: 5\n", warns: "w.yaml:13:1: the field producerRat is unknown and ignored: did you mean producerRate?"},
		{name: "no value", load: plainFile + "payloadFile:\n"},
		{name: "a text", load: "just a text\n", err: "w.yaml:1:1: not fields and values", hint: "topics: 1"},
		{name: "nothing", load: "# nothing\n", err: "w.yaml: the file is empty"},
		{name: "not YAML", load: "name: [\n", err: "w.yaml:"},
		{name: "a missing field", load: replaced("partitionsPerTopic", ""), err: "w.yaml: partitionsPerTopic is missing, or 0", hint: "add partitionsPerTopic: 1"},
		{name: "consumers without a number", load: replaced("consumerPerSubscription", ""), err: "consumerPerSubscription is missing"},
		{name: "a backlog while the rate is searched", load: replaced("producerRate", "producerRate: 0\nconsumerBacklogSizeGB: 1"), err: "a backlog cannot be built while the rate is searched"},
		{name: "no payload", load: replaced("useRandomizedPayloads", ""), err: "w.yaml: payloadFile is missing", hint: "useRandomizedPayloads: true"},
		{name: "a payload file that is not there", load: replaced("useRandomizedPayloads", "payloadFile: no/such.data"), err: "payloadFile no/such.data does not exist", hint: "head -c 100 /dev/urandom > no/such.data"},
		{name: "a payload file of another size", load: replaced("useRandomizedPayloads", "payloadFile: testdata/kafka.yaml"), err: "bytes, and messageSize is 100"},
		{name: "a driver as a workload", load: driverFile, err: "w.yaml is a driver file, not a workload", hint: "--drivers"},

		{name: "a workload as a driver", driver: plainFile, err: "d.yaml: driverClass is missing", hint: "name workload files after the flags"},
		{name: "Pulsar", driver: driver("driverClass", "driverClass: io.openmessaging.benchmark.driver.pulsar.PulsarBenchmarkDriver\nclient:\n  serviceUrl: pulsar://localhost:6650"), err: "d.yaml: a driver of Pulsar: only that of Kafka has a counterpart here", hint: "bootstrap.servers"},
		{name: "a system without a name", driver: driver("driverClass", "driverClass: com.example.OwnDriver"), err: "a driver of OwnDriver"},
		{name: "no brokers", driver: driver("commonConfig", "commonConfig: acks=1"), err: "d.yaml: bootstrap.servers is missing", hint: "bootstrap.servers=localhost:9092"},
		{name: "no replicas", driver: driver("replicationFactor", ""), err: "replicationFactor is missing", hint: "replicationFactor: 3"},
		{name: "too many replicas", driver: driver("replicationFactor", "replicationFactor: 40000"), err: "d.yaml:3:20: replicationFactor: must be at most 32767"},
		{name: "properties as fields", driver: driverFile + "producerConfig:\n  acks: all\n", err: "d.yaml:6:3: producerConfig: must be one value, not several fields: properties are lines of one text"},
		{name: "a line without =", driver: driverFile + "producerConfig: |\n  acks=1\n  hunter2\n", err: "d.yaml:5:17: producerConfig: line 2: it has no ="},
		{name: "a property with a wrong value", driver: driverFile + "producerConfig: linger.ms=soon\n", err: "d.yaml: producerConfig: client property linger.ms: want a number of milliseconds"},
		{name: "clients that differ", driver: driverFile + "producerConfig: client.id=p\nconsumerConfig: client.id=c\n", warns: "d.yaml: client.id differs between consumerConfig and producerConfig"},
		{name: "an unknown field of a driver", driver: driverFile + "zoneAware: true\n", warns: "d.yaml:5:1: the field zoneAware is unknown and ignored"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.load == "" {
				tt.load = plainFile
			}
			if tt.driver == "" {
				tt.driver = driverFile
			}
			dir := folder(t, "w.yaml", tt.load, "d.yaml", tt.driver)
			got := dropintest.Run(t.Context(), t, fixed(), dropin.Program{Args: []string{"--check", "-d", filepath.Join(dir, "d.yaml"), filepath.Join(dir, "w.yaml")}, Resolve: resolve}, nil)
			said := strings.ReplaceAll(got.Out+got.Errs, dir+"/", "")
			if got.Err != nil {
				said += strings.ReplaceAll(fmt.Sprintf("error: %v\nhint: %s", got.Err, advice.Hint(got.Err)), dir+"/", "")
			}
			assert.True(t, (got.Code == 0) == (tt.err == ""), "exit %d:\n%s", got.Code, said)
			assert.Has(t, said, tt.err, tt.hint, tt.warns)
			assert.True(t, !strings.Contains(said, "hunter2"), "a line is quoted:\n%s", said)
			assert.True(t, tt.warns != "" || !strings.Contains(said, "warning:"), "a warning:\n%s", said)
		})
	}
}

// Every shape of load that OMB's own workload files have becomes a workload that a run accepts, with what its
// fields ask for.
func TestShapes(t *testing.T) {
	t.Chdir(folder(t, "kafka.yaml", string(assert.Value(os.ReadFile("testdata/kafka.yaml"))(t)), "message", strings.Repeat("m", 1024)))
	args := []string{"--check", "--drivers", "kafka.yaml"}
	var want [][]string
	shape := func(topics, partitions, size, groups, consumers, producers, rate int, more string, flags ...string) {
		name := fmt.Sprintf("%02d.yaml", len(want))
		content, payload := "payloadFile: message", "--payload file:message "
		if size != 1024 || producers > 1 {
			content = "useRandomizedPayloads: true\nrandomBytesRatio: 0.5\nrandomizedPayloadPoolSize: 1000"
			payload = fmt.Sprintf("--size %d --payload 'compressible(0.5)' ", size)
		}
		assert.OK(t, os.WriteFile(name, fmt.Appendf(nil, "name: %d topics / %d partitions / %d b\ntopics: %d\npartitionsPerTopic: %d\nmessageSize: %d\n%s\nsubscriptionsPerTopic: %d\n"+
			"consumerPerSubscription: %d\nproducersPerTopic: %d\nproducerRate: %d\n%s", topics, partitions, size, topics, partitions, size, content, groups, consumers, producers, rate, more), 0o600))
		flags = append(flags, payload, fmt.Sprintf("--create-topic partitions=%d,replicas=3,min.insync.replicas=2 ", partitions), "--profile java ", "--acks all --batch-size 1048576 --linger 1ms ")
		if topics > 1 {
			flags = append(flags, fmt.Sprintf("/test-topic-{0000000..%07d}-AbCdE-_' ", topics-1))
		} else {
			flags = append(flags, "kafka://a:9092,b:9092/test-topic-0000000-AbCdE-_ ")
		}
		switch clients := topics * producers; {
		case clients > 1000:
			flags = append(flags, "--clients 1000 ")
		case topics > 1:
			flags = append(flags, fmt.Sprintf("--clients-per-topic %d ", producers))
		case clients > 1:
			flags = append(flags, fmt.Sprintf("--clients %d ", clients))
		}
		if rate > 0 {
			flags = append(flags, "carronade run ", fmt.Sprintf("--rate %d/s ", rate))
		} else {
			flags = append(flags, "carronade find ", " --budget 10m")
		}
		switch {
		case groups == 0:
			flags = append(flags, "--op produce ")
		case groups > 1 || consumers > 1:
			flags = append(flags, fmt.Sprintf("--op roundtrip --groups %d --members %d ", groups, consumers))
		default:
			flags = append(flags, "--op roundtrip ")
		}
		args, want = append(args, name), append(want, flags)
	}
	const minutes = "testDurationMinutes: 5\n"
	for _, partitions := range []int{1, 3, 6, 16, 100} { // one topic, small and large messages
		shape(1, partitions, 100, 1, 1, 1, 50_000, minutes, "--warmup 60s --for 5m ")
		shape(1, partitions, 1024, 1, 1, 1, 50_000, minutes+"keyDistributor: NO_KEY\n")
	}
	shape(1, 3, 100, 1, 1, 3, 0, minutes) // the rate is searched
	shape(1, 16, 1024, 1, 1, 1, 0, minutes)
	for _, partitions := range []int{100, 10_000} {
		for _, rate := range []int{200_000, 500_000, 1_000_000, 2_000_000} {
			shape(1, partitions, 1024, 1, 4, 4, rate, minutes)
		}
	}
	shape(1, 100, 1024, 1, 4, 4, 200_000, minutes+"consumerBacklogSizeGB: 512\n", "--backlog 512GiB --backlog-drained 99.9998137% --backlog-after 5m ")
	shape(1, 100, 1024, 2, 4, 4, 200_000, "consumerBacklogSizeGB: 10\nbacklogDrainRatio: 0.9\n", "--backlog 5GiB --backlog-drained 90% --backlog-after 8784h ") // without an end
	shape(1, 100, 1024, 3, 4, 4, 200_000, minutes+"consumerBacklogSizeGB: 10\nbacklogDrainRatio: 0.9\n", "--backlog 3495253KiB --backlog-drained 90% ")
	for ratio, share := range map[string]string{"0": "0.0000001%", "0.98765": "98.765%"} { // as exact as the file has it
		shape(1, 100, 1024, 1, 4, 4, 200_000, minutes+"consumerBacklogSizeGB: 10\nbacklogDrainRatio: "+ratio+"\n", "--backlog 10GiB --backlog-drained "+share+" ")
	}
	for _, partitions := range []int{1, 2, 3, 4, 6, 9, 16} {
		shape(10, partitions, 100, 1, 1, 1, 1_000_000, minutes)
	}
	shape(100, 1, 1024, 3, 1, 1, 150_000, "testDurationMinutes: 240\n", "--for 4h ") // several subscriptions
	for _, topics := range []int{100, 500, 1000, 5000, 10_000, 50_000, 100_000, 200_000} {
		shape(topics, 1, 1024, 1, 4, 4, 500_000, minutes)
	}
	for _, n := range []int{20, 100} { // as fast as possible
		shape(1, n, 65_536, 1, n, n, 10_000_000, minutes)
	}
	shape(1, 10, 1024, 0, 0, 1, 10_000, minutes) // only producers
	shape(1, 10, 1024, 1, 1, 2, 10_000, minutes+"keyDistributor: KEY_ROUND_ROBIN\n", "--key 'key-0${(this.last() + 1) % 10000 + 10000}%{9999}' ")
	shape(1, 10, 1024, 1, 1, 1, 10_000, minutes+"keyDistributor: RANDOM_NANO\nwarmupDurationMinutes: 0\n", "--key 'uniform(10000,10)' ")
	shape(1, 1, 100, 1, 1, 1, 50_000, "") // without an end
	shape(1, 1, 100, 1, 1, 1, 50_000, "testDurationMinutes: 0.5\n", "--for 30s ")
	shape(20, 10, 100, 2, 2, 2, 50_000, minutes)

	got := dropintest.Run(t.Context(), t, fixed(), dropin.Program{Args: args, Resolve: resolve}, nil)
	assert.OK(t, got.Err)
	assert.True(t, got.Code == 0 && got.Errs == "", "exit %d: %s%s", got.Code, got.Out, got.Errs)
	n := 0
	for line := range strings.Lines(got.Out) {
		if strings.HasPrefix(line, "  carronade ") {
			assert.Has(t, line, want[n]...)
			n++
		}
	}
	assert.True(t, n == len(want) && n == 49, "%d of %d shapes", n, len(want))
}

// FuzzFields: whatever a file has is taken or refused.
func FuzzFields(f *testing.F) {
	for _, seed := range []string{plainFile, driverFile, "topics: [", "a: &b c", "topics: 1_0", "commonConfig: \"\\\\u12\""} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file := filepath.Join(t.TempDir(), "f.yaml")
		assert.OK(t, os.WriteFile(file, data, 0o600))
		if s, err := readSpec(file, func(string) {}); err == nil {
			assert.True(t, s.topics > 0 && s.size > 0 && s.drained >= 0 && s.drained <= 1, "%+v", s)
		}
		if d, err := readDriver(file, func(string) {}); err == nil {
			assert.True(t, d.servers != "" && d.replicas > 0, "%+v", d)
		}
	})
}

// histogram has n values, of these times and so on.
func histogram(n uint64, times ...time.Duration) *measure.Histogram {
	h := measure.NewHistogram()
	for _, at := range times {
		h.RecordN(at, n)
	}
	return h
}

// measured is the run of a minute of warm-up and twenty seconds of a workload, of which the last interval
// has also the drain.
func measured(_ *workload.Document, o dropin.Observer) (*report.Document, error) {
	o.Opened()
	set := func(ms time.Duration) measure.Set {
		return measure.Set{
			Response: histogram(10_000, 2*time.Millisecond, ms), Service: histogram(100, time.Millisecond),
			SendDelay: histogram(10_000, 30*time.Microsecond, 70*time.Microsecond), EndToEnd: histogram(10_000, 700*time.Microsecond, 3900*time.Microsecond),
		}
	}
	counts := measure.Counts{Sent: 20_000, Acked: 20_000, Consumed: 19_000}
	row := func(phase string, start, within time.Duration, c measure.Counts) measure.Interval {
		return measure.Interval{Phase: phase, Start: start, End: start + 10*time.Second, Within: within, Counts: c, Set: set(4 * time.Millisecond)}
	}
	o.Interval(load.Snapshot{Phase: measure.WarmUp, Interval: row(measure.WarmUp, 0, 10*time.Second, counts), Total: counts})
	o.Interval(load.Snapshot{Phase: measure.Measurement, Rows: []measure.Interval{
		row(measure.WarmUp, 10*time.Second, 0, measure.Counts{Acked: 100}), row(measure.Measurement, 10*time.Second, 10*time.Second, counts),
	}, Total: measure.Counts{Acked: 40_100, Consumed: 38_000}})
	o.Interval(load.Snapshot{Phase: measure.Measurement, Rows: []measure.Interval{
		row(measure.Measurement, 20*time.Second, 5*time.Second, measure.Counts{Acked: 9_000, Consumed: 11_000, Failed: 40, Unknown: 10}), row(measure.Drain, 20*time.Second, 5*time.Second, measure.Counts{Consumed: 50}),
	}, Total: measure.Counts{Acked: 49_100, Consumed: 49_000}})
	answers := measure.NewHistogram()
	answers.RecordN(2*time.Millisecond, 30_000)
	return &report.Document{
		Stopped: load.ByTime, Trust: measure.Trust{OK: true},
		Totals: report.Totals{EventsPerS: 2000},
		Times:  report.Times{Response: measure.Summarize(answers, histogram(1000, 5*time.Second), []float64{75})},
	}, nil
}

// The lines and the result file, of our times and of the tool's own.
func TestLines(t *testing.T) {
	for _, strict := range []bool{false, true} {
		t.Run(fmt.Sprintf("strict %v", strict), func(t *testing.T) {
			name := map[bool]string{false: "ours", true: "strict"}[strict]
			dir := folder(t, "w.yaml", strings.Replace(plainFile, "producerRate: 1000", "producerRate: 150000", 1), "d.yaml", driverFile)
			out := filepath.Join(dir, "r.json")
			got := dropintest.Run(t.Context(), t, fixed(), dropin.Program{Args: []string{"--drivers", filepath.Join(dir, "d.yaml"), "-o", out, filepath.Join(dir, "w.yaml")}, Strict: strict}, measured)
			assert.OK(t, got.Err)
			testkit.Golden(t, filepath.Join("testdata", name+".txt"), strings.ReplaceAll(got.Out, dir+"/", "")+"-- stderr --\n"+strings.ReplaceAll(got.Errs, dir+"/", ""))
			file := string(assert.Value(os.ReadFile(out))(t))
			testkit.Golden(t, filepath.Join("testdata", name+".json"), file)
			dropintest.ReadOMBResult(t, file)
			rate := map[bool]string{false: "150000/s", true: "149992.50037498126/s"}[strict] // the tool's interval is 6667 ns
			assert.Equal(t, got.Last()["rate"], rate, "the rate")
		})
	}
}

// A backlog has the tool's lines, and the settings of its fields: of all groups together, without fractions and a
// time limit with --strict.
func TestBacklog(t *testing.T) {
	for _, tt := range []struct {
		gb     string
		strict bool
		want   string // --backlog, -drained, -after, --drain-timeout, --for
	}{
		{"1", false, "[512MiB 99.9906868% 1m  ]"},
		{"1.5", true, "[512MiB 99.9906868% 1m 8784h ]"},
		{"0.5", true, "[    1m]"},
	} {
		dir := folder(t, "w.yaml", strings.Replace(plainFile, "subscriptionsPerTopic: 1", "subscriptionsPerTopic: 2\nconsumerBacklogSizeGB: "+tt.gb, 1), "d.yaml", driverFile)
		got := dropintest.Run(t.Context(), t, fixed(), dropin.Program{Strict: tt.strict, Args: []string{"-d", filepath.Join(dir, "d.yaml"), "-o", filepath.Join(dir, "r.json"), filepath.Join(dir, "w.yaml")}},
			func(d *workload.Document, o dropin.Observer) (*report.Document, error) {
				o.Opened()
				o.Backlog(report.BacklogBuilding, time.Minute)
				o.Backlog(report.BacklogDraining, 12_340*time.Millisecond)
				o.Backlog(report.BacklogDrained, 3*time.Second)
				return measured(d, o)
			})
		assert.OK(t, got.Err)
		var settings []string
		for _, name := range []string{"backlog", "backlog-drained", "backlog-after", "drain-timeout", "for"} {
			settings = append(settings, got.Last()[name])
		}
		assert.Equal(t, fmt.Sprint(settings), tt.want, tt.gb)
		const at = "20:15:04.005 [main] INFO "
		assert.Has(t, got.Out, at+"WorkloadGenerator - Stopping all consumers to build backlog\n"+at+"LocalWorker - Pausing consumers\n"+
			at+"WorkloadGenerator - --- Completed backlog build in 12.34 s ---\n"+at+"WorkloadGenerator - --- Start draining backlog ---\n"+
			at+"LocalWorker - Resuming consumers\n"+at+"WorkloadGenerator - --- Completed backlog draining in 3.0 s ---\n")
	}
}

// A workload that failed does not end the others, in whatever place it is; the exit code says it, but not with --strict.
func TestFailedRun(t *testing.T) {
	for _, tt := range []struct {
		fails  int // this run
		strict bool
		code   int
	}{{1, false, 2}, {1, true, 0}, {2, false, 2}, {2, true, 0}} {
		dir := folder(t, "1.yaml", plainFile, "2.yaml", plainFile, "d.yaml", driverFile)
		runs := 0
		got := dropintest.Run(t.Context(), t, fixed(), dropin.Program{Strict: tt.strict, Args: []string{"-d", filepath.Join(dir, "d.yaml"), "-o", filepath.Join(dir, "r.json"), filepath.Join(dir, "2.yaml"), filepath.Join(dir, "1.yaml")}},
			func(d *workload.Document, o dropin.Observer) (*report.Document, error) {
				if runs++; runs == tt.fails {
					return nil, fmt.Errorf("no broker")
				}
				return measured(d, o)
			})
		said := got.Errs
		if got.Err != nil { // the program prints it
			said += "error: " + got.Err.Error() + "\n"
		}
		written := filepath.Join(dir, []string{"r-2.json", "r.json"}[tt.fails-1])
		assert.Equal(t, got.Code, tt.code, "exit code of %+v", tt)
		assert.Has(t, got.Out, "ERROR Benchmark - Failed to run the workload 'plain' for driver '", "Writing test result into "+written)
		assert.Has(t, said, "error: no broker\n")
		assert.Value(os.Stat(written))(t)
	}
}

// The address of a worker is HOST:PORT, with http:// before it in OMB's own files.
func TestWorkerAddr(t *testing.T) {
	for worker, want := range map[string]string{"http://load-1:8080/": "load-1:8080", "[::1]:8080": "[::1]:8080", "load-1": "", ":8080": "", "a:b:80": "", "a:70000": "", "a:0": ""} {
		got, err := workerAddr(worker)
		assert.Equal(t, got, want, worker)
		assert.Equal(t, err == nil, want != "", worker)
	}
}

// One machine reads what workers send, with one consumer; a payload file stays where it is.
func TestWorkers(t *testing.T) {
	for _, tt := range []struct{ load, err string }{
		{strings.Replace(plainFile, "consumerPerSubscription: 1", "consumerPerSubscription: 2", 1), "with --workers one machine reads what the others send"},
		{strings.Replace(plainFile, "producerRate: 1000", "producerRate: 0", 1), "producerRate: 0 cannot be searched with --workers"},
		{plainFile + "consumerBacklogSizeGB: 1\n", "with --workers no backlog can be built"},
		{plainFile, ""},
	} {
		dir := folder(t, "w.yaml", tt.load, "d.yaml", driverFile)
		reads, ran := false, dropintest.Settings{}
		p := dropin.Program{Args: []string{"-d", filepath.Join(dir, "d.yaml"), "-w", "http://a:1/,b:2", "-o", filepath.Join(dir, "r.json"), filepath.Join(dir, "w.yaml")}}
		p.Nodes = func(_ context.Context, o dropin.NodesOptions) (*dropin.Nodes, error) {
			assert.Equal(t, strings.Join(o.Addrs, " "), "a:1 b:2", "workers")
			reads = o.Reads
			return &dropin.Nodes{Close: func() {}, Run: func(_ context.Context, d *workload.Document, o dropin.Observer) (*report.Document, error) {
				ran = dropintest.SettingsOf(d)
				r, err := measured(d, o)
				for i, consumed := range []uint64{300, 12_000, 5_000} { // known at the end
					r.Intervals = append(r.Intervals, report.Interval{Phase: []string{measure.WarmUp, measure.Measurement, measure.Measurement}[i], StartS: float64(10 * i), EndS: float64(10*i + 10), WithinS: 5, Counts: measure.Counts{Consumed: consumed}})
				}
				return r, err
			}}, nil
		}
		got := dropintest.Run(t.Context(), t, fixed(), p, nil)
		if tt.err != "" {
			assert.ErrorHas(t, got.Err, tt.err)
			continue
		}
		assert.OK(t, got.Err)
		assert.True(t, reads && ran["op"] == "roundtrip", "reads %v, ran %v", reads, ran)
		assert.Has(t, got.Out, "| Cons rate     NaN msg/s /  NaN MB/s | Backlog:  NaN K |")
		r := dropintest.ReadOMBResult(t, string(assert.Value(os.ReadFile(filepath.Join(dir, "r.json")))(t)))
		assert.Equal(t, fmt.Sprint(r.ConsumeRate, r.Backlog), "[2400 1000] [0 0]", "rates of consuming")
	}
}

// Arguments are those of the tool, in any order, and ours.
func TestArguments(t *testing.T) {
	for _, tt := range []struct{ args, want, err string }{
		{"-d a,b c.yaml -d d -o out x.yaml", "drivers [a b d] workers [] output out workloads [c.yaml x.yaml]", ""},
		{"--drivers=a --workers http://h:1,h:2 w", "drivers [a] workers [http://h:1 h:2] output  workloads [w]", ""},
		{"-d a -- -w", "drivers [a] workers [] output  workloads [-w]", ""},
		{"-d", "", "-d needs a value"},
		{"--check=yes", "", "--check takes no value"},
		{"--driver a", "", "unknown flag --driver"},
		{"--engine java", "", "--engine java: must be wire or client"},
		{"--budget 5", "", "--budget: "},
	} {
		a, err := parseArguments(strings.Fields(tt.args))
		if tt.err != "" {
			assert.ErrorHas(t, err, tt.err)
			continue
		}
		assert.OK(t, err)
		assert.Equal(t, fmt.Sprintf("drivers %v workers %v output %s workloads %v", a.drivers, a.workers, a.output, a.workloads), tt.want)
	}
}

// A search without a rate is followed by a run at what it found; without an answer there is none.
func TestSearch(t *testing.T) {
	for _, holds := range []float64{0, 4321.5} {
		dir := folder(t, "w.yaml", strings.Replace(plainFile, "producerRate: 1000", "producerRate: 0", 1), "d.yaml", driverFile)
		var searched dropintest.Settings
		p := dropin.Program{Args: []string{"-d", filepath.Join(dir, "d.yaml"), "-o", filepath.Join(dir, "r.json"), "--budget", "3m", filepath.Join(dir, "w.yaml")}}
		p.Find = searchOf(holds, &searched)
		got := dropintest.Run(t.Context(), t, fixed(), p, measured)
		for _, name := range []string{"rate", "for", "warmup", "interval"} {
			_, has := searched[name]
			assert.True(t, !has, "the search has a %s", name)
		}
		if holds == 0 {
			assert.ErrorHas(t, got.Err, "no rate was found that holds: too busy")
			assert.True(t, got.Code == 2 && got.Workloads == nil, "exit %d, ran %v", got.Code, got.Workloads)
			continue
		}
		assert.OK(t, got.Err)
		assert.Equal(t, got.Last()["rate"], "4321.5/s", "the rate")
		assert.Has(t, got.Out, "Searching the highest rate that producers and consumers keep up with, in at most 3m\n", "It keeps up with 4321.5 msg/s, and does not with 5000.0 msg/s\n")
	}
}

// The folder of --csv has result files, and the CSV file a line for each.
func TestCSV(t *testing.T) {
	t.Chdir(folder(t, "b.json", `{"topics": 2, "partitions": 3, "messageSize": 100, "producersPerTopic": 1, "consumersPerTopic": 4, "publishRate": [10, 30], "consumeRate": []}`,
		"a.json", `{"topics": 9, "partitions": 3, "messageSize": 100, "producersPerTopic": 1, "consumersPerTopic": 4, "publishRate": [10.4], "consumeRate": [7]}`, "other.txt", "x"))
	got := dropintest.Run(t.Context(), t, fixed(), dropin.Program{Args: []string{"-c", "."}}, nil)
	assert.OK(t, got.Err)
	assert.Has(t, got.Out, "ResultsToCsv - Results extracted into CSV results-1796069704.csv")
	assert.Equal(t, string(assert.Value(os.ReadFile("results-1796069704.csv"))(t)), csvHeader+"\n2,3,100,1,4,10,20,10,30,0,0,0,0\n9,3,100,1,4,10,10,0,10,7,7,0,7\n")
	for _, bad := range []struct{ file, text, err string }{{"c.json", "[]", "c.json is not a result file"}, {"", "", "has no result files"}} {
		dir := folder(t)
		if bad.file != "" {
			dir = folder(t, bad.file, bad.text)
		}
		assert.ErrorHas(t, dropintest.Run(t.Context(), t, fixed(), dropin.Program{Args: []string{"--csv", dir}}, nil).Err, bad.err)
	}
}
