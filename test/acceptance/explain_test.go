//go:build unix && conformance

package acceptance

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/kafkatest"
)

// An explanation is the part of carronade explain --json that the tests read.
type explanation struct {
	Schema string `json:"schema"`
	Groups []struct {
		Kind      string `json:"kind"`
		Incidents []struct {
			AtS       float64 `json:"at_s"`
			Explained bool    `json:"explained"`
		} `json:"incidents"`
		Findings []struct {
			From, Name, Text string
			Hits, Of         int
			Corrected        float64 `json:"corrected_chance"`
		} `json:"findings"`
	} `json:"groups"`
}

// explained explains the newest report of a store, and returns how many incidents coincide
// with the pauses of a collector, of stalls and of spikes together.
func explained(t *testing.T, place string) (hits, of int, text string) {
	t.Helper()
	var x explanation
	decode(t, run(t, "explain", "--store", place, "--json").want(t, 0).stdout, &x)
	assert.Equal(t, x.Schema, "carronade.explain/1", "the schema")
	for _, g := range x.Groups {
		for _, f := range g.Findings {
			if f.From == "system" && f.Name == "GC pause" {
				hits, of = hits+f.Hits, of+f.Of
			}
		}
	}
	return hits, of, run(t, "explain", "--store", place).want(t, 0).stdout
}

// TestExplainPauses: a stand-in stands still while a log has pauses of a collector at the same
// times, and short ones at others. The stalls are explained by the pauses.
func TestExplainPauses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	place, log := filepath.Join(dir, "r.db"), filepath.Join(dir, "gc.log")
	assert.OK(t, os.WriteFile(log, nil, 0o600))
	server := startStandin(t, "kafka", "--listen", "127.0.0.1:0", "--in-memory", "--topic", "t:1")
	s := start(t, "run", "kafka://"+server.addr+"/t", "--rate", "500/s", "--for", "11s", "--store", place,
		"--system-pid", strconv.Itoa(server.cmd.Process.Pid), "--system-gc-log", log)
	s.awaitStderr(progressText)
	const length = 300 * time.Millisecond
	stalls := 0
	for _, after := range []int{900, 1700, 1100, 2100, 1300} {
		pause(t, time.Duration(after)*time.Millisecond)
		began := time.Now()
		for _, sig := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
			assert.OK(t, server.cmd.Process.Signal(sig))
			if sig == syscall.SIGSTOP {
				pause(t, length)
			}
		}
		took := time.Since(began)
		stalls++
		appendLine(t, log, fmt.Sprintf("[%s][info][gc] GC(%d) Pause Full (System.gc()) 90M->30M(256M) %.3fms",
			time.Now().Format("2006-01-02T15:04:05.000-0700"), stalls, float64(took)/float64(time.Millisecond)))
	}
	s.wait(runTimeout).wantOneOf(t, 0, 3) // a busy machine may make it untrusted
	hits, of, text := explained(t, place)
	assert.True(t, hits >= stalls-1, "%d of %d incidents are explained by the %d pauses:\n%s", hits, of, stalls, text)
}

// appendLine adds a line to a file, as a JVM does.
func appendLine(t *testing.T, name, line string) {
	t.Helper()
	f := assert.Value(os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0o600))(t)
	assert.Value(fmt.Fprintln(f, line))(t)
	assert.OK(t, f.Close())
}

// Full collections that jcmd forces in a real Kafka explain the stalls and the spikes that they make.
func TestExplainKafka(t *testing.T) {
	testkit.OnlyConformance(t, "takes a minute")
	broker := kafkatest.Start(t, kafkatest.Config{Heap: "512m"})
	topic := broker.CreateTopic(t, 1, 1)
	dir := t.TempDir()
	place, log := filepath.Join(dir, "r.db"), filepath.Join(dir, "gc.log")
	pid := strconv.Itoa(broker.Node(1).PID())
	jcmd := func(args ...string) {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), "jcmd", append([]string{pid}, args...)...).CombinedOutput()
		assert.Must(t, err == nil, "jcmd: %v\n%s", err, out)
	}
	jcmd("VM.log", "output="+log, "what=gc", "decorators=time,uptime,level,tags")
	s := start(t, "run", topicURL(broker, topic), "--rate", "1000/s", "--for", "45s", "--warmup", "3s", "--store", place,
		"--system-pid", pid, "--system-gc-log", log)
	s.awaitStderr(progressText)
	pause(t, 4*time.Second)
	forced := 0
	for _, after := range []int{2300, 4700, 3100, 5900, 2700, 4300, 3700, 5300} {
		pause(t, time.Duration(after)*time.Millisecond)
		jcmd("GC.run")
		forced++
	}
	s.wait(runTimeout).wantOneOf(t, 0, 3)
	hits, of, text := explained(t, place)
	t.Logf("%d of %d incidents coincide with %d forced collections:\n%s", hits, of, forced, text)
	assert.True(t, hits >= forced/2, "%d incidents are explained by the %d collections", hits, forced)
}
