//go:build conformance

package acceptance

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"carronade/test/testkit/assert"
)

// runAt runs the program to its end, in the home of another run.
func runAt(t testing.TB, home string, args ...string) ended {
	t.Helper()
	s := prepare(t, args...)
	s.home = home
	s.begin()
	return s.wait(runTimeout)
}

// A listed is a report in the output of report list.
type listed struct {
	ID      string         `json:"id"`
	Running bool           `json:"running"`
	Fields  map[string]any `json:"fields"`
}

// list lists the reports in a home, newest first.
func list(t testing.TB, home string) []listed {
	t.Helper()
	var l struct {
		Reports []listed `json:"reports"`
	}
	e := runAt(t, home, "report", "list", "--all", "--json", "--columns", "stopped,partial,throughput").want(t, 0)
	assert.OK(t, json.Unmarshal([]byte(e.stdout), &l))
	return l.Reports
}

// A generator that is killed in the middle of a run leaves a partial report of what it had measured, which list
// marks and show prints. No earlier report is lost or changed.
func TestGeneratorKilled(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	runAt(t, home, "run", "null://", "--rate", "1k/s", "--for", "300ms", "--quiet", "--label", "n=first").wantOneOf(t, 0, 3)
	before := list(t, home)
	assert.Must(t, len(before) == 1, "got %d reports of one run", len(before))
	first := runAt(t, home, "report", "export", "last", "--as", "json").want(t, 0).stdout
	for i, args := range [][]string{
		{"run", "null://", "--rate", "10k/s", "--for", "5m", "--interval", "200ms"},
		{"run", "null://", "--concurrency", "2", "--for", "5m", "--interval", "200ms"},
		{"run", "null://", "--rate", "1k/s", "--for", "5m", "--interval", "1h"}, // before its first interval has ended
	} {
		s := prepare(t, args...)
		s.home = home
		s.begin()
		if i == 2 {
			pause(t, time.Second)
			s.signal(syscall.SIGKILL)
			<-s.done
			break
		}
		awaitIntervals(t, home, 3)
		now := list(t, home)
		assert.Must(t, len(now) == i+2 && now[0].Running && !now[1].Running,
			"got %+v, want a run in progress and those that have ended", now)
		id := now[0].ID
		assert.Has(t, runAt(t, home, "report", "list").want(t, 0).stdout, "  running")
		runAt(t, home, "report", "delete", id).want(t, 2).says(t, "has not ended", "hint: ")
		s.signal(syscall.SIGKILL)
		<-s.done
		assert.Equal(t, strings.Count(runAt(t, home, "report", "list").want(t, 0).stdout, "  killed"), i+1, "runs that list marks as killed")
		text := runAt(t, home, "report", "show", id).want(t, 0).stdout
		assert.Has(t, text, "the program was killed", "NOT TRUSTED", "partial", "acked", id)
		assert.Has(t, runAt(t, home, "report", "show", "last", "--json").want(t, 0).stdout, id) // it ended last
		d := runAt(t, home, "report", "export", id, "--as", "json").want(t, 0).document(t)
		assert.True(t, d.Totals.Acked != 0 && d.Totals.Sent == d.Totals.Acked+d.Totals.Failed+d.Totals.Unknown &&
			len(d.Intervals) >= 3, "%d intervals of %+v are left", len(d.Intervals), d.Totals)
	}
	runAt(t, home, "report", "show", before[0].ID).want(t, 0)
	runAt(t, home, "report", "check").want(t, 0)
	again := runAt(t, home, "report", "export", "label.n=first", "--as", "json").want(t, 0).stdout
	assert.True(t, again == first, "an earlier report has changed")
}

// awaitIntervals waits until the run in progress has stored n intervals.
func awaitIntervals(t *testing.T, home string, n int) {
	t.Helper()
	end := time.After(time.Minute)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		for _, r := range list(t, home) {
			if !r.Running {
				continue
			}
			if e := runAt(t, home, "report", "show", r.ID, "--json"); e.code == 0 && strings.Count(e.stdout, `"phase": "measurement"`) >= n {
				return
			}
		}
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("%d intervals were not stored within a minute", n)
		}
	}
}

// TestKillsAtRandomMoments kills the program at random moments of short runs: starting, measuring, storing
// its report, ending. The reports of all runs that had ended are complete.
func TestKillsAtRandomMoments(t *testing.T) {
	t.Parallel()
	rounds := 20
	if text := os.Getenv("CARRONADE_TEST_KILLS"); text != "" {
		var err error
		rounds, err = strconv.Atoi(text)
		assert.OK(t, err)
	}
	home := t.TempDir()
	length := runAt(t, home, "run", "null://", "--rate", "1k/s", "--for", "200ms", "--quiet").wantOneOf(t, 0, 3).elapsed
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0)) //nolint:gosec // a moment
	complete := 1
	const parallel = 2
	for range rounds / parallel {
		var running [parallel]*session
		for k := range running {
			running[k] = prepare(t, "run", "null://", "--rate", "1k/s", "--for", "200ms", "--interval", "50ms", "--quiet")
			running[k].home = home
			running[k].begin()
		}
		pause(t, time.Duration(r.Int64N(int64(length+length/2))))
		for _, s := range running {
			_ = s.cmd.Process.Kill() // fails if it has ended
		}
		for _, s := range running {
			<-s.done
			if s.stdout.String() != "" && s.err == nil {
				complete++
			}
		}
	}
	runAt(t, home, "report", "check").want(t, 0)
	ended, killed := 0, 0
	for _, l := range list(t, home) {
		switch {
		case l.Running:
			t.Errorf("report %s is marked as in progress", l.ID)
		case l.Fields["stopped"] == "killed":
			killed++
		default:
			ended++
		}
	}
	assert.True(t, ended >= complete, "%d runs ended with their reports, and there are %d reports", complete, ended)
	t.Logf("%d kills: %d runs had ended, %d left a partial report", rounds, ended, killed)
}
