//go:build linux

package system

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"carronade/internal/host"
	"carronade/internal/secret"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/kafkatest"
)

// An output keeps whole lines of the end, within its limit, and counts the rest.
func TestOutputKeepsTheEnd(t *testing.T) {
	for _, tt := range []struct {
		most, lines int
		want        string
		cut         int64
	}{
		{100, 3, "line 0\nline 1\nline 2\n", 0},
		{14, 3, "line 1\nline 2\n", 7},
		{15, 3, "line 1\nline 2\n", 7},
		{20, 9, "line 7\nline 8\n", 49},
		{6, 2, "", 14}, // a line that is longer than all
		{14, 0, "", 0},
	} {
		o := output{most: tt.most}
		for i := range tt.lines {
			o.add(fmt.Sprint("line ", i))
		}
		assert.True(t, len(o.buf) < 2*tt.most || tt.most <= 6, "%d bytes are kept, with a limit of %d", len(o.buf), tt.most)
		got, cut := o.text(new(secret.Mask))
		assert.True(t, got == tt.want && cut == tt.cut,
			"%d lines in %d bytes: got %q and %d before it, want %q and %d", tt.lines, tt.most, got, cut, tt.want, tt.cut)
	}
}

// What a system printed is kept to its end, without secrets, and shown while it runs.
func TestOutputOfASystem(t *testing.T) {
	addr := free(t)
	spec := specOf(t, "serve", addr, "password="+canary)
	spec.Listen = []string{addr}
	var mu sync.Mutex
	var shown []string
	spec.Output = func(line string) {
		mu.Lock()
		defer mu.Unlock()
		shown = append(shown, line)
	}
	s := start(t, spec)
	assert.OK(t, s.Stop())
	want := "listening on " + addr + " password=***\nbye\n"
	got, cut := s.Output()
	assert.True(t, got == want && cut == 0, "got %q, %d before it, want %q", got, cut, want)
	mu.Lock()
	defer mu.Unlock()
	got = strings.Join(shown, "\n") + "\n"
	assert.True(t, got == want, "got %q while it ran, want %q", got, want)
}

// The last 10 MiB of a log are kept, all of them, without secrets.
func TestLongOutputIsKept(t *testing.T) {
	o := output{most: keptOutput}
	var m secret.Mask
	m.Add("x7-plain")
	line := strings.Repeat("a line of a log, ", 30)
	for i := range 2 * keptOutput / len(line) {
		o.add(fmt.Sprintf("%s%08d password=%s x7-plain", line, i, canary))
	}
	printed := int64(len(o.buf)) + o.cut
	got, cut := o.text(&m)
	lines := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
	last := fmt.Sprintf("%08d password=*** ***", 2*keptOutput/len(line)-1)
	if full := len(line) + len("00000000 password= x7-plain\n") + len(canary); printed-cut > keptOutput || printed-cut < int64(keptOutput-full) || int64(len(lines)*full) != printed-cut {
		t.Errorf("%d lines are kept after %d of %d bytes", len(lines), cut, printed)
	}
	if strings.Contains(got, canary) || strings.Contains(got, "x7-plain") || !strings.HasSuffix(lines[len(lines)-1], last) || strings.Count(got, line) != len(lines) {
		t.Errorf("the first and the last of %d lines: %q, %q", len(lines), lines[0], lines[len(lines)-1])
	}
}

// A secret below its name is masked together with it, wherever the output is divided.
func TestOutputIsDividedBetweenEntries(t *testing.T) {
	for _, before := range []int{0, 10, 20, 30, 40} {
		o := output{most: keptOutput}
		o.add(strings.Repeat("a", before))
		for range 4000 {
			o.add("settings:")
			o.add("  password: |")
			o.add("    " + canary)
		}
		var m secret.Mask
		got, _ := o.text(&m)
		assert.True(t, !strings.Contains(got, canary) && strings.Contains(got, "settings:"), "after %d bytes: got %.200q", before, got)
	}
	// The name may be among the lines that are not kept.
	o := output{most: 40}
	for _, line := range []string{strings.Repeat("a", 60), "password: |", "  " + canary, "a line", "and the last one"} {
		o.add(line)
	}
	o.shorten()
	var m secret.Mask
	got, _ := o.text(&m)
	assert.Equal(t, got, "a line\nand the last one\n")
}

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
	assert.OK(t, os.WriteFile(settings, fmt.Appendf(nil, `process.roles=broker,controller
node.id=1
controller.quorum.voters=1@%[2]s
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://%[1]s,CONTROLLER://%[2]s
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs=%[3]s/data
`, addr, controller, dir), 0o644))
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

