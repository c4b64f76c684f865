//go:build conformance

package acceptance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/kafkatest"
)

// This file compares carronade in the place of one of Kafka's tools with the
// tool itself: the same arguments to both, against the same broker.

// A golden is one set of arguments for a tool of Kafka and for carronade in its place.
type golden struct {
	Name, Tool string
	// Args are the arguments of both sides. BROKER is the broker's address, TOPIC a
	// topic of one partition, different for each side, DIR a folder of the set.
	Args   string
	Strict bool // carronade runs with --strict
	Linked bool // carronade runs by a link with the tool's name
	// Fill is how many records a side's topic has before; a share group begins at the first. Files are those
	// of the folder. Records is how many records a side leaves.
	Fill    int
	Files   map[string]string
	Records *int64
	Form    string // of lines of stdout
	// Same are fields, as LINE.FIELD, whose values must be equal. Factors are fields that may differ by a
	// factor (values below 1 count as 1 in the fields of millis). For fields in Subset, our values must be
	// a subset of Kafka's, except those that begin with carronade.
	Same    []string
	Factors map[string]float64
	Subset  []string
	Says    string // what both must print on the same stream, ignoring blanks: a message about wrong usage
	Code    int    // exit code of both
	Exact   bool   // the same stderr, byte for byte
}

// A form is a line that a tool prints, from its beginning to its end. A named group is a field.
type form struct {
	name string
	re   *regexp.Regexp
	// many: the number of lines of this form depends on time. It is not compared, but must be at least least.
	many  bool
	least int
}

// line makes a form. many makes one whose number of lines depends on time and may be
// 0; atLeast makes one with at least n lines.
func line(name, re string) form {
	return form{name: name, re: regexp.MustCompile(`\A(?:` + re + `)\z`)}
}

func many(name, re string) form { return atLeast(0, name, re) }

func atLeast(n int, name, re string) form {
	f := line(name, re)
	f.many, f.least = true, n
	return f
}

// A side is the output of one of the two.
type side struct {
	who       string
	code      int
	out, errs string
	lines     []string            // names of the lines' forms, without those of many
	fields    map[string][]string // by LINE.FIELD, in the order of the lines
}

// TestGoldens runs the sets, each against the broker that all tests share.
func TestGoldens(t *testing.T) {
	t.Parallel()
	for _, g := range testkit.Table[golden](t, "testdata/goldens.yaml") {
		t.Run(g.Tool+"/"+strings.ReplaceAll(g.Name, " ", "-"), func(t *testing.T) { t.Parallel(); g.compare(t, kafkatest.Shared(t)) })
	}
}

// compare runs a set once on both sides, one after the other. So the result of a set must not depend on how
// busy the machine is: speeds are compared only by factors that are smaller than the effect of a wrong
// schedule, limit or unit, and no set may give up within the seconds that a JVM may take to start.
func (g *golden) compare(t *testing.T, broker *kafkatest.Cluster) {
	t.Helper()
	dir := t.TempDir()
	theirs := g.runSide(t, broker, dir, "Kafka's", func(ctx context.Context, args []string) *exec.Cmd {
		return kafkatest.ToolCommand(t, ctx, "", goldenClasses[g.Tool], args...)
	})
	our := g.runSide(t, broker, dir, carronadeSide, func(ctx context.Context, args []string) *exec.Cmd {
		flags := []string{"--generation", "4.3"}
		if g.Strict {
			flags = append(flags, "--strict")
		}
		return g.ourCommand(t, ctx, append(flags, args...))
	})
	if !t.Failed() {
		for _, text := range g.differences(t, &theirs, &our) {
			t.Error(text)
		}
	}
	if t.Failed() {
		t.Logf("Kafka's:\n%s%s\nours:\n%s%s", theirs.out, theirs.errs, our.out, our.errs)
	}
}

