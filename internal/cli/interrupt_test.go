package cli

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"

	"carronade/internal/host"
	"carronade/test/testkit/assert"
)

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
