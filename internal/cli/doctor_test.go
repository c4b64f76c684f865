package cli_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"carronade/internal/layout"
	"carronade/internal/verdict/trust"
	"carronade/protocol"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

func examine(t *testing.T, args ...string) (*trust.Examination, int) {
	t.Helper()
	out, words, code := run(t, append([]string{"doctor", "--json"}, args...)...)
	var r trust.Examination
	err := json.Unmarshal([]byte(out), &r)
	assert.Must(t, err == nil && r.Schema == trust.ExaminationSchema && words == "", "%v: %v\n%s\n%s", args, err, out, words)
	want := 0
	switch {
	case r.Target != "" && !r.Answered:
		want = 2
	case r.Spoils():
		want = 1
	}
	assert.Equal(t, code, want, "%v: exit code", args)
	return &r, code
}

// run runs carronade in an empty folder.
func run(t *testing.T, args ...string) (out, words string, code int) {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), carronade(t), args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir, "NO_COLOR=1", "DOCTOR_PASSWORD=wrong")
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	return o.String(), e.String(), code
}

func spawn(t testing.TB, args ...string) string { return child(t, args...).Addr() }

func TestDoctor(t *testing.T) {
	t.Parallel()
	broker := spawn(t, "kafka", "--in-memory", "--partitions", "3")
	locked := spawn(t, "kafka", "--in-memory", "--sasl", "PLAIN:alice:right")
	index, server := spawn(t, "riemann"), spawn(t, "apm")
	const closed = testkit.ClosedPort
	file := filepath.Join(t.TempDir(), "w.yaml")
	assert.OK(t, os.WriteFile(file, []byte("target: apm+http://"+server+"\nrate: 1k/s\nfor: 1s\n"), 0o600))
	mix := filepath.Join(t.TempDir(), "mix.yaml")
	assert.OK(t, os.WriteFile(mix, []byte("rate: 1k/s\nfor: 1s\nparts:\n  - {target: apm+http://"+server+", weight: 1}\n  - {target: riemann://"+index+", weight: 1}\n"), 0o600))
	for _, tt := range []struct {
		name     string
		args     []string
		answered bool
		check    string // of the target, or of the machine
		level    protocol.Level
		want     string
	}{
		{"the machine", nil, false, "processors", protocol.LevelOK, ""},
		{"many clients", []string{"--clients", "60000"}, false, "local ports", protocol.LevelError, "60000"},
		{"a broker", []string{"kafka://" + broker + "/t"}, true, "brokers", protocol.LevelOK, "stand-in"},
		{"a missing topic", []string{"kafka://" + broker + "/t"}, true, "topic", protocol.LevelWarning, "does not exist"},
		{"Riemann", []string{"riemann://" + index}, true, "index", protocol.LevelOK, "answers queries"},
		{"OTLP", []string{"otlp+http://" + spawn(t, "otlp")}, true, "receiver", protocol.LevelOK, "stand-in"},
		{"APM", []string{"apm+http://" + server}, true, "version of the server", protocol.LevelOK, "stand-in"},
		{"a file", []string{"-f", file}, true, "version of the server", protocol.LevelOK, "stand-in"},
		{"a file with several targets", []string{"-f", mix}, true, "index", protocol.LevelOK, "answers queries"},
		{"nothing to check", []string{"null://"}, true, "target", protocol.LevelUnknown, "nothing to check"},
		{"a wrong password", []string{"kafka://" + locked + "/t", "--sasl-mechanism", "PLAIN", "--user", "alice", "--password", "env:DOCTOR_PASSWORD"}, false, "target", protocol.LevelError, "log in"},
		{"a closed port", []string{"riemann://" + closed}, false, "target", protocol.LevelError, "refused"},
		{"a buffer that the kernel cuts", []string{"apm+http://" + server, "--send-buffer", "1GiB"}, true, "socket buffers", protocol.LevelWarning, "--send-buffer is 1 GiB"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, _ := examine(t, tt.args...)
			i := slices.IndexFunc(r.Findings, func(e trust.ExaminationEntry) bool { return e.Check == tt.check })
			assert.Must(t, i >= 0 && r.Answered == tt.answered, "answered %v, and no %q: got %+v", r.Answered, tt.check, r.Findings)
			e := r.Findings[i]
			assert.True(t, (tt.want == "" || e.Level == tt.level) && strings.Contains(e.Found, tt.want),
				"got %v: %s, want %v: %s", e.Level, e.Found, tt.level, tt.want)
		})
	}
}

// A target that never answers ends within the time that was given.
func TestDoctorSilence(t *testing.T) {
	t.Parallel()
	addr := testkit.Listen(t, func(c *net.TCPConn) { io.Copy(io.Discard, c) })
	for _, scheme := range []string{"kafka", "riemann", "apm+http", "otlp+http", "otlp+grpc"} {
		r, code := examine(t, scheme+"://"+addr, "--timeout", "300ms")
		assert.True(t, code == 2 && !r.Answered, "%s: exit code %d", scheme, code)
		assert.True(t, slices.ContainsFunc(r.Findings, func(e trust.ExaminationEntry) bool { return e.Check == "loopback" }),
			"%s: the way to a target on this machine is not known: %+v", scheme, r.Findings)
	}
}

func TestDoctorText(t *testing.T) {
	t.Parallel()
	broker := spawn(t, "kafka", "--in-memory")
	for _, args := range [][]string{{"doctor"}, {"doctor", "kafka://" + broker + "/t"}, {"doctor", "kafka://" + broker + "/t", "--full"}} {
		out, words, _ := run(t, args...)
		assert.True(t, words == "" && !strings.Contains(out, "\x1b"), "%v: got %q\n%s", args, words, out)
		for l := range strings.Lines(out) {
			assert.True(t, layout.Width(strings.TrimRight(l, "\n")) <= layout.Columns,
				"%v: a line of more than %d columns: %s", args, layout.Columns, l)
		}
		assert.Equal(t, slices.Contains(args, "--full"), strings.Contains(out, "\nTarget\n"), "%v prints\n%s", args, out)
	}
}

func TestDoctorErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range testkit.Table[struct {
		Name       string
		Args       []string
		Want, Hint string
	}](t, "testdata/doctor_errors.yaml") {
		t.Run(tt.Name, func(t *testing.T) {
			out, words, code := run(t, append([]string{"doctor"}, tt.Args...)...)
			assert.True(t, code == 2 && out == "" && strings.HasPrefix(words, "error: ") && strings.Contains(words, tt.Want) && strings.Contains(words, tt.Hint),
				"exit code %d: %s%s", code, out, words)
		})
	}
}