func (g *golden) differences(t *testing.T, theirs, our *side) (found []string) {
	t.Helper()
	add := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	if !slices.Equal(theirs.lines, our.lines) {
		add("Kafka's tool prints %q:\n%s\nours %q:\n%s%s", theirs.lines, theirs.out, our.lines, our.out, our.errs)
		return found
	}
	if g.Exact && theirs.errs != our.errs {
		add("Kafka's tool says\n%s\nours\n%s", theirs.errs, our.errs)
	}
	for _, name := range g.Same {
		if !slices.Equal(theirs.fields[name], our.fields[name]) || len(our.fields[name]) == 0 {
			add("%s: Kafka's tool says %q, ours %q", name, theirs.fields[name], our.fields[name])
		}
	}
	if a, b := theirs.where(g.Says), our.where(g.Says); a != b {
		add("Kafka's tool says %q on %s, ours on %s", g.Says, a, b)
	}
	for _, name := range g.Subset {
		for _, value := range our.fields[name] {
			if !slices.Contains(theirs.fields[name], value) && !strings.HasPrefix(value, "carronade:") {
				add("%s: Kafka's tool has no %s", name, value)
			}
		}
	}
	for name, factor := range g.Factors {
		a, b := theirs.number(t, name), our.number(t, name)
		if slices.Contains(millis, name[strings.LastIndexByte(name, '.')+1:]) {
			a, b = math.Max(a, 1), math.Max(b, 1)
		}
		if larger := math.Max(a, b); larger > math.Min(a, b)*factor {
			add("%s: Kafka's tool says %g, ours %g; more than a factor of %g apart", name, a, b, factor)
		}
	}
	return found
}

// millis are fields in milliseconds, which may be 0.
var millis = []string{"avg", "max", "p50", "p95", "p99", "p999"}

