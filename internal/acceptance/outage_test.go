package acceptance

import (
	"strings"
	"testing"
	"time"
)

// TestOutageIsNotSteady: a server that is gone for most of a run makes it not
// steady, by a schedule and at full speed, although every answer came in time.
func TestOutageIsNotSteady(t *testing.T) {
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
			s := start(t, append([]string{"run", "kafka://" + server.addr + "/t", "--for", "10s", "--require", "steady", "--json"}, tt.flags...)...)
			s.awaitSaid(firing)
			after(t, 2*time.Second)
			server.kill()
			d := s.wait(patience).judged(t, 1).document(t)
			if d.Steady.OK || !d.Steady.Known || d.Steady.Silent < 0.3 || !strings.Contains(d.Steady.Text, "answered from second ") {
				t.Errorf("a dead server is steady: %+v", d.Steady)
			}
			broken := false
			for _, c := range d.Checks {
				broken = broken || c.Name == "require" && !c.OK
			}
			if !broken {
				t.Errorf("--require steady holds: %+v", d.Checks)
			}
		})
	}
}
