package find

import (
	"strings"
	"testing"
	"time"

	"carronade/test/testkit/assert"
)

// While a search goes on, the interval closes, and the time left falls.
func TestProgress(t *testing.T) {
	s := newServer(1, exponential)
	o := &Options{Times: p99(50 * time.Millisecond), Precision: 0.02, Budget: 10 * time.Minute}
	a, history := s.find(o)
	assert.Must(t, a.Ending == Found, "got %+v", a)
	left := o.Budget
	for i := range history {
		p := o.Progress(history[:i+1])
		role := history[i].Trial.Role
		switch {
		case p.Left >= left, p.Left < 0, (p.Verdict == nil) != (role == Probe || role == WarmUp || role == Beyond), role != Probe && p.Precision == 0 && i+1 < len(history):
			t.Errorf("after trial %d, %s: %+v", i+1, role, p)
		case p.Holds > 0 && p.Fails > 0 && p.Holds >= p.Fails:
			t.Errorf("after trial %d: %v to %v", i+1, p.Holds, p.Fails)
		}
		left = p.Left
	}
	o.Soak = time.Minute
	next, _ := o.Next(history)
	soaked := s.run(*next, o.Times)
	soaked.Broken = "a limit"
	if p := o.Progress(append(history[:len(history):len(history)], soaked)); p.Verdict == nil || p.Verdict.Why != "a limit" {
		t.Errorf("after the soak: %+v", p)
	}
	if p := o.Progress(append(history[:len(history):len(history)], Outcome{Trial: *next, Dead: "it ended"})); p.Verdict == nil || p.Verdict.Why != "it ended" {
		t.Errorf("after a soak in which the system died: %+v", p)
	}
	planned, p := o.Progress(history[:6]), o.Progress(history)
	assert.True(t, p.Holds == a.Holds && p.Fails == a.Fails, "got %+v, want %v to %v", p, a.Holds, a.Fails)
	if got := o.Plan(&planned); !strings.HasPrefix(got, "plan: an answer 6.") || !strings.Contains(got, "% wide, which is what 10m allow; 2% would take ") {
		t.Errorf("got %q", got)
	}
	before := o.Progress(nil)
	if got := o.Plan(&before); got != "" || before.Text() != "at most 10m00s left" {
		t.Errorf("before the first trial: %q and %q", got, before.Text())
	}
	for _, tt := range []struct {
		p    Progress
		want string
	}{
		{Progress{Holds: 900, Fails: 1100, Left: 90 * time.Second}, "900/s to 1.1 k/s, at most 1m30s left"},
		{Progress{Holds: 1.05e6, Fails: 1.1e6, Left: 90 * time.Second}, "1.05 to 1.1 M/s, at most 1m30s left"},
		{Progress{Holds: 900, Left: 90 * time.Second}, "900/s holds, at most 1m30s left"},
		{Progress{Fails: 900}, "900/s fails, at most 0 s left"},
	} {
		assert.Equal(t, tt.p.Text(), tt.want)
	}
	assert.Equal(t, o.Plan(&Progress{Precision: 0.02}), "plan: an answer 2% wide, within 10m and 24 trials")
}
