package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"carronade/internal/host"
	"carronade/internal/verdict/trust"
	"carronade/test/testkit/assert"
)

// TestEnds: everything that several concurrent runs have started is stopped, in any order, and nothing that has already ended.
func TestEnds(t *testing.T) {
	var (
		e     ends
		mu    sync.Mutex
		ended []string
	)
	system := func(name string) func() {
		return func() {
			mu.Lock()
			defer mu.Unlock()
			ended = append(ended, name)
		}
	}
	e.stopAll() // before anything was started
	first, next, third := e.slot(), e.slot(), e.slot()
	first(system("build"))
	next(system("next"))
	first(system("first"))
	third(system("third"))
	third(nil)
	third(nil)
	e.stopAll()
	slices.Sort(ended)
	assert.Same(t, ended, []string{"first", "next"}, "ended")
}

// TestWorst combines the outcomes of repetitions, in either order.
func TestWorst(t *testing.T) {
	code := func(c int) error { return exitCode{Code: c} }
	ascending := []error{
		nil, code(host.ExitCannotTell), code(host.ExitUntrusted), code(host.ExitBroken), code(host.ExitFailed), code(host.ExitInterrupted),
	}
	for i, a := range ascending {
		for k, b := range ascending {
			got, want := worst(a, b), ascending[max(i, k)]
			assert.True(t, errors.Is(got, want), "%v and %v: got %v, want %v", a, b, got, want)
		}
	}
}

// TestExitText: the text has the findings of --verify under the right code.
func TestExitText(t *testing.T) {
	said := map[string]string{}
	code := ""
	for line := range strings.Lines(exitText) {
		if strings.TrimSpace(line) == "" {
			break
		}
		if line[2] != ' ' {
			code = strings.Fields(line)[0]
		}
		said[code] += strings.Join(strings.Fields(line), " ") + " "
	}
	for code, want := range map[string]string{
		"1": "events were lost or corrupted, or a consumer read aborted ones",
		"4": "events were removed before they were read, or the reading did not reach them",
	} {
		assert.True(t, strings.Contains(said[code], want), "code %s: got %q, want %q in it", code, said[code], want)
	}
}

// TestInterruptBeforeTheRun: the first interrupt ends a command that has begun nothing yet, whatever it reads.
func TestInterruptBeforeTheRun(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	for _, args := range [][]string{
		{"run", "-f", "-"},
		{"run", "-f", "-", "--vary", "seed=1,2"},
		{"find", "-f", "-", "--slo", "p99<5ms"},
		{"compare", "--run", "-", "-"},
		{"doctor", "-f", "-"},
		{"report", "import", "-"},
		{"profile", "-", "--format", "ndjson"},
		{"run", "null://", "--clients", "3000"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			in, end := io.Pipe() // nothing is written to it
			defer end.Close()
			signals := make(chan os.Signal, 1)
			signals <- os.Interrupt
			var out, errs bytes.Buffer
			p := &Program{Kinds: Kinds(), Room: &laptop, Args: args, In: in, Out: &out, Err: &errs, Signals: signals}
			code := p.Main()
			assert.True(t, code == host.ExitInterrupted && out.Len() <= 0, "exit %d\n%s%s", code, out.String(), errs.String())
		})
	}
}

// busyMachine is a machine whose processors other programs use.
var busyMachine = trust.Others{WindowS: 0.1, Processors: 2, Programs: 0.97, Disturb: true}

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

// The first signal stops the run, and the second exits at once. What one Ctrl-C, or one end of the program that started
// this one, sends twice is one signal: otherwise the report would be lost.
func TestSecondSignal(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct {
		name    string
		signals []os.Signal
		at      []time.Duration // since the one before
		exits   int
	}{
		{"one", []os.Signal{os.Interrupt}, []time.Duration{0}, 0},
		{"timeout signals the process and its group", []os.Signal{os.Interrupt, os.Interrupt}, []time.Duration{0, ms}, 0},
		{"within a second", []os.Signal{os.Interrupt, os.Interrupt}, []time.Duration{0, 900 * ms}, 0},
		{"TERM for each thread", []os.Signal{syscall.SIGTERM, syscall.SIGTERM, syscall.SIGTERM}, []time.Duration{0, 0, 0}, 0},
		{"again", []os.Signal{os.Interrupt, os.Interrupt}, []time.Duration{0, 1100 * ms}, 1},
		{"twice, and again", []os.Signal{os.Interrupt, os.Interrupt, os.Interrupt}, []time.Duration{0, ms, 1100 * ms}, 1},
		{"another signal", []os.Signal{os.Interrupt, syscall.SIGTERM}, []time.Duration{0, ms}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				signals := make(chan os.Signal)
				var codes []int
				stopped := 0
				s := &session{Program: &Program{Signals: signals, Exit: func(code int) { codes = append(codes, code) }}, interrupt: func(error) { stopped++ }}
				end := s.watchSignals()
				for i, sig := range tt.signals {
					time.Sleep(tt.at[i])
					signals <- sig
					synctest.Wait()
				}
				end()
				assert.Equal(t, stopped, 1, "stops of the run")
				assert.True(t, slices.Equal(codes, slices.Repeat([]int{130}, tt.exits)), "exits with %v, want %d", codes, tt.exits)
			})
		})
	}
}
