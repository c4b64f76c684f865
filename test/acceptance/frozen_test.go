//go:build conformance

package acceptance

import (
	"slices"
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
