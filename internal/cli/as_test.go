package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"carronade/internal/advice"
	"carronade/internal/cli/cmdutil"

	"carronade/internal/dropin"
	"carronade/internal/fleet"
	"carronade/internal/report"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/protocol"
	"carronade/test/testkit/assert"
)

// Every tool takes the flags that it has in common with the others, and has no flag of its own with such a name.
func TestCommonFlags(t *testing.T) {
	for _, tool := range oldTools() {
		t.Run(tool.Name, func(t *testing.T) {
			own, common, err := tool.Split([]string{"--store", "a.db", "--label", "a=b", "--no-store"})
			assert.True(t, err == nil && len(own) == 0 && len(common.Keep) == 3, "%q is left, %+v, %v", own, common, err)
			var help bytes.Buffer
			p := &dropin.Program{Called: tool.Name, Args: []string{"--help"}, In: strings.NewReader(""), Out: &help, Err: &help}
			assert.Value(tool.Main(t.Context(), p))(t)
			for _, name := range []string{"strict", "generation", "report-json", "store", "no-store", "label"} {
				flags := regexp.MustCompile(`(?m)^\s*\[?--?`+name+`\b[^-]`).FindAllString(help.String(), -1)
				assert.True(t, len(flags) == 1, "the help has %d flags --%s:\n%s", len(flags), name, help.String())
			}
		})
	}
}

// TestUnusable: each node that cannot take part is named.
func TestUnusable(t *testing.T) {
	fine := fleet.Info{Name: "a", Version: fleetVersion()}
	busy := fleet.Info{Name: "b", Version: fleetVersion(), Busy: "7"}
	old := fleet.Info{Name: "c", Version: "0"}
	assert.OK(t, unusable([]fleet.Info{fine}))
	var got []string
	for _, err := range splitErrors(unusable([]fleet.Info{busy, fine, old})) {
		got = append(got, err.Error()+" | "+advice.Hint(err))
	}
	want := "node b is busy with run 7 | wait for its end, or use other nodes\n" +
		"node c has version 0 of carronade, this machine " + fleetVersion() + " | use the same version everywhere"
	assert.Equal(t, strings.Join(got, "\n"), want, "got %q", got)
}

// The job of a load on topics has the number of operations, if there is one.
func TestTopicsJob(t *testing.T) {
	two := dropin.TopicLoad{Op: "delete", Names: []string{"a", "b"}}
	two.Spec.Partitions = 3 // of topics to create
	for _, tt := range []struct {
		name string
		load dropin.TopicLoad
		want int // count
	}{
		{"by name", two, 2},
		{"names made during the load", dropin.TopicLoad{Op: "create", Next: func() string { return "a" }, Times: 7}, 7},
		{"one read repeatedly", dropin.TopicLoad{Op: "read", Names: []string{"a"}, Times: 7}, 7},
		{"without end", dropin.TopicLoad{Op: "read", Names: []string{"a"}, Times: -1, For: time.Second}, -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			job := topicsJob(&tt.load)
			assert.True(t, job.Count == tt.want && job.Op == tt.load.Op && job.For == tt.load.For && job.Partitions == 0,
				"got %+v, want a count of %d", job, tt.want)
		})
	}
}

// A report without the names of its topics, such as an old tool's, cannot be replayed; the error has a hint.
func TestReplayOfTopics(t *testing.T) {
	s := &session{Program: &Program{}}
	err := s.replayTopics(t.Context(), &cmdutil.Settings{}, &report.Document{Op: "topics create", Target: "kafka://b"})
	said := (*protocol.Error)(nil)
	assert.True(t, errors.As(err, &said) && said.Hint == "repeat the original command, or use carronade topics create kafka://b/TOPIC", "got %v", err)
}

// A program that is started under a tool's name behaves like the tool.
func TestCalled(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"", ""},
		{"./carronade run null://", "run null://"},
		{"/opt/kafka/bin/kafka-producer-perf-test.sh --topic t", "as kafka-producer-perf-test --topic t"},
		{"sangrenel", "as sangrenel"},
		{"./bin/kafka-run-class.sh org.apache.kafka.tools.ProducerPerformance --topic t", "as org.apache.kafka.tools.ProducerPerformance --topic t"},
		{"kafka-run-class", "as"},
	} {
		got := called(strings.Fields(tt.args))
		assert.True(t, slices.Equal(got, strings.Fields(tt.want)), "%q is %q, want %q", tt.args, got, tt.want)
	}
}

// Warnings that were printed when the workload was resolved are not printed again.
func TestNewWarnings(t *testing.T) {
	w := &workload.Workload{Warnings: []string{"early"}}
	d := &report.Document{Warnings: []string{"early", "late"}}
	got := newWarnings(w, d)
	assert.True(t, slices.Equal(got, []string{"late"}) && len(d.Warnings) == 2, "got %q of %q", got, d.Warnings)
}

