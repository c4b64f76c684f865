package sqlite

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"carronade/internal/report"
	"carronade/internal/store"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/reporttest"
)

// asWriter, in the environment, turns the test program into a process that stores reports until it is killed:
// the path of the store, the number of its first report, and how many (0: no limit).
const asWriter = "CARRONADE_TEST_STORE_WRITER"

// kills is the number of rounds of kills by default; CARRONADE_TEST_KILLS overrides it.
const kills = 20

func TestMain(m *testing.M) {
	if text := os.Getenv(asWriter); text != "" {
		if err := keepReports(text, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// intervals is the number of intervals of a writer's reports.
const intervals = 4

// keepReports stores reports, every other one like a run, and prints the number of each after the store has confirmed it.
func keepReports(text string, out io.Writer) error {
	words := strings.Split(text, "|")
	first, err := strconv.Atoi(words[1])
	if err != nil {
		return err
	}
	count, err := strconv.Atoi(words[2])
	if err != nil {
		return err
	}
	ctx := context.Background()
	s, err := Open(ctx, words[0])
	if err != nil {
		return err
	}
	defer s.Close()
	series := make([]report.Interval, intervals)
	for i := range series {
		series[i] = reporttest.Interval(0, i)
	}
	for n := first; count == 0 || n < first+count; n++ {
		head := reporttest.Head(n)
		d := reporttest.Complete(head, series)
		if n%2 == 0 {
			err = s.Put(ctx, d)
		} else {
			err = keepRun(ctx, s, head, d)
		}
		if err != nil {
			return fmt.Errorf("report %d: %w", n, err)
		}
		if _, err := fmt.Fprintln(out, "kept", n); err != nil {
			return err
		}
	}
	return nil
}

func keepRun(ctx context.Context, s *Store, head, d *report.Document) error {
	w, err := s.Begin(ctx, head)
	if err != nil {
		return err
	}
	for i := range d.Intervals {
		e, err := d.Intervals[i].Encode()
		if err != nil {
			return err
		}
		w.Interval(e)
	}
	return w.Finish(ctx, d)
}

// startWriter starts a process that stores reports; stored is called for each.
func startWriter(t *testing.T, path string, first, count int, stored func(n int)) (*exec.Cmd, <-chan error) {
	t.Helper()
	exe := assert.Value(os.Executable())(t)
	cmd := exec.Command(exe, "-test.run=^$")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s|%d|%d", asWriter, path, first, count))
	var words strings.Builder
	cmd.Stderr = &words
	out := assert.Value(cmd.StdoutPipe())(t)
	assert.OK(t, cmd.Start())
	done := make(chan error, 1)
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if n, err := strconv.Atoi(strings.TrimPrefix(lines.Text(), "kept ")); err == nil {
				stored(n)
			}
		}
		err := cmd.Wait()
		if words.Len() > 0 {
			err = fmt.Errorf("%w: %s", err, words.String())
		}
		done <- err
	}()
	return cmd, done
}

// Processes that store reports are killed at random moments: every report that
// the store confirmed exists each time, and at the end.
func TestKillsAtRandomMoments(t *testing.T) {
	testkit.Need(t, "some seconds")
	rounds := kills
	if text := os.Getenv("CARRONADE_TEST_KILLS"); text != "" {
		rounds = assert.Value(strconv.Atoi(text))(t)
	}
	path := filepath.Join(t.TempDir(), "reports.db")
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0)) //nolint:gosec // only a delay
	var (
		mu  sync.Mutex
		all []int
	)
	const writers, apart = 2, 1_000_000
	next := [writers]int{}
	for round := range rounds {
		begun := make(chan struct{}, 64*writers)
		var cmds [writers]*exec.Cmd
		var done [writers]<-chan error
		for k := range writers {
			cmds[k], done[k] = startWriter(t, path, k*apart+next[k], 0, func(n int) {
				mu.Lock()
				all, next[k] = append(all, n), n-k*apart+1
				mu.Unlock()
				select {
				case begun <- struct{}{}:
				default:
				}
			})
		}
		wait := time.NewTimer(time.Duration(r.Int64N(int64(100 * time.Millisecond))))
		if round%4 > 0 { // mostly after some were stored; otherwise while the store is opened
			select {
			case <-begun:
			case err := <-done[0]:
				t.Fatalf("round %d: a writer ended before it was killed: %v", round, err)
			case <-time.After(time.Minute):
				t.Fatalf("round %d: no report was kept within a minute", round)
			}
		}
		<-wait.C
		for k := range writers {
			_ = cmds[k].Process.Kill()
		}
		for k := range writers {
			err := <-done[k]
			assert.True(t, err != nil && !strings.Contains(err.Error(), "report "), "round %d: a writer ended before it was killed: %v", round, err)
			next[k] += 2 // the report in progress may exist or not
		}
		mu.Lock()
		recent := all[max(0, len(all)-4):]
		mu.Unlock()
		checkKept(t, path, recent)
	}
	checkKept(t, path, all)
	if least := rounds - (rounds+3)/4; len(all) < least { // at least one in each round that waits for it
		t.Errorf("%d reports were kept in %d rounds, want %d at least", len(all), rounds, least)
	}
	s := open(t, path)
	assert.OK(t, s.Check(t.Context()))
	rows := assert.Value(s.Rows(t.Context(), store.Query{Fields: []string{"partial"}}))(t)
	killed := 0
	for i := range rows {
		assert.True(t, !rows[i].Running, "report %s is listed as running", rows[i].ID)
		if v, _ := rows[i].Num("partial"); v == 0 {
			continue
		}
		killed++
		d, err := s.Get(t.Context(), rows[i].ID)
		assert.True(t, err == nil && d.Check() == nil, "the report of a killed run cannot be read: %v", err)
	}
	t.Logf("%d kills: %d reports were kept, and %d of killed runs", rounds*writers, len(all), killed)
}

// checkKept reads stored reports by their numbers.
func checkKept(t *testing.T, path string, ns []int) {
	t.Helper()
	s := assert.Value(Open(t.Context(), path))(t)
	defer s.Close()
	for _, n := range ns {
		d := assert.Value(s.Get(t.Context(), reporttest.Head(n).ID))(t, "report %d was stored and is lost", n)
		assert.Must(t, len(d.Intervals) == intervals && !d.Partial,
			"report %d was stored completely and has %d intervals, partial: %v", n, len(d.Intervals), d.Partial)
	}
}

// Several processes store reports at once, in a store that does not exist before.
func TestSeveralProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "reports.db")
	const each, processes = 12, 3
	var done [processes]<-chan error
	for k := range processes {
		_, done[k] = startWriter(t, path, k*each, each, func(int) {})
	}
	var ns []int
	for k := range processes {
		assert.OK(t, <-done[k])
		for n := range each {
			ns = append(ns, k*each+n)
		}
	}
	checkKept(t, path, ns)
	rows, err := open(t, path).Rows(t.Context(), store.Query{Fields: []string{}})
	assert.True(t, err == nil && len(rows) == len(ns), "got %d rows and %v, want %d", len(rows), err, len(ns))
}
