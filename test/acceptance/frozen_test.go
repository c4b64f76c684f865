//go:build conformance

package acceptance

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"carronade/test/testkit/assert"
)

// A frozen is when a process was stopped, and for how long at least and at most.
type frozen struct {
	at          time.Time
	least, most time.Duration
}

// checkFreeze checks the response times of an open loop, to a server that was frozen once during the
// measurement. Every event due during the freeze waits until its end. So with events due evenly over a
// measurement of length T and a freeze of length f, the share of response times above x is (f-x)/T, and the
// 99th percentile is f - T/100, or up to above times that, which is for what waited.
//
// A busy machine may stop the generator too. Events then wait for as much longer as the report's freezes say,
// which it blames on the generator; and no more than that.
func (d *document) checkFreeze(t *testing.T, f frozen, measurement time.Duration, above float64) {
	t.Helper()
	least, most := (f.least - measurement/100).Seconds(), (f.most-measurement/100).Seconds()+d.Freezes.TotalS
	got := d.Response.P99US / 1e6
	t.Logf("frozen %v to %v, the generator %.3f s; response p99 %.3f s, closed form %.3f s", f.least, f.most, d.Freezes.TotalS, got, least)
	assert.True(t, got >= least*0.95 && got <= most*above,
		"response p99 is %.3f s, the closed form %.3f s to %.3f s; freezes of the generator %+v", got, least, most, d.Freezes)
	for _, b := range d.Trust.Bounds {
		if blamed := (b.UpperUS - b.LowerUS) / 1e6; blamed > d.Freezes.TotalS+f.least.Seconds()/4 {
			t.Errorf("the freeze of the server is blamed on the generator: %.3f s of %s p%v, and it was frozen for %.3f s", blamed, b.Time, b.P, d.Freezes.TotalS)
		}
	}
	at := f.at.Sub(d.StartedAt).Seconds()
	for _, own := range d.Freezes.Longest {
		if shared := min(own.AtS+own.LengthS, at+f.least.Seconds()) - max(own.AtS, at); shared > f.least.Seconds()*0.9 && own.LengthS < f.most.Seconds()*1.1 {
			t.Errorf("the freeze of the server at %.3f s is listed as one of the generator: %+v", at, own)
		}
	}
}

// checkQueueing checks where the events that were due while a server was frozen
// waited: for the in-flight bound, or for their answers if it is wide.
func (d *document) checkQueueing(t *testing.T, f frozen, queueing bool) {
	t.Helper()
	got := d.Queueing.MaxUS / 1e6
	assert.True(t, !queueing || got >= f.least.Seconds()*0.9, "queueing is %.3f s at most: it lacks the waiting for the bound", got)
	assert.True(t, queueing || got <= f.least.Seconds()*0.5+d.Freezes.TotalS, "queueing is %.3f s at most though the bound is wide", got)
}

// TestStopped: a generator that is stopped and continued reports that as its longest
// freeze, with the cause, whether it produces or consumes.
func TestStopped(t *testing.T) {
	t.Parallel()
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
			// A busy machine may stop it too, even for longer; that has another cause.
			i := slices.IndexFunc(d.Freezes.Longest, func(f freeze) bool { return f.Cause == "stopped and continued" })
			assert.Must(t, i >= 0 && d.Freezes.Count != 0, "the freeze is not listed, or not with its cause: %+v", d.Freezes)
			f := d.Freezes.Longest[i]
			assert.Equal(t, f.Who, "process", "frozen")
			assert.True(t, f.LengthS >= stopped.least.Seconds()*0.8 && f.LengthS <= stopped.most.Seconds()+5,
				"got a freeze of %v s, want %v to %v", f.LengthS, stopped.least, stopped.most)
			assert.True(t, d.Freezes.TotalS >= f.LengthS-0.001 && d.Freezes.Share > 0,
				"got freezes of %v s, %v of the measurement", d.Freezes.TotalS, d.Freezes.Share)
		})
	}
}

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

// If the system accepted no event, the exit code is 1 and the report says so first, whether the events were
// refused or not answered, and even if the generator was late.
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
