//go:build conformance

package acceptance

import (
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"carronade/internal/host"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/kafkatest"
	"carronade/test/testkit/parquettest"
)

// A traceReport is the report's part about a trace and sampled events.
type traceReport struct {
	Trace *struct {
		Rows, Dropped uint64
		Error         string
	}
	Samples *struct {
		Of, Every uint64
	}
}

func readTraceReport(t *testing.T, e ended) traceReport {
	t.Helper()
	var d traceReport
	decode(t, e.stdout, &d)
	assert.Must(t, d.Trace != nil && d.Trace.Dropped == 0 && d.Trace.Error == "", "the report's trace: %+v", d.Trace)
	return d
}

// TestTrace: the counts of a run's report are in its trace.
func TestTrace(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Shared(t)
	for _, tt := range []struct {
		name  string
		flags []string
		rows  func(d *document) uint64 // according to the report; nil: rows are parts of batches
	}{
		{"produce", []string{"--rate", "5000/s", "--for", "2s", "--warmup", "1s"}, func(d *document) uint64 { return d.wholeRun().Batches }},
		{"full speed", []string{"--count", "200000"}, func(d *document) uint64 { return d.wholeRun().Batches }},
		{"every event", []string{"--rate", "5000/s", "--for", "2s", "--trace-events", "100%", "--key", "seq", "--fresh"}, func(d *document) uint64 { return d.wholeRun().Sent }},
		{"client", []string{"--rate", "5000/s", "--for", "2s", "--engine", "client"}, func(d *document) uint64 { return d.wholeRun().Batches }},
		{"round trip", []string{"--op", "roundtrip", "--rate", "2000/s", "--for", "2s"}, nil},
		{"round trip, closed loop", []string{"--op", "roundtrip", "--concurrency", "3", "--count", "600"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "run.parquet")
			s := prepare(t, append([]string{"run", topicURL(broker, broker.CreateTopic(t, 2, 1)), "--trace", path, "--json", "--quiet"}, tt.flags...)...)
			s.begin()
			e := s.wait(runTimeout).succeeded(t)
			d, of := e.document(t), readTraceReport(t, e)
			all := d.wholeRun()
			got := parquettest.Open(t, path)
			assert.True(t, uint64(got.Rows) == of.Trace.Rows && (tt.rows == nil || uint64(got.Rows) == tt.rows(d)),
				"%d rows, the report says %d", got.Rows, of.Trace.Rows)
			if n := got.Column("events").Sum(); uint64(n) != all.Sent || got.Column("acked").Sum() != n {
				t.Errorf("%d events, of them %d acked; the report counts %d", n, got.Column("acked").Sum(), all.Sent)
			}
			n := got.Column("bytes").Sum()
			assert.True(t, uint64(n) == all.Bytes, "%d bytes, the report counts %d", n, all.Bytes)
			if logs := got.Column("partition").Ints; slices.Min(logs) != 0 || slices.Max(logs) != 1 || got.Column("log_offset").Nulls() != 0 ||
				slices.ContainsFunc(got.Column("outcome").Texts, func(outcome string) bool { return outcome != "acked" }) {
				t.Errorf("partitions from %d to %d, %d rows without an offset, or some not acked", slices.Min(logs), slices.Max(logs), got.Column("log_offset").Nulls())
			}
			if n := got.Column("consumed_ns").Nulls(); (n == 0) != strings.HasPrefix(tt.name, "round trip") {
				t.Errorf("%d rows of %d were not consumed", n, got.Rows)
			}
			if n := got.Column("key").Nulls(); (n == 0) != strings.HasPrefix(tt.name, "every event") {
				t.Errorf("%d rows of %d have no key", n, got.Rows)
			}
			if strings.HasPrefix(tt.name, "round trip") {
				endToEnd(t, s, d, of)
			}
		})
	}
}

