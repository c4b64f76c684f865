//go:build linux

package system

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/kafkatest"
)

// churn is a program that collects garbage, prints that it did, and waits.
const churn = `public class Churn { static Object keep; public static void main(String[] a) throws Exception {
	for (int i = 0; i < 200000; i++) keep = new byte[1000];
	System.gc();
	System.out.println("collected");
	System.in.read();
	Thread.sleep(1000000);
} }`

// TestJVM makes the JVM of a command, and that of a script, write its log.
func TestJVM(t *testing.T) {
	testkit.Need(t, "Java")
	if _, err := exec.LookPath("java"); err != nil {
		t.Skip("Java is not installed")
	}
	source := filepath.Join(t.TempDir(), "Churn.java")
	assert.OK(t, os.WriteFile(source, []byte(churn), 0o644))
	t.Setenv("JAVA_TOOL_OPTIONS", "-Xmx64m")
	for _, command := range []string{"java " + source, "sh -c 'java " + source + "; exit 1'"} {
		t.Run(command[:2], func(t *testing.T) {
			s := start(t, Spec{Command: command, JVMGC: true, Ready: "log:collected", ReadyWithin: time.Minute, Logf: t.Logf})
			got := assert.Value(s.Figures(t.Context()))(t)
			pauses, _ := figure(got, "GC pauses")
			sum, _ := figure(got, "GC pause time")
			longest, _ := figure(got, "GC pause longest")
			heap, _ := figure(got, "heap after GC")
			assert.True(t, pauses >= 2 && sum > 0 && longest > 0 && longest <= sum && heap > 0 && heap <= 64<<20,
				"got %v pauses of %v ms, the longest %v ms, and a heap of %v", pauses, sum, longest, heap)
			assert.True(t, !strings.Contains(fmt.Sprint(s.Facts()["command"]), "Xlog"),
				"the command in the facts has the option that was added to it")
			dir := s.gcDir
			assert.OK(t, s.Stop())
			total := s.Totals()
			assert.True(t, total.Pauses >= int(pauses) && total.PauseLongest > 0, "got %+v in all", total)
			_, err := os.Stat(dir)
			assert.True(t, err != nil, "the folder of the log is still there")
			w := s.Warnings()
			assert.True(t, len(w) == 0, "got the warnings %q", w)
		})
	}
}

// TestKafka starts a real broker as the system under test.
func TestKafka(t *testing.T) {
	if testing.Short() {
		t.Skip("a real broker takes seconds")
	}
	jars := kafkatest.Jars(t)
	dir := t.TempDir()
	addr, controller := free(t), free(t)
	settings := filepath.Join(dir, "server.properties")
	err := os.WriteFile(settings, fmt.Appendf(nil, `process.roles=broker,controller
node.id=1
controller.quorum.voters=1@%[2]s
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://%[1]s,CONTROLLER://%[2]s
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs=%[3]s/data
`, addr, controller, dir), 0o644)
	assert.OK(t, err)
	kafkatest.Tool(t, "kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qk", "-c", settings)
	s := start(t, Spec{
		Command: "java -Xmx256m -XX:+UseG1GC -cp '" + filepath.Join(jars, "*") + "' kafka.Kafka " + settings,
		JVMGC:   true, Listen: []string{addr}, ReadyWithin: 2 * time.Minute, Logf: t.Logf,
	})
	pauses := 0.0
	testkit.Until(t, "a pause", func() bool {
		got := assert.Value(s.Figures(t.Context()))(t)
		n, _ := figure(got, "GC pauses")
		pauses += n
		return pauses > 0
	})
	assert.OK(t, s.Stop())
	total := s.Totals()
	assert.True(t, total.Peak >= 100<<20 && total.CPU >= time.Second && total.Threads >= 20 && total.PauseTime > 0,
		"got %+v, want the resources that a broker uses", total)
	t.Logf("peak %d MiB, %v of processor time, %d threads, %d pauses, %v in all, the longest %v, ready after %vs",
		total.Peak>>20, total.CPU, total.Threads, total.Pauses, total.PauseTime, total.PauseLongest, s.Facts()["ready_after_s"])
}
