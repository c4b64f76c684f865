//go:build conformance

package acceptance

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/kafkatest"
)

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

// TestHourIsSmall: verified round trips at 20,000 events a second take little memory, however
// long they run. CARRONADE_TEST_HOUR says how long: 1h in make soak.
func TestHourIsSmall(t *testing.T) {
	long, err := time.ParseDuration(os.Getenv("CARRONADE_TEST_HOUR"))
	if err != nil {
		t.Skip("CARRONADE_TEST_HOUR=1h runs an hour")
	}
	const (
		most    = 150 << 20
		settled = 5 * time.Minute // until then buffers and the heap grow to their size
		growth  = 48 << 20        // after that: the series, at most 16 MiB, and buffers that a busy machine needs
	)
	broker := startStandin(t, "kafka", "--in-memory", "--retain", "16MiB", "--topic", "hour:4", "--listen", "127.0.0.1:0")
	s := start(t, "run", "kafka://"+broker.addr+"/hour", "--op", "roundtrip", "--verify", "--rate", "20k/s", "--for", long.String(), "--quiet", "--json")
	e := s.wait(long+10*time.Minute).wantOneOf(t, 0, 3)
	var d struct {
		Generator struct {
			MaxRSS uint64 `json:"max_rss_bytes"`
		} `json:"generator"`
		Intervals []struct {
			EndS      float64 `json:"end_s"`
			Generator struct {
				RSS uint64 `json:"rss_bytes"`
			} `json:"generator"`
		} `json:"intervals"`
	}
	assert.OK(t, json.Unmarshal([]byte(e.stdout), &d))
	n := len(d.Intervals)
	assert.Must(t, n >= 5, "got %d intervals", n)
	first, last := d.Intervals[0], d.Intervals[n-1]
	for i := range d.Intervals {
		if iv := d.Intervals[i]; iv.EndS <= settled.Seconds() {
			first = iv
		}
		if i%max(n/12, 1) == 0 {
			t.Logf("after %4.0f s: %d MiB", d.Intervals[i].EndS, d.Intervals[i].Generator.RSS>>20)
		}
	}
	t.Logf("at most %d MiB", d.Generator.MaxRSS>>20)
	assert.True(t, d.Generator.MaxRSS <= most, "it took %d bytes, want at most %d", d.Generator.MaxRSS, most)
	assert.True(t, last.Generator.RSS <= first.Generator.RSS+growth,
		"from %.0f s to %.0f s it grew from %d to %d bytes, want at most %d more", first.EndS, last.EndS, first.Generator.RSS, last.Generator.RSS, growth)
}

// TestDay runs examples/day.sh, a day's work of a new user. The script itself requires the exit
// code of every command.
func TestDay(t *testing.T) {
	testkit.OnlyConformance(t, "takes a minute, alone on the machine: the tests of internal/cli run the examples of all documents")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "../../examples/day.sh")
	cmd.Env = append(testkit.PythonEnv(t), "CARRONADE="+program, "NO_COLOR=1")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it ends its servers
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	assert.OK(t, err, "examples/day.sh:\n%s", out)
	for _, want := range []string{
		`(PASS|holds) +verify: nothing was lost or altered`, // the demo
		`(PASS|holds|CANNOT TELL|cannot tell) +p99 < 1 s: `,
		`hold the limits, up to|holds the limits`, // steps
		`(?m)^report id .* acks$`,
		`(?m)^report id .* compression$`,
		`(FAIL|BROKEN) +p50 < 100 ms: `,
		`verdict +(worse|cannot tell): response p99: `,
		`lost = 0: `,
		`(?m)^20000 records sent, `,
		`(?m)^carronade_acked_events_total\{.*\} 4000$`,
		`exit code of the run: (0|3)`,
		`batches`,
		`(?m)^day.sh: done$`,
	} {
		assert.True(t, regexp.MustCompile(want).Match(out), "examples/day.sh does not print %s:\n%s", want, out)
	}
}

// TestInterrupted presses Ctrl-C at each stage of a run: there is a report each time, and nothing hangs.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Shared(t)
	url := topicURL(broker, broker.CreateTopic(t, 2, 1))
	for _, engine := range engines {
		for _, tt := range []struct{ name, args string }{
			{"warming up", "--rate 1000/s --warmup 60s --for 1m"},
			{"measuring", "--rate 1000/s --for 1m"},
			{"full speed", ""},
			{"consuming", "--op consume --idle-timeout 1m"},
		} {
			t.Run(engine+"/"+tt.name, func(t *testing.T) {
				t.Parallel()
				s := start(t, append([]string{"run", url, "--engine", engine, "--json"}, strings.Fields(tt.args)...)...)
				s.awaitStderr(progressText)
				s.signal(os.Interrupt)
				d := s.wait(15*time.Second).want(t, 130).document(t)
				all := d.wholeRun()
				assert.True(t, d.Stopped != "" && (all.Acked > 0 || tt.name == "consuming") && d.Totals.Acked == d.Totals.Sent &&
					(tt.name != "warming up" || d.Totals.Sent == 0), "stopped by %q with %+v, its measurement %+v", d.Stopped, all, d.Totals.counts)
			})
		}
	}
}

// TestInterruptedFrozen presses Ctrl-C while a broker is frozen: in the drain, and twice.
func TestInterruptedFrozen(t *testing.T) {
	t.Parallel()
	c := kafkatest.Start(t, kafkatest.Config{Heap: "512m"})
	for _, engine := range engines {
		begin := func(t *testing.T, flags ...string) *session {
			topic := c.CreateTopic(t, 1, 1)
			s := start(t, append([]string{"run", topicURL(c, topic), "--engine", engine, "--rate", "200/s", "--for", "3s", "--drain", "6s", "--json"}, flags...)...)
			s.awaitStderr(progressText)
			c.Node(1).Freeze(t)
			t.Cleanup(func() { c.Node(1).Thaw(t) })
			return s
		}
		t.Run(engine+"/draining", func(t *testing.T) {
			s := begin(t)
			pause(t, 4*time.Second) // the measurement is over, and answers are missing
			s.signal(os.Interrupt)
			d := s.wait(15*time.Second).want(t, 130).document(t)
			assert.True(t, d.Totals.Unknown+d.Totals.Unsent != 0, "the frozen broker left no event unanswered: %+v", d.Totals.counts)
		})
		t.Run(engine+"/twice", func(t *testing.T) {
			s := begin(t, "--drain", "60s")
			pause(t, time.Second) // so that something is in flight
			s.signal(os.Interrupt)
			pause(t, 300*time.Millisecond)
			s.signal(os.Interrupt)
			s.wait(20*time.Second).want(t, 130) // the drain would last a minute
		})
	}
	t.Run("reading back", func(t *testing.T) {
		topic := c.CreateTopic(t, 1, 1)
		s := start(t, "run", topicURL(c, topic), "--for", "3s", "--size", "1KiB", "--verify", "--json")
		s.awaitStderr("reading back", "read back", "verif")
		c.Node(1).Freeze(t)
		t.Cleanup(func() { c.Node(1).Thaw(t) })
		s.signal(os.Interrupt)
		d := s.wait(15*time.Second).want(t, 130).document(t)
		assert.True(t, d.Totals.Acked > 0 && d.Ledger != nil && d.Ledger.Lost == 0,
			"totals %+v, ledger %+v: unread events are not lost", d.Totals.counts, d.Ledger)
	})
}
