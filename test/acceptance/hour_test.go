//go:build conformance

package acceptance

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"testing"
	"time"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// TestHourIsSmall: verified round trips at 20,000 events a second take little memory, however
// long they run. CARRONADE_TEST_HOUR says how long: 1h in make soak.
func TestHourIsSmall(t *testing.T) {
	long, err := time.ParseDuration(os.Getenv("CARRONADE_TEST_HOUR"))
	if err != nil {
		t.Skip("CARRONADE_TEST_HOUR=1h runs an hour")
	}
	const (
		most    = 150 << 20
		settled = 5 * time.Minute // until then buffers and the heap grow to their size
		growth  = 48 << 20        // after that: the series, at most 16 MiB, and buffers that a busy machine needs
	)
	broker := startStandin(t, "kafka", "--in-memory", "--retain", "16MiB", "--topic", "hour:4", "--listen", "127.0.0.1:0")
	s := start(t, "run", "kafka://"+broker.addr+"/hour", "--op", "roundtrip", "--verify", "--rate", "20k/s", "--for", long.String(), "--quiet", "--json")
	e := s.wait(long+10*time.Minute).wantOneOf(t, 0, 3)
	var d struct {
		Generator struct {
			MaxRSS uint64 `json:"max_rss_bytes"`
		} `json:"generator"`
		Intervals []struct {
			EndS      float64 `json:"end_s"`
			Generator struct {
				RSS uint64 `json:"rss_bytes"`
			} `json:"generator"`
		} `json:"intervals"`
	}
	assert.OK(t, json.Unmarshal([]byte(e.stdout), &d))
	n := len(d.Intervals)
	assert.Must(t, n >= 5, "got %d intervals", n)
	first, last := d.Intervals[0], d.Intervals[n-1]
	for i := range d.Intervals {
		if iv := d.Intervals[i]; iv.EndS <= settled.Seconds() {
			first = iv
		}
		if i%max(n/12, 1) == 0 {
			t.Logf("after %4.0f s: %d MiB", d.Intervals[i].EndS, d.Intervals[i].Generator.RSS>>20)
		}
	}
	t.Logf("at most %d MiB", d.Generator.MaxRSS>>20)
	assert.True(t, d.Generator.MaxRSS <= most, "it took %d bytes, want at most %d", d.Generator.MaxRSS, most)
	assert.True(t, last.Generator.RSS <= first.Generator.RSS+growth,
		"from %.0f s to %.0f s it grew from %d to %d bytes, want at most %d more", first.EndS, last.EndS, first.Generator.RSS, last.Generator.RSS, growth)
}

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