func endToEnd(t *testing.T, s *session, d *document, of traceReport) {
	t.Helper()
	export := prepare(t, "report", "export", "last", "--as", "e2e-csv")
	export.home = s.home
	export.begin()
	rows := assert.Value(csv.NewReader(strings.NewReader(export.wait(runTimeout).want(t, 0).stdout)).ReadAll())(t)
	assert.Must(t, of.Samples != nil && of.Samples.Of == d.EndToEnd.Count && uint64(len(rows)) == of.Samples.Of/of.Samples.Every,
		"%d rows, samples %+v, of %d events", len(rows), of.Samples, d.EndToEnd.Count)
	last := -1.0
	for _, r := range rows {
		assert.Must(t, len(r) == 3 && strings.Contains(r[0], "/"), "got %q", r)
		start, err1 := strconv.ParseFloat(r[1], 64)
		took, err2 := strconv.ParseFloat(r[2], 64)
		assert.Must(t, err1 == nil && err2 == nil && start >= last && took >= d.EndToEnd.MinUS && took <= d.EndToEnd.MaxUS,
			"row %q after %v; end to end is %v to %v us", r, last, d.EndToEnd.MinUS, d.EndToEnd.MaxUS)
		last = start
	}
}

// Ctrl-C leaves a complete trace; kill -9 leaves all rows that were written before.
func TestTraceCutShort(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		kill bool
	}{{"Ctrl-C", false}, {"kill -9", true}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "run.parquet")
			s := start(t, "run", "null://", "--rate", "20000/s", "--batch-events", "1", "--for", "5m", "--trace", path, "--json")
			size := int64(0)
			awaitGrowth(t, path, &size) // an empty file
			awaitGrowth(t, path, &size) // the first rows, of less than two seconds if the run began late
			awaitGrowth(t, path, &size)
			if tt.kill {
				assert.OK(t, s.cmd.Process.Kill())
				<-s.done
			} else {
				s.signal(os.Interrupt)
				e := s.wait(15*time.Second).wantOneOf(t, 130)
				d, of := e.document(t), readTraceReport(t, e)
				assert.True(t, of.Trace.Rows == d.wholeRun().Batches, "%d rows of %d batches", of.Trace.Rows, d.wholeRun().Batches)
			}
			got := parquettest.Open(t, path)
			last := slices.Max(got.Column("sequence").Ints)
			assert.True(t, got.Rows >= 10_000 && last == int64(got.Rows-1), "%d rows, the last of them %d", got.Rows, last)
		})
	}
}

// awaitGrowth waits until a file is longer than before.
func awaitGrowth(t *testing.T, path string, than *int64) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	timeout := time.NewTimer(time.Minute)
	defer timeout.Stop()
	for {
		if info, err := os.Stat(path); err == nil && info.Size() > *than {
			*than = info.Size()
			return
		}
		select {
		case <-tick.C:
		case <-timeout.C:
			t.Fatalf("%s did not grow beyond %d bytes", path, *than)
		}
	}
}

var totalCount = regexp.MustCompile(`Total count\s*=\s*(\d+)`)

// TestHDR reads the log of a run with HdrHistogram's Java reader, which comes with Kafka.
func TestHDR(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Shared(t)
	log := filepath.Join(t.TempDir(), "run.hlog")
	d := run(t, "run", topicURL(broker, broker.CreateTopic(t, 1, 1)), "--rate", "2000/s", "--for", "3s", "--hdr", log, "--json", "--quiet").succeeded(t).document(t)
	read := func(tag string) (uint64, string) {
		cmd := exec.Command("java", "-cp", filepath.Join(kafkatest.Jars(t), "*"), "org.HdrHistogram.HistogramLogProcessor", "-i", log, "-tag", tag)
		out, err := cmd.CombinedOutput()
		assert.OK(t, err, "HistogramLogProcessor: \n%s", out)
		m := totalCount.FindSubmatch(out)
		assert.Must(t, m != nil, "HistogramLogProcessor found no histograms of %s:\n%s", tag, out)
		n := assert.Value(strconv.ParseUint(string(m[1]), 10, 64))(t)
		return n, string(out)
	}
	if n, out := read("response"); n != d.Response.Count || n != 6000 {
		t.Errorf("the log has %d response times, the report %d, want 6000\n%s", n, d.Response.Count, out)
	}
	n, _ := read("service")
	assert.True(t, n == d.Service.Count, "the log has %d service times, the report %d", n, d.Service.Count)
}

