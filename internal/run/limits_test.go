package run

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"carronade/internal/host"
	"carronade/load"
	"carronade/test/testkit/assert"
)

// TestLimits: limits of --slo are in the report and decide the exit code, and those on the
// delivery read events back.
func TestLimits(t *testing.T) {
	for _, c := range []struct {
		name string
		kind fakeKind
		set  []string
		exit int
		text string // of the first check that is not OK, else of the last
	}{
		{"holds", fakeKind{perBatch: 1}, []string{"rate=100/s", "for=5s", "slo=p99<20ms", "slo=throughput>=90/s"}, host.ExitOK, "100/s"},
		{"broken", fakeKind{perBatch: 1, service: 40 * time.Millisecond}, []string{"rate=100/s", "for=5s", "slo=throughput>=50/s", "slo=p99<20ms"}, host.ExitBroken, "40"},
		{"service without a schedule", fakeKind{perBatch: 1}, []string{"concurrency=1", "count=100", "slo=p99<500us"}, host.ExitBroken, "service 1"},
		{"delivery", fakeKind{perBatch: 1, consumeDelay: time.Millisecond}, []string{"rate=100/s", "for=5s", "slo=lost=0"}, host.ExitOK, "0"},
		{"keeps up", fakeKind{perBatch: 1, consumeDelay: time.Millisecond}, []string{"op=roundtrip", "rate=100/s", "for=10s", "slo=keeps-up"}, host.ExitOK, "the backlog was 0 events"},
		{"does not keep up", fakeKind{perBatch: 1, consumeDelay: 40 * time.Second}, []string{"op=roundtrip", "rate=100/s", "for=10s", "slo=keeps-up"}, host.ExitBroken, "nothing is read: the backlog grew"},
		{"too short to be steady", fakeKind{perBatch: 1}, []string{"rate=100/s", "for=2s", "slo=steady"}, host.ExitCannotTell, "too short"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := assert.Value(Execute(t.Context(), Job{Portable: true, Workload: resolve(t, &c.kind, c.set...)}))(t)
				text := ""
				for _, l := range d.Checks {
					if text = l.Text; !l.OK {
						break
					}
				}
				if code := d.ExitCode(); code != c.exit || !strings.Contains(text, c.text) {
					t.Errorf("exit %d, %q; want %d, %q (%+v)", code, text, c.exit, c.text, d.Trust)
				}
			})
		})
	}
}

// TestAbortOnFail: a limit that is broken ends the run after its delay, in a run with steps at
// the step that breaks it.
func TestAbortOnFail(t *testing.T) {
	for _, c := range []struct {
		name        string
		set         []string
		stopped     load.Reason
		least, most float64 // seconds of the measurement
	}{
		{"at once", []string{"rate=100/s", "for=60s", "slo=p90<20ms", "abort-on-fail=0s"}, load.ByLimit, 1, 3},
		{"after a delay", []string{"rate=100/s", "for=60s", "slo=p90<20ms", "abort-on-fail=10s"}, load.ByLimit, 10, 13},
		{"too few events for the percentile", []string{"rate=1/s", "for=60s", "slo=p90<20ms", "abort-on-fail=0s"}, load.ByTime, 60, 60},
		{"nothing is answered", []string{"rate=100/s", "for=60s", "drain=1s", "slo=p90<3s", "abort-on-fail=0s"}, load.ByLimit, 3, 9},
		{"not requested", []string{"rate=100/s", "for=20s", "slo=p90<20ms"}, load.ByTime, 20, 20},
		{"holds", []string{"rate=100/s", "for=20s", "slo=p90<50ms", "abort-on-fail=0s"}, load.ByTime, 20, 20},
		{"holds, and the warm-up ends late in an interval", []string{"rate=100/s", "warmup=900ms", "for=5s", "slo=throughput>=90/s", "abort-on-fail=0s"}, load.ByTime, 5, 5},
		{"holds, and answers come in the drain", []string{"rate=100/s", "for=5s", "drain=60s", "slo=target-share>=40%", "abort-on-fail=0s"}, load.ByTime, 5, 5},
		{"step", []string{"shape=steps(100/s:10s,200/s:10s,400/s:10s)", "slo=target-share>=99%", "max-in-flight=10", "batch-events=1", "abort-on-fail=0s"}, load.ByLimit, 19, 23},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &fakeKind{perBatch: 1, service: 40 * time.Millisecond, noAnswers: c.name == "nothing is answered"}
				if c.name == "holds, and answers come in the drain" {
					m.service = 2 * time.Second
					c.set = append(c.set, "max-in-flight=1000")
				}
				d := assert.Value(Execute(t.Context(), Job{Portable: true, Workload: resolve(t, m, c.set...)}))(t)
				if e := d.Totals.ElapsedS; d.Stopped != c.stopped || e < c.least || e > c.most {
					t.Errorf("ended by %s after %v s, want %s after %v to %v", d.Stopped, e, c.stopped, c.least, c.most)
				}
				if c.name == "nothing is answered" {
					return // the end of such a target is an error
				}
				want := host.ExitOK // also with steps: the last one that holds the limit is the answer
				if !strings.Contains(c.name, "step") && !strings.HasPrefix(c.name, "holds") {
					want = host.ExitBroken
				}
				assert.Equal(t, d.ExitCode(), want, "exit: %+v", d.Checks)
			})
		})
	}
}
