//go:build unix

package acceptance

import (
	"math"
	"testing"
	"time"
)

// TestStopped: a generator that is stopped and continued reports that as its longest
// freeze, with the cause, whether it produces or consumes.
func TestStopped(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
	}{
		{"producing", []string{"--rate", "1000/s"}},
		{"consuming", []string{"--op", "consume"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := startStandin(t, "kafka", "--listen", "127.0.0.1:0", "--in-memory", "--topic", "t:2")
			s := start(t, append([]string{"run", "kafka://" + server.addr + "/t", "--for", "4s", "--json"}, tt.args...)...)
			s.awaitStderr(progressText)
			pause(t, time.Second)
			stopped := (&standin{t: t, cmd: s.cmd}).freezeFor(300 * time.Millisecond)
			d := s.wait(runTimeout).wantOneOf(t, 0, 3).document(t)
			if len(d.Freezes.Longest) == 0 || d.Freezes.Count == 0 {
				t.Fatalf("no freeze is listed: %+v", d.Freezes)
			}
			f := d.Freezes.Longest[0]
			if f.Who != "process" || f.Cause != "stopped and continued" {
				t.Errorf("got %q frozen: %q, want the process: stopped and continued", f.Who, f.Cause)
			}
			if f.LengthS < 0.25 || math.Abs(f.LengthS-stopped.Seconds()) > 5 {
				t.Errorf("got a freeze of %v s, want %v", f.LengthS, stopped)
			}
			if d.Freezes.TotalS < f.LengthS-0.001 || d.Freezes.Share <= 0 {
				t.Errorf("got freezes of %v s, %v of the measurement", d.Freezes.TotalS, d.Freezes.Share)
			}
		})
	}
}
