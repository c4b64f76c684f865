//go:build unix

package cli_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"carronade/internal/standin"
	"carronade/test/testkit/assert"
)

// A process is the running program, whose messages are read during the run.
type process struct {
	*exec.Cmd
	out   bytes.Buffer
	words *bufio.Reader
	said  strings.Builder
}

func start(t *testing.T, args ...string) *process {
	t.Helper()
	return begin(t, exec.Command(carronade(t), args...))
}

// startTrusted is start for tests of exit codes that have nothing to do with trust: the run
// is trusted, also on a machine that is busy with other tests.
func startTrusted(t *testing.T, args ...string) *process {
	t.Helper()
	cmd := exec.Command(carronade(t), args...)
	cmd.Env = []string{"CARRONADE_TEST_UNTRUSTED=none"}
	return begin(t, cmd)
}

func begin(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{Cmd: cmd}
	p.Env = append(append(os.Environ(), "XDG_DATA_HOME="+t.TempDir(), "LANG=C.UTF-8"), p.Env...)
	p.Stdout = &p.out
	r := assert.Value(p.StderrPipe())(t)
	p.words = bufio.NewReader(r)
	assert.OK(t, p.Start())
	watchdog := time.AfterFunc(5*time.Minute, func() { _ = p.Process.Kill() })
	t.Cleanup(func() { watchdog.Stop(); _ = p.Process.Kill() })
	return p
}

// until reads messages up to a line with the text.
func (p *process) until(t *testing.T, text string) {
	t.Helper()
	for {
		line, err := p.words.ReadString('\n')
		p.said.WriteString(line)
		assert.Must(t, err == nil, "waiting for %q: %v; it said:\n%s", text, err, p.said.String())
		if strings.Contains(line, text) {
			return
		}
	}
}

func (p *process) interrupt(t *testing.T) {
	t.Helper()
	assert.OK(t, p.Process.Signal(os.Interrupt))
}

// failed is any exit code but 0.
const failed = -1

func (p *process) exits(t *testing.T, code int, says ...string) {
	t.Helper()
	got := p.end(t)
	missing := slices.ContainsFunc(says, func(text string) bool { return !strings.Contains(p.said.String(), text) })
	if missing || got != code && (code != failed || got == 0) {
		t.Errorf("carronade %q: exit code %d, want %d and %q; it said:\n%s", p.Args[1:], got, code, says, p.said.String())
	}
}

func (p *process) end(t *testing.T) int {
	t.Helper()
	rest, _ := io.ReadAll(p.words)
	p.said.Write(rest)
	err := p.Wait()
	var exit *exec.ExitError
	assert.Must(t, err == nil || errors.As(err, &exit), "%v", err)
	if status, ok := p.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		t.Fatalf("ended by %v; it said:\n%s", status.Signal(), p.said.String())
	}
	return p.ProcessState.ExitCode()
}

// An interruption ends a run and leaves a report, which is partial if the run had a limit, and complete if not.
func TestInterruptStopsAndReports(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		flags   []string
		partial bool
	}{{"without a limit", nil, false}, {"before its time", []string{"--for", "10m"}, true}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := start(t, append([]string{"run", "null://", "--rate", "1k/s", "--interval", "50ms", "--json"}, tt.flags...)...)
			if !tt.partial {
				p.until(t, "until Ctrl-C")
			}
			p.until(t, "measurement")
			p.interrupt(t)
			p.exits(t, 130)
			var d struct {
				Partial bool
				Stopped string
				Totals  struct{ Offered, Sent, Acked uint64 }
			}
			assert.OK(t, json.Unmarshal(p.out.Bytes(), &d), "%s", p.out.String())
			assert.True(t, d.Partial == tt.partial && d.Stopped == "interrupted" && d.Totals.Acked != 0 && d.Totals.Sent == d.Totals.Acked,
				"got %+v, want a report whose events were acked, partial: %v", d, tt.partial)
		})
	}
}

// Under nohup a run continues when its terminal is closed.
func TestNohup(t *testing.T) {
	t.Parallel()
	p := begin(t, exec.Command("sh", "-c", `trap '' HUP; exec "$0" "$@"`, carronade(t),
		"run", "null://", "--rate", "1k/s", "--for", "1500ms", "--interval", "50ms", "--json"))
	p.until(t, "measurement")
	assert.OK(t, p.Process.Signal(syscall.SIGHUP))
	if got := p.end(t); got != 0 && got != 3 { // 3: this machine is busy with the other tests
		t.Errorf("exit code: got %d, want 0; it said:\n%s", got, p.said.String())
	}
	var d struct {
		Stopped string
		Totals  struct{ Offered uint64 }
	}
	assert.OK(t, json.Unmarshal(p.out.Bytes(), &d), "%s", p.out.String())
	assert.True(t, d.Stopped == "time" && d.Totals.Offered == 1500, "got %+v, want a complete run", d)
}

// A run can be interrupted while it connects to a listener that never answers.
func TestInterruptWhileConnecting(t *testing.T) {
	t.Parallel()
	l := assert.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	p := start(t, "run", "kafka://"+l.Addr().String()+"/t", "--rate", "1k/s")
	c, err := l.Accept() // now it is connecting
	assert.OK(t, err)
	defer c.Close()
	p.interrupt(t)
	p.exits(t, 130)
	assert.True(t, p.out.Len() <= 0 && strings.Contains(p.said.String(), "interrupted before anything was done"),
		"got %q on stdout and on stderr:\n%s", p.out.String(), p.said.String())
}