// TestCalibrationFor checks which of several calibrations a report cites, and that it says so if that is of another workload.
func TestCalibrationFor(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	s := &session{Program: &Program{Kinds: Kinds()}}
	workloadOf := func(settings ...string) *workload.Workload {
		t.Helper()
		var d workload.Document
		d.Add("count", "the test's count", "10")
		for i := 0; i < len(settings); i += 2 {
			d.Add(settings[i], "the test's "+settings[i], settings[i+1])
		}
		w := assert.Value(workload.Resolve(s.Kinds, &d, nil))(t)
		return w
	}
	const kafka, riemann, apm = "kafka://127.0.0.1:9092/t", "riemann://127.0.0.1", "apm+http://127.0.0.1"
	got := s.calibrationFor(workloadOf("target", kafka), 100)
	assert.Must(t, got == nil, "without a calibration: got %+v", got)
	keep := func(processors int, host string, c report.Calibration) {
		t.Helper()
		c.Version = "v"
		assert.Value(keepCalibration(&calibration{Schema: calibrationSchema, Host: host, Processors: processors, Calibration: c}))(t)
	}
	for i, c := range []report.Calibration{
		{EventBytes: 100, NullPerS: 1}, // of an older program
		{EventBytes: 2000, Target: "kafka", Clients: 1, NullPerS: 1},
		{EventBytes: 2000, Target: "kafka", Clients: 8, NullPerS: 1},
		{EventBytes: 84, Target: "riemann", Clients: 1},
	} {
		c.At = time.Unix(int64(i), 0)
		keep(load.Processors(), hostName(), c)
	}
	keep(load.Processors()+1, hostName(), report.Calibration{EventBytes: 500, Target: "kafka", Clients: 2})
	keep(load.Processors(), hostName()+".other", report.Calibration{EventBytes: 501, Target: "kafka", Clients: 2})

	for _, tt := range []struct {
		name             string
		of               *workload.Workload
		bytes, wantBytes float64
		clients          int
		instead          string
	}{
		{"the default", workloadOf("target", kafka), 100, 100, 0, ""},
		{"a quarter larger", workloadOf("target", kafka, "size", "125"), 125, 100, 0, ""},
		{"of a third size", workloadOf("target", kafka, "size", "200"), 200, 100, 0, "carronade calibrate --target kafka --size 200"},
		{"large events", workloadOf("target", kafka, "size", "2000"), 2000, 2000, 1, ""},
		{"many clients", workloadOf("target", kafka, "size", "2000", "clients", "8"), 2000, 2000, 8, ""},
		{"other clients", workloadOf("target", kafka, "clients", "3"), 100, 2000, 8, "carronade calibrate --target kafka --clients 3"},
		{"nothing is sent", workloadOf("target", "null://", "size", "2000"), 2000, 2000, 1, ""},
		{"events of unknown size", workloadOf("target", kafka), 0, 100, 0, ""},
		{"Riemann", workloadOf("target", riemann), 90, 84, 1, ""},
		{"a kind without one", workloadOf("target", apm, "clients", "1"), 1500, 2000, 1, "carronade calibrate --target apm --clients 1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := s.calibrationFor(tt.of, tt.bytes)
			assert.Must(t, got != nil, "got none")
			assert.True(t, got.EventBytes == tt.wantBytes && got.Clients == tt.clients && got.Instead == tt.instead,
				"got %.0f bytes, %d clients, instead %q; want %.0f, %d, %q",
				got.EventBytes, got.Clients, got.Instead, tt.wantBytes, tt.clients, tt.instead)
		})
	}
	if got := keptCalibrations(); len(got) != 4 || !got[0].isDefault() || got[1].Target != "riemann" {
		t.Errorf("got %+v, want four, the default first, then the newest", got)
	}
}

// The number of stored results is limited: the oldest are dropped. An unreadable file has none.
func TestGeneratesAreKept(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	if got := keptGenerates(); len(got) != 0 {
		t.Fatalf("got %v without a file", got)
	}
	all := map[string]report.Generates{}
	at := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	for i := range maxGenerates + 5 {
		all[fmt.Sprintf("key-%03d", i)] = report.Generates{EventsPerS: float64(i), At: at.Add(time.Duration(i) * time.Hour)}
	}
	assert.OK(t, keepGenerates(all))
	got := keptGenerates()
	_, oldest := got["key-004"]
	newest := got[fmt.Sprintf("key-%03d", maxGenerates+4)]
	assert.True(t, len(got) == maxGenerates && !oldest && newest.EventsPerS == maxGenerates+4,
		"got %d of them, the oldest %v, the newest %+v", len(got), oldest, newest)
	path := assert.Value(generatesPath())(t)
	for _, text := range []string{"", "null", "[1]", "{\"a\":"} {
		assert.OK(t, os.WriteFile(filepath.Clean(path), []byte(text), 0o600))
		got := keptGenerates()
		assert.True(t, got != nil && len(got) == 0, "from %q: got %v", text, got)
	}
}

// The hash depends on the settings of events and batches, and on nothing else.
func TestGeneratingDistinguishesWorkloads(t *testing.T) {
	s := &session{Program: &Program{Kinds: Kinds()}}
	of := func(settings ...string) string {
		var d workload.Document
		d.Add("target", "target", "kafka://127.0.0.1/t")
		for i := 0; i < len(settings); i += 2 {
			d.Add(settings[i], "--"+settings[i], settings[i+1])
		}
		w := assert.Value(workload.Resolve(s.Kinds, &d, nil))(t)
		return hashOf(s.generating(w))
	}
	base := of()
	for _, same := range [][]string{{"for", "5s"}, {"acks", "all"}, {"label", "a=b"}, {"size", "100"}} {
		assert.Same(t, of(same...), base, "%q is another workload", same)
	}
	seen := map[string][]string{base: nil}
	for _, other := range [][]string{
		{"size", "200"}, {"key", "seq"}, {"header", "a=b"}, {"batch-size", "16KiB"}, {"fresh", "true"}, {"clients", "2"}, {"batch-events", "1"}, {"payload", "zero"}, {"threads", "1"},
	} {
		hash := of(other...)
		as, ok := seen[hash]
		assert.True(t, !ok, "%q is the same workload as %q", other, as)
		seen[hash] = other
	}
}
