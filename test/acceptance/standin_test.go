//go:build conformance

package acceptance

import (
	"bufio"
	"os/exec"
	"strings"
	"testing"
	"time"

	"carronade/internal/host"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// A standin is a stand-in that runs in its own process.
type standin struct {
	t    testing.TB
	cmd  *exec.Cmd
	addr string
}

// startStandin starts a stand-in of a kind and waits until it listens.
func startStandin(t testing.TB, kind string, args ...string) *standin {
	t.Helper()
	r := &standin{t: t, cmd: exec.Command(program, append([]string{"standin", kind}, args...)...)}
	out := assert.Value(r.cmd.StdoutPipe())(t)
	var stderr strings.Builder
	r.cmd.Stderr = &stderr
	assert.OK(t, testkit.Launch(r.cmd))
	t.Cleanup(r.kill)
	lines := bufio.NewScanner(out)
	for r.addr == "" && lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), "listening on "); ok {
			r.addr = rest
		}
	}
	if r.addr == "" {
		_ = r.cmd.Wait()
		t.Fatalf("the stand-in ended before it listened: %s", stderr.String())
	}
	return r
}

func (r *standin) kill() {
	_ = r.cmd.Process.Kill()
	_ = r.cmd.Wait()
}

// killInDebt stops the process for d and kills it, so that it owes answers then, also if
// the generator did not run just before.
func (r *standin) killInDebt(d time.Duration) {
	r.t.Helper()
	assert.OK(r.t, host.Pause(r.cmd.Process.Pid))
	pause(r.t, d)
	r.kill()
}

func (r *standin) freezeFor(d time.Duration) frozen {
	r.t.Helper()
	began := time.Now()
	assert.OK(r.t, host.Pause(r.cmd.Process.Pid))
	stopped := time.Now()
	pause(r.t, d)
	continuing := time.Now()
	assert.OK(r.t, host.Continue(r.cmd.Process.Pid))
	return frozen{began, continuing.Sub(stopped), time.Since(began)}
}