// TestSystemEndsWithProgram interrupts a run at each of its stages, once and twice: all processes that it started end
// with the program, also those that ignore TERM, that a shell started in the background, or that left their group.
func TestSystemEndsWithProgram(t *testing.T) {
	t.Parallel()
	repository := t.TempDir()
	for _, args := range [][]string{{"init", "-q"}, {"commit", "-q", "--allow-empty", "-m", "one"}} {
		cmd := exec.Command("git", append([]string{"-C", repository, "-c", "user.name=t", "-c", "user.email=t@localhost"}, args...)...)
		out, err := cmd.CombinedOutput()
		assert.Must(t, err == nil, "git %v: %v\n%s", args, err, out)
	}
	for i, tt := range []struct {
		name    string
		system  string // MARK is replaced by a number of seconds that identifies the processes, ADDR and PROGRAM by those
		args    []string
		at      string // the text on stderr at which it is interrupted
		signals []os.Signal
		code    int
		killed  bool // finally by KILL, with a warning
	}{
		{"while building", "true", []string{"--system-git", repository, "--system-build", "sleep MARK & sleep MARK"}, "building revision", []os.Signal{os.Interrupt}, 130, false},
		{"while building, twice", "true", []string{"--system-git", repository, "--system-build", "trap '' TERM; sleep MARK & sleep MARK; sleep MARK"}, "building revision", []os.Signal{os.Interrupt, os.Interrupt}, 130, false},
		{"while it gets ready", "sh -c 'sleep MARK & sleep MARK'", nil, "to accept connections", []os.Signal{os.Interrupt}, 130, false},
		{"while it gets ready, twice", "sh -c 'trap \"\" TERM; setsid sleep MARK & sleep MARK; sleep MARK'", nil, "to accept connections", []os.Signal{os.Interrupt, os.Interrupt}, 130, false},
		{"while measuring", "sh -c 'sleep MARK & exec PROGRAM standin riemann --listen ADDR'", nil, progressText, []os.Signal{os.Interrupt}, 130, false},
		{"while measuring, twice", "sh -c 'trap \"\" TERM; setsid sleep MARK & PROGRAM standin riemann --listen ADDR; sleep MARK'", nil, progressText, []os.Signal{os.Interrupt, os.Interrupt}, 130, false},
		{"the terminal is closed", "sh -c 'sleep MARK & exec PROGRAM standin riemann --listen ADDR'", nil, progressText, []os.Signal{syscall.SIGHUP}, 130, false},
		{"ignores TERM", "sh -c 'trap \"\" TERM; PROGRAM standin riemann --listen ADDR; sleep MARK'", []string{"--system-stop-within", "500ms"}, progressText, []os.Signal{os.Interrupt}, 130, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mark, addr := strconv.Itoa(90_000_000+100*os.Getpid()+i), "127.0.0.1:"+freePort(t)
			fill := strings.NewReplacer("MARK", mark, "ADDR", addr, "PROGRAM", program).Replace
			args := []string{"run", "riemann://" + addr, "--rate", "100/s", "--for", "60s", "--json", "--system-cmd", fill(tt.system)}
			for _, a := range tt.args {
				args = append(args, fill(a))
			}
			if slices.Contains(tt.signals, os.Signal(syscall.SIGHUP)) {
				unignoreSignal(t, syscall.SIGHUP)
			}
			s := start(t, args...)
			s.awaitStderr(tt.at)
			left := func() string { return pgrep(t, "-af", "(sleep "+mark+"|listen "+regexp.QuoteMeta(addr)+")") }
			for end := time.Now().Add(time.Minute); left() == ""; pause(t, 20*time.Millisecond) {
				assert.Must(t, !time.Now().After(end), "nothing was started, so this tests nothing")
			}
			pause(t, 500*time.Millisecond) // the other processes, and those that leave their group
			for _, sig := range tt.signals {
				s.signal(sig)
				pause(t, 100*time.Millisecond)
			}
			e := s.wait(20*time.Second).want(t, tt.code)
			if text := left(); text != "" {
				t.Errorf("left running:\n%s", text)
				for line := range strings.Lines(text) {
					first, _, _ := strings.Cut(line, " ")
					if pid, err := strconv.Atoi(first); err == nil {
						_ = host.End(pid)
					}
				}
			}
			if tt.killed {
				d := e.document(t)
				assert.True(t, strings.Contains(strings.Join(d.Warnings, "; "), "TERM and was killed"), "warnings %q", d.Warnings)
			}
		})
	}
}