// where names the streams that contain a message.
func (s *side) where(message string) string {
	var found []string
	for name, text := range map[string]string{"stdout": s.out, "stderr": s.errs} {
		if strings.Contains(unspaced(text), unspaced(message)) {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return strings.Join(found, " and ")
}

func (g *golden) ourCommand(t *testing.T, ctx context.Context, args []string) *exec.Cmd { //nolint:revive // the test comes first
	t.Helper()
	cmd := exec.CommandContext(ctx, program, slices.Concat([]string{"as", g.Tool}, args)...)
	if g.Linked {
		link := filepath.Join(t.TempDir(), g.Tool+".sh")
		assert.OK(t, os.Symlink(program, link))
		cmd = exec.CommandContext(ctx, link, args...)
	}
	home := t.TempDir()
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_DATA_HOME="+home, "XDG_CACHE_HOME="+home, "NO_COLOR=1")
	return cmd
}

// carronadeSide is the name of the side under test.
const carronadeSide = "ours"

// runSide runs one of the two to its end.
func (g *golden) runSide(t *testing.T, broker *kafkatest.Cluster, dir, who string, command func(context.Context, []string) *exec.Cmd) side {
	t.Helper()
	topic := broker.CreateTopic(t, 1, 1)
	for name, text := range g.Files {
		writeFile(t, filepath.Join(dir, name), strings.ReplaceAll(text, "BROKER", broker.Bootstrap()))
	}
	if g.Fill > 0 {
		fillTopic(t, broker, topic, g.Fill)
	}
	if strings.Contains(g.Tool, "share") && g.Fill > 0 {
		broker.Tool(t, "kafka.admin.ConfigCommand", "--alter", "--entity-type", "groups", "--entity-name", topic+"-share", "--add-config", "share.auto.offset.reset=earliest")
	}
	ctx, cancel := context.WithTimeout(t.Context(), runTimeout)
	defer cancel()
	var args []string
	for arg := range strings.FieldsSeq(g.Args) {
		args = append(args, strings.NewReplacer("BROKER", broker.Bootstrap(), "TOPIC", topic, "DIR", dir).Replace(arg))
	}
	cmd := command(ctx, args)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := testkit.Launch(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	s := side{who: who, out: out.String(), errs: errs.String()}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		t.Fatalf("%s: still ran after %v\n%s%s", who, runTimeout, s.out, s.errs)
	case errors.As(err, &exit):
		s.code = exit.ExitCode()
	case err != nil:
		t.Fatalf("%s: %v", who, err)
	}
	// A generator that is too slow on a busy machine has exit code 3.
	late := who == carronadeSide && s.code == 3 && g.Code == 0
	assert.True(t, s.code == g.Code || late, "%s: exit %d, want %d", who, s.code, g.Code)
	assert.True(t, s.where(g.Says) != "", "%s does not print %q", who, g.Says)
	assert.OK(t, s.parse(goldenForms[g.Form]), "%s", who)
	if g.Records != nil && !t.Failed() {
		assert.Equal(t, broker.EndSum(t, topic), *g.Records, "%s: records in the topic", who)
	}
	return s
}

// unspaced is a text without blanks: Kafka's tools wrap their messages.
func unspaced(s string) string { return strings.Join(strings.Fields(s), "") }

// parse parses stdout by forms. Without forms stdout is ignored: each side has its own usage text.
func (s *side) parse(forms []form) error {
	s.fields = make(map[string][]string)
	if len(forms) == 0 {
		return nil
	}
	counts := make(map[string]int)
	for n, text := range strings.SplitAfter(s.out, "\n") {
		if text == "" {
			continue
		}
		bare, ended := strings.CutSuffix(text, "\n")
		i := slices.IndexFunc(forms, func(f form) bool { return f.re.MatchString(bare) })
		if i < 0 || !ended {
			return fmt.Errorf("line %d of stdout has no known form: %q", n+1, text)
		}
		f := forms[i]
		counts[f.name]++
		found := f.re.FindStringSubmatch(bare)
		for k, field := range f.re.SubexpNames() {
			if field != "" {
				s.fields[f.name+"."+field] = append(s.fields[f.name+"."+field], found[k])
			}
		}
		if !f.many {
			s.lines = append(s.lines, f.name)
		}
	}
	for _, f := range forms {
		if got := counts[f.name]; got < f.least {
			return fmt.Errorf("%d lines of stdout have the form %q, want at least %d", got, f.name, f.least)
		}
	}
	return nil
}

func (s *side) number(t *testing.T, name string) float64 {
	t.Helper()
	texts := s.fields[name]
	assert.Must(t, len(texts) > 0, "%s: no line has %s:\n%s", s.who, name, s.out)
	x := assert.Value(strconv.ParseFloat(texts[len(texts)-1], 64))(t, "%s: %s", s.who, name)
	return x
}

// producerForms are the lines of kafka-producer-perf-test 4.3.
var producerForms = []form{
	many("window", `(?P<records>\d+) records sent, (?P<rate>\d+\.\d) records/sec \((?P<mb>\d+\.\d\d) MB/sec\), (?P<avg>\d+\.\d) ms avg latency, (?P<max>\d+\.\d) ms max latency\.`),
	line("total", `(?P<records>\d+) records sent, `+producerRates),
	line("steady", `(?P<records>\d+) steady state records sent, `+producerRates),
	line("warmup", `Warmup first (?P<records>\d+) records\. Steady state results will print after the complete test summary\.`),
	line("reading", `Reading payloads from: /.+`),
	line("read", `Number of records read: (?P<records>\d+)`),
	line("deprecated", `Option --producer(-props|\.config) has been deprecated and will be removed in a future version\. Use --command-(property|config) instead\.`),
}

// steadyForms are those of a run with a warm-up.
var steadyForms = slices.Concat(producerForms, []form{line("in steady state", `In steady state\.`)})

// producerForms2018 are those of 1.1, whose window prints the maximum without a unit.
var producerForms2018 = []form{
	many("window", `(?P<records>\d+) records sent, (?P<rate>\d+\.\d) records/sec \((?P<mb>\d+\.\d\d) MB/sec\), (?P<avg>\d+\.\d) ms avg latency, (?P<max>\d+\.\d) max latency\.`),
	line("total", `(?P<records>\d+) records sent, `+producerRates),
}

// producerMetrics are the table of --print-metrics. Each client has its own rows.
var producerMetrics = []form{
	line("blank", ``),
	line("head", `Metric Name +Value`),
	atLeast(5, "metric", `(?P<name>[a-z-]+:[a-z0-9-]+):\{client-id=[^}]+\} +: (-?\d+\.\d{3}|NaN|-?Infinity)`),
	atLeast(1, "words", `(?P<name>app-info:[a-z-]+):\{client-id=[^}]+\} +: .+`),
}

const producerRates = `(?P<rate>\d+\.\d{6}) records/sec \((?P<mb>\d+\.\d\d) MB/sec\), (?P<avg>\d+\.\d\d|NaN) ms avg latency, (?P<max>\d+\.\d\d) ms max latency, ` +
	`(?P<p50>\d+) ms 50th, (?P<p95>\d+) ms 95th, (?P<p99>\d+) ms 99th, (?P<p999>\d+) ms 99\.9th\.`

// The lines of kafka-consumer-perf-test 4.3.
const (
	consumerStamp   = `\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3}`
	consumerColumns = `data\.consumed\.in\.MB, MB\.sec, data\.consumed\.in\.nMsg, nMsg\.sec, rebalance\.time\.ms, fetch\.time\.ms, fetch\.MB\.sec, fetch\.nMsg\.sec`
	consumerValues  = `(?P<mb>\d+\.\d{4}), (?P<mbs>\d+\.\d{4}), (?P<messages>\d+), (?P<rate>\d+\.\d{4}), (?P<rebalance>\d+), (?P<fetch>\d+), (?P<fetchmbs>\d+\.\d{4}), (?P<fetchrate>\d+\.\d{4})`
)

var (
	consumerHeader = line("header", `start\.time, end\.time, `+consumerColumns)
	consumerTotal  = line("total", consumerStamp+`, `+consumerStamp+`, `+consumerValues)
	consumerLate   = line("late", `WARNING: Exiting before consuming the expected number of records: timeout \((?P<ms>\d+) ms\) exceeded\. You can use the --timeout option to increase the timeout\.`)
	consumerOld    = line("deprecated", `Warning: --messages is deprecated\. Use --num-records instead\.`)

	consumerForms   = []form{consumerHeader, consumerTotal, consumerLate, consumerOld}
	consumerDetails = []form{line("header", `time, threadId, `+consumerColumns), atLeast(1, "row", consumerStamp+`, 0, `+consumerValues), consumerLate}
	consumerMetrics = []form{consumerHeader, consumerTotal, line("blank", ``), line("head", `Metric Name +Value`), consumerMetric}
	consumerMetric  = atLeast(5, "metric", `(?P<name>[a-z-]+:[a-z0-9.-]+):\{client-id=[^}]+\} +: (-?\d+\.\d{3}|NaN|-?Infinity|[^ ].*)`)
)

// latencyForms are the lines of kafka-e2e-latency 4.3.
var latencyForms = []form{
	line("made", `Topic "[^"]+" does not exist\. Will create topic with 1 partition\(s\) and replication factor = 1`),
	line("deprecated", `WARNING: Positional argument usage is deprecated and will be removed in Apache Kafka 5\.0\. Please use named arguments instead: --bootstrap-server, --topic, --num-records, --producer-acks, --record-size, --command-config`),
	line("thousandth", `(?P<i>\d+)\t(?P<ms>\d+\.\d+)`),
	line("mean", `Avg latency: (?P<ms>\d+\.\d{4}) ms`),
	line("percentiles", `Percentiles: 50th = (?P<p50>\d+), 99th = (?P<p99>\d+), 99\.9th = (?P<p999>\d+)`),
}

// shareForms are the lines of kafka-share-consumer-perf-test 4.3, whose columns have another order.
var shareForms = []form{
	line("header", `start\.time, end\.time, data\.consumed\.in\.MB, MB\.sec, nMsg\.sec, data\.consumed\.in\.nMsg, fetch\.time\.ms`),
	line("total", shareValues),
	line("consumer", `Share consumer (?P<i>\d+) having client id (?P<id>\S+) consumption metrics- `+shareValues),
	consumerLate, consumerOld,
}

// shareDetails are those of --show-detailed-stats, shareMetrics of --print-metrics.
var (
	shareDetails = slices.Concat(shareForms, []form{atLeast(1, "row", shareValues+` for share consumer \d+`)})
	shareMetrics = slices.Concat(shareForms, []form{line("blank", ``), line("head", `Metric Name +Value`), consumerMetric})
)

const shareValues = consumerStamp + `, ` + consumerStamp + `, (?P<mb>\d+\.\d{4}), (?P<mbs>\d+\.\d{4}), (?P<rate>\d+\.\d{4}), (?P<messages>\d+), (?P<fetch>\d+)`

// goldenForms are the forms that testdata/goldens.yaml names.
var goldenForms = map[string][]form{
	"producer": producerForms, "producer steady": steadyForms, "producer metrics": slices.Concat(producerForms, producerMetrics),
	"consumer": consumerForms, "consumer details": consumerDetails, "consumer metrics": consumerMetrics,
	"consumer dates": {consumerHeader, line("total", strings.ReplaceAll(`STAMP, STAMP, `, "STAMP", `\d{8}T\d{6}\.\d{3}(Z|[+-]\d{4})`)+consumerValues)},
	"latency":        latencyForms,
	"share":          shareForms, "share details": shareDetails, "share metrics": shareMetrics,
}

// goldenClasses are the classes of Kafka's tools.
var goldenClasses = map[string]string{
	"kafka-producer-perf-test": "ProducerPerformance", "kafka-consumer-perf-test": "ConsumerPerformance",
	"kafka-e2e-latency": "EndToEndLatency", "kafka-share-consumer-perf-test": "ShareConsumerPerformance",
}

// fillTopic puts n records of 100 bytes into a topic.
func fillTopic(t *testing.T, broker *kafkatest.Cluster, topic string, n int) {
	t.Helper()
	run(t, "run", topicURL(broker, topic), "--count", strconv.Itoa(n), "--size", "100", "--acks", "all", "--quiet").wantOneOf(t, 0, 3)
}