// A system does not get the secrets that this process keeps in its environment.
func TestSystemHasNoSecretsOfThisProcess(t *testing.T) {
	testkit.Program(t, "sh")
	t.Setenv(host.OwnEnv+"HEY_APM_1", canary)
	s := start(t, Spec{Command: "sh -c 'env; echo ready to serve; exec sleep 1000'", Ready: "log:ready to serve", ReadyWithin: time.Minute, Logf: t.Logf})
	assert.OK(t, s.Stop())
	got, _ := s.Output()
	assert.True(t, strings.Contains(got, "PATH=") && !strings.Contains(got, host.OwnEnv) && !strings.Contains(got, canary), "it got %s", got)
}

// A secret of which a long line has only the beginning is hidden, too.
func TestOutputOfLongLines(t *testing.T) {
	testkit.Program(t, "sh")
	s := start(t, Spec{
		Command: "sh -c 'printf %08187d 0; echo " + canary + "; echo ready to serve; exec sleep 1000'", Secrets: []string{canary},
		Ready: "log:ready to serve", ReadyWithin: time.Minute, Logf: t.Logf,
	})
	assert.OK(t, s.Stop())
	if got, _ := s.Output(); !strings.Contains(got, "0***\n") || strings.Contains(got, canary[:2]) {
		t.Errorf("got %q", got[max(0, len(got)-100):])
	}
}

// What a build printed is without the secrets of the system, too: an earlier run that built it may not have known them.
func TestBuildOutputIsMasked(t *testing.T) {
	log := filepath.Join(t.TempDir(), "build.log")
	assert.OK(t, os.WriteFile(log, []byte("built with "+canary+"\nenvironment:\n  password: |\n    x7-plain\nmade\n"), 0o600))
	s := start(t, Spec{Build: &Build{Log: log}, Secrets: []string{canary}, Logf: t.Logf})
	got, cut, err := s.BuildOutput()
	want := "built with ***\nenvironment:\n  password: ***\nmade\n"
	assert.True(t, got == want && cut == 0 && err == nil, "got %q after %d bytes, %v, want %q", got, cut, err, want)
	s = start(t, Spec{Revision: "4.1", Logf: t.Logf})
	got, cut, err = s.BuildOutput()
	assert.True(t, got == "" && cut == 0 && err == nil, "got %q after %d bytes, %v without a build", got, cut, err)
}

// The last lines of a system, which are shortened, have no part of a secret.
func TestLastLinesHaveNoPartOfASecret(t *testing.T) {
	var m secret.Mask
	m.Add(canary)
	tail := newTail("")
	tail.add(strings.Repeat("x", maxLine-5) + canary)
	if got := tail.last(1, m.Text)[0]; strings.Contains(got, canary[:2]) || len(got) < maxLine-5 {
		t.Errorf("got %q", got[maxLine-10:])
	}
}

// The branch is masked like the revision.
func TestBranchIsMasked(t *testing.T) {
	for _, spec := range []Spec{{Revision: canary, Branch: "b/" + canary}, {Build: &Build{GitFacts: GitFacts{Branch: "b/" + canary, Revision: canary}}}} {
		spec.Secrets = []string{canary}
		spec.Logf = t.Logf
		facts := start(t, spec).Facts()
		assert.True(t, facts["branch"] == "b/"+secret.Hidden && facts["revision"] == secret.Hidden &&
			!strings.Contains(fmt.Sprint(facts), canary), "got %v", facts)
	}
}
