package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carronade/internal/verdict/trust"
	"carronade/test/testkit/assert"
)

// busyMachine is a machine whose processors other programs use.
var busyMachine = trust.Others{WindowS: 0.1, Processors: 2, Programs: 0.97, Disturb: true}

// onMachine runs a command line in this process, on a machine with others.
func onMachine(t *testing.T, others trust.Others, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out bytes.Buffer
	err := &interrupting{at: "nothing says this", signals: make(chan os.Signal, 1)}
	if args[0] == "find" { // takes longer than a test
		err.at = "results may not be trusted"
	}
	p := &Program{
		Kinds: Kinds(), Args: args, In: strings.NewReader(""), Out: &out, Err: err, Measured: untrusted(), Others: &others, Signals: err.signals,
	}
	code = p.Main()
	return out.String(), err.String(), code
}

// interrupting interrupts a program once it has printed a text.
type interrupting struct {
	bytes.Buffer
	at      string
	signals chan os.Signal
}

func (w *interrupting) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(w.at)) {
		w.signals <- os.Interrupt
	}
	return w.Buffer.Write(p)
}

// What runs says once, before it begins, that others use the machine; stdout and the exit code do not change.
func TestSaysOthers(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_DATA_HOME", filepath.Join(dir, "data"))
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(dir, "config"))
	assert.OK(t, os.WriteFile(filepath.Join(dir, "a.yaml"), []byte("{target: 'null://', count: 300}"), 0o600))
	const want = "warning: other programs use 97% of the processors: results may not be trusted (carronade doctor)\n"
	for _, tt := range []struct{ name, line string }{
		{"run", "run null:// --count 10 --no-store"},
		{"repeat", "run null:// --count 10 --repeat 3 --no-store"},
		{"vary", "run null:// --count 10 --vary size=10,20 --repeat 2"},
		{"find", "find null:// --slo p99<1s --budget 10m --no-store"},
		{"compare", "compare --run " + dir + "/a.yaml " + dir + "/a.yaml --repeat 2 --untrusted"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, stderr, code := onMachine(t, busyMachine, strings.Fields(tt.line)...)
			assert.Equal(t, strings.Count(stderr, want), 1, "warnings of exit code %d in:\n%s", code, stderr)
			first, _, _ := strings.Cut(stderr, "\n")
			t.Log(first)
		})
	}
	_, stderr, _ := onMachine(t, busyMachine, strings.Fields("run null:// --count 10 --no-store --quiet")...)
	assert.Equal(t, stderr, "", "stderr with --quiet")
	_, stderr, _ = onMachine(t, trust.Others{}, strings.Fields("run null:// --count 10 --no-store")...)
	assert.True(t, !strings.Contains(stderr, "warning"), "on an idle machine:\n%s", stderr)

	stdout, _, code := onMachine(t, busyMachine, strings.Fields("run null:// --count 10 --no-store --json")...)
	assert.Equal(t, code, 0, "exit code")
	var d struct{ Others trust.Others }
	assert.OK(t, json.Unmarshal([]byte(stdout), &d))
	assert.Same(t, d.Others, busyMachine)
}

// A series of which no run is trusted because of other programs says so, and what to do.
func TestVaryBlamesOthers(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_DATA_HOME", filepath.Join(dir, "data"))
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(dir, "config"))
	var out, err bytes.Buffer
	p := &Program{
		Kinds: Kinds(), Args: strings.Fields("run null:// --count 10 --vary size=10,20 --repeat 2"), In: strings.NewReader(""), Out: &out, Err: &err,
		Measured: untrusted(1, 2, 3, 4, 5, 6, 7, 8), Others: &busyMachine,
	}
	assert.Equal(t, p.Main(), 3, "exit code")
	for _, want := range []string{
		" is not trusted (other programs used 97% of the processors): it will be run again\n",
		"error: vary: no run of the series can be judged: other programs used 97% of the processors; stop them, or use a quieter machine\n",
	} {
		assert.True(t, strings.Contains(err.String(), want), "no %q in\n%s", want, err.String())
	}
}