// pgrep lists the processes whose command line matches; "" if there are none.
func pgrep(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("pgrep", args...).Output()
	if e, ok := errors.AsType[*exec.ExitError](err); ok && e.ExitCode() == 1 {
		return ""
	}
	assert.OK(t, err, "this test finds processes with pgrep (of procps)")
	return string(out)
}

// On Linux the system's command also ends if the program is killed.
func TestSystemEndsWhenKilled(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends a child with its parent")
	}
	t.Parallel()
	addr := "127.0.0.1:" + freePort(t)
	s := start(t, "run", "riemann://"+addr, "--rate", "100/s", "--for", "60s", "--system-cmd", program+" standin riemann --listen "+addr)
	s.awaitStderr(progressText)
	there := func() (pid int) {
		out := pgrep(t, "-f", "^"+regexp.QuoteMeta(program+" standin riemann --listen "+addr))
		pid, _ = strconv.Atoi(strings.TrimSpace(out))
		return pid
	}
	pid := there()
	assert.Must(t, pid != 0, "nothing was started, so this tests nothing")
	s.signal(syscall.SIGKILL)
	for range 200 {
		if there() == 0 {
			return
		}
		pause(t, 100*time.Millisecond)
	}
	t.Error("the system is left running")
	_ = host.End(pid)
}

// unignoreSignal makes programs that are started until the test's end receive a signal even if the tests run
// under nohup, whose children ignore it: Go resets in a child the signals that it handles.
func unignoreSignal(t *testing.T, sig os.Signal) {
	t.Helper()
	if !signal.Ignored(sig) {
		return
	}
	received := make(chan os.Signal, 1)
	signal.Notify(received, sig)
	t.Cleanup(func() { signal.Stop(received) })
}

// A run of any kind ends when its system ends, and does not wait for answers or events that cannot arrive.
func TestSystemDiesAtOnce(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, kind, target, args string }{
		{"read back afterwards", "kafka --topic t", "kafka://ADDR/t", "--verify"},
		{"by a schedule", "kafka --topic t", "kafka://ADDR/t", "--rate 1000/s --verify"},
		{"round trip", "kafka --topic t", "kafka://ADDR/t", "--rate 1000/s --op roundtrip"},
		{"consume", "kafka --topic t", "kafka://ADDR/t", "--op consume"},
		{"riemann", "riemann", "riemann://ADDR", "--rate 1000/s"},
		{"apm", "apm", "apm+http://ADDR", "--rate 1000/s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pidFile, addr := filepath.Join(t.TempDir(), "pid"), "127.0.0.1:"+freePort(t)
			s := start(t, append([]string{
				"run", strings.Replace(tt.target, "ADDR", addr, 1), "--for", "60s", "--json",
				"--system-cmd", fmt.Sprintf("sh -c 'echo $$ > %s; exec %s standin %s --listen %s'", pidFile, program, tt.kind, addr),
			}, strings.Fields(tt.args)...)...)
			s.awaitStderr(progressText)
			text := assert.Value(os.ReadFile(pidFile))(t)
			assert.OK(t, host.End(assert.Value(strconv.Atoi(strings.TrimSpace(string(text))))(t)))
			killed := time.Now()
			d := s.wait(runTimeout).want(t, 3).document(t)
			if took := time.Since(killed); took > 20*time.Second { // the run would last a minute
				t.Errorf("the run ended %v after its system", took)
			}
			assert.True(t, d.Stopped == "system ended" && d.System.Died && strings.Contains(d.System.Exit, "killed") &&
				len(d.Trust.Reasons) > 0 && strings.Contains(d.Trust.Reasons[0], "system under test"),
				"stopped by %q, system %+v, reasons %q", d.Stopped, d.System, d.Trust.Reasons)
		})
	}
}
