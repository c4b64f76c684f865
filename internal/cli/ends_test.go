package cli

import (
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"carronade/internal/host"
	"carronade/test/testkit/assert"
)

// TestEnds: everything that several concurrent runs have started is stopped, in
// any order, and nothing that has already ended.
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
