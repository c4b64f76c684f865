package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"carronade/internal/cli"
	"carronade/test/testkit/assert"
)

// A command line is a value: several run in one process independently.
func TestProgramsSideBySide(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	counts := []string{"1000", "2000", "3000"}
	outs := make([]bytes.Buffer, len(counts))
	var all3 sync.WaitGroup
	for i, n := range counts {
		all3.Go(func() {
			p := &cli.Program{
				Kinds: cli.Kinds(), Args: []string{"run", "null://", "--count", n, "--json", "--quiet"},
				In: strings.NewReader(""), Out: &outs[i], Err: new(bytes.Buffer),
			}
			code := p.Main()
			assert.True(t, code == 0 || code == 3, "--count %s: exit code %d", n, code)
		})
	}
	all3.Wait()
	for i, n := range counts {
		var d struct {
			Totals struct{ Acked json.Number }
		}
		assert.OK(t, json.Unmarshal(outs[i].Bytes(), &d), "%s", outs[i].String())
		assert.Equal(t, d.Totals.Acked.String(), n, "--count acked")
	}
}

// The second signal calls Exit; the first only stops the run.
func TestProgramSignals(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	signals := make(chan os.Signal, 1)
	var out, words bytes.Buffer
	p := &cli.Program{
		Kinds: cli.Kinds(), Args: []string{"run", "null://", "--rate", "1k/s", "--for", "10m", "--interval", "20ms", "--json"},
		In: strings.NewReader(""), Out: &out, Err: writer(func(b []byte) {
			words.Write(b)
			if bytes.Contains(b, []byte("measurement")) {
				select {
				case signals <- os.Interrupt:
				default:
				}
			}
		}),
		Signals: signals,
		Exit:    func(int) {},
	}
	code := p.Main()
	assert.True(t, code == 130, "exit code: got %d, want 130; it said:\n%s", code, words.String())
	assert.True(t, strings.Contains(out.String(), `"partial": true`),
		"the report is not marked as partial:\n%s", out.String())
}

// A program whose parent was killed gets TERM several times. They count as one, so the run keeps its report.
func TestTermOfKilledParent(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	signals := make(chan os.Signal, 3)
	var out, words bytes.Buffer
	var sent sync.Once
	p := &cli.Program{
		Kinds: cli.Kinds(), Args: []string{"run", "null://", "--rate", "1k/s", "--for", "10m", "--interval", "20ms", "--json"},
		In: strings.NewReader(""), Out: &out, Err: writer(func(b []byte) {
			words.Write(b)
			if bytes.Contains(b, []byte("measurement")) {
				sent.Do(func() {
					for range cap(signals) {
						signals <- syscall.SIGTERM
					}
				})
			}
		}),
		Signals: signals,
		Exit:    func(int) { t.Error("it exits at once") },
	}
	code := p.Main()
	assert.True(t, code == 130, "exit code: got %d, want 130; it said:\n%s", code, words.String())
	assert.True(t, strings.Contains(out.String(), `"partial": true`),
		"the report is not marked as partial:\n%s", out.String())
}

// A writer is a function that gets the written bytes.
type writer func([]byte)

func (w writer) Write(b []byte) (int, error) { w(b); return len(b), nil }