// The second interrupt does not wait for a server that does not answer.
func TestSecondInterruptExitsAtOnce(t *testing.T) {
	t.Parallel()
	broker := assert.Value(standin.Spawn(t.Context(), carronade(t), "kafka", "--discard", "--listen", "127.0.0.1:0"))(t)
	defer broker.Stop()
	p := start(t, "run", "kafka://"+broker.Addr()+"/t", "--rate", "1k/s", "--interval", "50ms", "--drain", "1m")
	p.until(t, "measurement")
	signal := func(sig syscall.Signal) { assert.OK(t, syscall.Kill(broker.Pid(), sig)) }
	signal(syscall.SIGSTOP) // from now on the server does not answer, and the drain waits
	defer signal(syscall.SIGCONT)
	p.interrupt(t)
	p.until(t, "drain")
	ended := make(chan struct{})
	go func() { // for a second they are the same interrupt
		for tick := time.NewTicker(50 * time.Millisecond); ; {
			select {
			case <-tick.C:
				_ = p.Process.Signal(os.Interrupt)
			case <-ended:
				tick.Stop()
				return
			}
		}
	}()
	p.exits(t, 130)
	close(ended)
	assert.True(t, p.out.Len() <= 0, "it reported after all:\n%s", p.out.String())
}

// A reader that closes early is not an error: the run continues and its exit code counts.
func TestReaderOfStdoutCloses(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	assert.OK(t, err)
	r.Close()
	cmd := exec.Command(carronade(t), "run", "null://", "--count", "1000", "--quiet")
	cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+t.TempDir())
	var words bytes.Buffer
	cmd.Stdout, cmd.Stderr = w, &words
	err = cmd.Run()
	w.Close()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 3 {
		err = nil // this machine is busy with the other tests: the run was not trusted, but continued
	}
	assert.True(t, err == nil && words.Len() <= 0, "got %v and %q, want no error and no message", err, words.String())
}

// With --metrics-linger the last metrics stay readable after the run. Ctrl-C ends that, and the
// exit code is that of the run: 0, or that of a run in which all events failed.
func TestMetricsLinger(t *testing.T) {
	t.Parallel()
	refusing, err := standin.Spawn(t.Context(), carronade(t), "kafka", "--in-memory", "--listen", "127.0.0.1:0", "--topic", "t:1", "--error", "invalid-record@100%")
	assert.OK(t, err)
	refuses := "kafka://" + refusing.Addr() + "/t"
	for _, tt := range []struct {
		name, target, series string
		code                 int
	}{
		{"a good run", "null://", `carronade_acked_events_total{op="produce",target="null://"} 100`, 0},
		{"a failed run", refuses, `carronade_failed_events_total{op="produce",target="` + refuses + `"} 100`, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := startTrusted(t, "run", tt.target, "--count", "100", "--rate", "1k/s", "--metrics-addr", "0", "--metrics-linger", "10m", "--quiet", "--no-calibrate")
			p.until(t, "the last metrics stay at ")
			_, rest, _ := strings.Cut(p.said.String(), "the last metrics stay at ")
			url, _, _ := strings.Cut(rest, " ")
			resp := assert.Value(http.Get(url))(t) //nolint:bodyclose // it is closed below
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			assert.True(t, err == nil && strings.Contains(string(body), tt.series+"\n"), "want %s, got %v\n%s", tt.series, err, body)
			p.interrupt(t)
			p.exits(t, tt.code)
		})
	}
}

// Without Ctrl-C, the time ends it.
func TestMetricsLingerEnds(t *testing.T) {
	t.Parallel()
	p := startTrusted(t, "run", "null://", "--count", "100", "--rate", "1k/s", "--metrics-addr", "0", "--metrics-linger", "10ms", "--quiet", "--no-calibrate")
	p.exits(t, 0, "stay at ")
}

// A server that is killed leaves events of which it is not known whether it took them. They are not
// called refused: that is only what was never written.
func TestUnknownIsNotRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, url string }{
		{"kafka", "kafka://ADDR/t"},
		{"riemann", "riemann://ADDR"},
		{"apm", "apm+http://ADDR"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := assert.Value(standin.Spawn(t.Context(), carronade(t), tt.name, "--listen", "127.0.0.1:0", "--delay", "300ms"))(t)
			t.Cleanup(func() { _ = server.Stop() })
			args := []string{"run", strings.Replace(tt.url, "ADDR", server.Addr(), 1), "--rate", "1k/s", "--for", "10s", "--request-timeout", "3s", "--no-store", "--json"}
			if tt.name == "kafka" {
				args = append(args, "--create-topic", "auto")
			}
			p := start(t, args...)
			p.until(t, "measurement")
			assert.OK(t, syscall.Kill(server.Pid(), syscall.SIGKILL))
			p.end(t)
			var d struct {
				Classes map[string]uint64 `json:"classes"`
				Phases  []struct {
					Totals struct {
						Failed  uint64 `json:"failed"`
						Unknown uint64 `json:"unknown"`
					} `json:"totals"`
				} `json:"phases"`
			}
			assert.OK(t, json.Unmarshal(p.out.Bytes(), &d), "%s\n%s", p.out.String(), p.said.String())
			var failed, unknown uint64
			for _, ph := range d.Phases {
				failed, unknown = failed+ph.Totals.Failed, unknown+ph.Totals.Unknown
			}
			assert.True(t, failed > 0 && unknown > 0 && d.Classes["refused"] == failed && d.Classes["disconnected"] == unknown,
				"%d failed and %d unknown, by class %v; want those refused and these disconnected", failed, unknown, d.Classes)
		})
	}
}
