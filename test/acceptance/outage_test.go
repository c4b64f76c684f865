//go:build conformance

package acceptance

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"carronade/test/testkit/assert"
)

// TestOutageIsNotSteady: if the server is down for most of a run, the run is not
// steady, with a schedule and at full speed, although every answer was in time.
func TestOutageIsNotSteady(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		flags []string
	}{
		{"open loop", []string{"--rate", "1000/s", "--drain", "1s"}},
		{"full speed", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := startStandin(t, "kafka", "--listen", "127.0.0.1:0", "--in-memory", "--topic", "t:1")
			s := start(t, append([]string{"run", "kafka://" + server.addr + "/t", "--for", "10s", "--slo", "steady", "--json"}, tt.flags...)...)
			s.awaitStderr(progressText)
			pause(t, 2*time.Second)
			server.kill()
			d := s.wait(runTimeout).wantUnlessSlow(t, 1).document(t)
			// A machine that stops for a second adds an outage: the text then says how many there were.
			assert.True(t, !d.Steady.OK && d.Steady.Known && d.Steady.Silent >= 0.3 && outageText.MatchString(d.Steady.Text),
				"a run with a dead server is steady: %+v", d.Steady)
			failed := false
			for _, c := range d.Checks {
				failed = failed || c.Name == "steady" && !c.OK
			}
			assert.True(t, failed, "--slo steady holds: %+v", d.Checks)
		})
	}
}

var outageText = regexp.MustCompile(`answered (from|in \d+ stretches of .* the longest from) second `)

// TestNothingAccepted: if the system accepted no event, the exit code is 1 and the
// report says so first, whether the events were refused or not answered, and even if
// the generator was late.
func TestNothingAccepted(t *testing.T) {
	for _, tt := range []struct {
		name  string
		fault []string // of the server; nil: it is killed before the measurement
		flags []string
		want  string
	}{
		{"refused, open loop", []string{"--error", "topic-authorization-failed@100%"}, []string{"--rate", "1000/s", "--for", "2s"}, "the system accepted no event: 0/s of 1 k/s acked"},
		{"refused, full speed", []string{"--error", "topic-authorization-failed@100%"}, []string{"--for", "2s"}, "the system accepted no event: 0/s acked"},
		// A generator that does not run for half of the measurement cannot tell, so this
		// is long enough for a machine that stops for a second.
		{"dead, open loop", nil, []string{"--rate", "1000/s", "--warmup", "3s", "--for", "4s", "--drain", "1s"}, "the system answered nothing: 0/s of 1 k/s acked"},
		{"dead, full speed", nil, []string{"--warmup", "3s", "--for", "4s"}, "the system "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := startStandin(t, "kafka", append([]string{"--listen", "127.0.0.1:0", "--in-memory", "--topic", "t:1"}, tt.fault...)...)
			s := start(t, append([]string{"run", "kafka://" + server.addr + "/t"}, tt.flags...)...)
			if tt.fault == nil {
				s.awaitStderr(progressText)
				server.kill()
			}
			e := s.wait(runTimeout).want(t, 1)
			_, answer, _ := strings.Cut(e.stdout, "\n\n")
			if !strings.HasPrefix(strings.TrimSpace(answer), tt.want) || !strings.Contains(e.stdout, "taken: the system ") {
				t.Errorf("the report does not begin with %q:\n%.900s", tt.want, e.stdout)
			}
		})
	}
}
