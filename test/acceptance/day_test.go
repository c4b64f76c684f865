//go:build conformance

package acceptance

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"testing"
	"time"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// TestDay runs examples/day.sh, a day's work of a new user. The script itself requires the exit
// code of every command.
func TestDay(t *testing.T) {
	testkit.OnlyConformance(t, "takes a minute, alone on the machine: the tests of internal/cli run the examples of all documents")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "../../examples/day.sh")
	cmd.Env = append(testkit.PythonEnv(t), "CARRONADE="+program, "NO_COLOR=1")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it ends its servers
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	assert.OK(t, err, "examples/day.sh:\n%s", out)
	for _, want := range []string{
		`(PASS|holds) +verify: nothing was lost or altered`, // the demo
		`(PASS|holds|CANNOT TELL|cannot tell) +p99 < 1 s: `,
		`hold the limits, up to|holds the limits`, // steps
		`(?m)^report id .* acks$`,
		`(?m)^report id .* compression$`,
		`(FAIL|BROKEN) +p50 < 100 ms: `,
		`verdict +(worse|cannot tell): response p99: `,
		`lost = 0: `,
		`(?m)^20000 records sent, `,
		`(?m)^carronade_acked_events_total\{.*\} 4000$`,
		`exit code of the run: (0|3)`,
		`batches`,
		`(?m)^day.sh: done$`,
	} {
		assert.True(t, regexp.MustCompile(want).Match(out), "examples/day.sh does not print %s:\n%s", want, out)
	}
}
