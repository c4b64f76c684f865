//go:build conformance

package acceptance

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"carronade/test/testkit/assert"
)

// TestKilledGenerator: a generator that is killed in the middle of a run leaves a
// report of what it had measured, marked as partial, and earlier reports stay.
func TestKilledGenerator(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	runAt(t, home, "run", "null://", "--rate", "1k/s", "--for", "500ms", "--quiet", "--label", "n=first").wantOneOf(t, 0, 3)
	before := runAt(t, home, "report", "export", "last", "--as", "json").want(t, 0).stdout
	var killed string
	for i, args := range [][]string{
		{"run", "null://", "--rate", "10k/s", "--for", "1m", "--interval", "200ms", "--label", "n=open"},
		{"run", "null://", "--concurrency", "2", "--for", "1m", "--interval", "200ms", "--label", "n=closed"},
		{"run", "null://", "--rate", "1k/s", "--for", "1m", "--interval", "1h", "--label", "n=none"}, // before its first interval has ended
	} {
		s := prepare(t, args...)
		s.home = home
		s.begin()
		if i < 2 {
			awaitIntervals(t, home, 3)
		} else {
			pause(t, time.Second)
		}
		running := runAt(t, home, "report", "list").want(t, 0).stdout
		assert.True(t, strings.Contains(running, "running") || i >= 2, "the list does not mark the run that is in progress:\n%s", running)
		s.signal(syscall.SIGKILL)
		<-s.done
		list := runAt(t, home, "report", "list").want(t, 0).stdout
		n := strings.Count(list, "killed")
		assert.Must(t, n == i+1 || i >= 2, "the list marks %d killed runs, want %d:\n%s", n, i+1, list)
		if i < 2 {
			killed, _, _ = strings.Cut(strings.Split(list, "\n")[1], " ")
			text := runAt(t, home, "report", "show", killed).want(t, 0).stdout
			assert.Has(t, text, "the program was killed", "NOT TRUSTED", "partial", killed)
			d := runAt(t, home, "report", "export", killed, "--as", "json").want(t, 0).document(t)
			if d.Totals.Acked == 0 || d.Totals.Sent != d.Totals.Acked+d.Totals.Failed+d.Totals.Unknown || len(d.Intervals) < 3 {
				t.Errorf("%d intervals of %+v are left", len(d.Intervals), d.Totals)
			}
		}
	}
	after := runAt(t, home, "report", "export", "label.n=first", "--as", "json").want(t, 0).stdout
	assert.True(t, after == before, "an earlier report has changed")
}
