//go:build unix

package cli_test

import (
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"carronade/test/testkit/assert"
)

// A series that was killed or interrupted in a run goes on with that run. The runs before it
// are not repeated.
func TestResumeAfterTheEnd(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"killed", "interrupted"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			args := []string{
				"run", "null://", "--rate", "1k/s", "--for", "1s", "--interval", "50ms", "--repeat", "2", "--vary", "seed=1,2",
				"--store", filepath.Join(t.TempDir(), "reports.db"),
			}
			p := startTrusted(t, args...)
			p.until(t, "--resume")
			p.until(t, "run 2 of 4")
			p.until(t, "measurement")
			if how == "killed" {
				assert.OK(t, p.Process.Kill())
				_ = p.Wait()
			} else {
				p.interrupt(t)
				p.exits(t, 130, " of 4: the same command with --resume ")
			}
			series := regexp.MustCompile(`--resume (s[a-z0-9]{7}) `).FindStringSubmatch(p.said.String())[1]
			p = startTrusted(t, append(args, "--resume", series)...)
			code := p.end(t)
			there := regexp.MustCompile(`: ([123]) of 4 runs are there`).FindStringSubmatch(p.said.String()) // more than 1 if the signal was late
			assert.True(t, code == 0 && there != nil && strconv.Itoa(4-strings.Count(p.said.String(), "kept as")) == there[1],
				"exit code %d, it said:\n%s", code, p.said.String())
			if !strings.Contains(p.out.String(), ": 2 cells, 2 runs each") || !strings.Contains(p.out.String(), "decides") {
				t.Errorf("it printed:\n%s", p.out.String())
			}
		})
	}
}
