//go:build conformance

package acceptance

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"carronade/test/testkit/assert"
)

// This file runs the impairment matrix: every kind of run with everything that may make a generator late,
// compared with the true times. A reported time is right, or the report says that it is not.

// A matrixTarget is a target and how its stand-in is run.
type matrixTarget struct {
	name         string
	kind         string   // of the stand-in
	serve        []string // its flags
	url          string   // contains ADDR
	flags        []string // of every run
	rates        [3]string
	batched      []string // flags for batches in runs without a schedule
	hasRoundTrip bool     // it supports round trips
}

var matrixTargets = []matrixTarget{
	{
		name: "kafka", kind: "kafka", serve: []string{"--in-memory", "--topic", "t:2"}, url: "kafka://ADDR/t", flags: []string{"--linger", "0s"},
		rates: [3]string{"500/s", "2k/s", "5k/s"}, batched: []string{"--batch-events", "10"}, hasRoundTrip: true,
	},
	{
		name: "kafka client", kind: "kafka", serve: []string{"--in-memory", "--topic", "t:2"}, url: "kafka://ADDR/t", flags: []string{"--engine", "client", "--linger", "0s"},
		rates: [3]string{"500/s", "2k/s", "5k/s"}, batched: []string{"--batch-events", "10"}, hasRoundTrip: true,
	},
	{
		name: "riemann", kind: "riemann", url: "riemann://ADDR", rates: [3]string{"500/s", "2k/s", "10k/s"}, batched: []string{"--batch-events", "10"},
	},
	{
		name: "riemann ws", kind: "riemann", serve: []string{"--ws", "127.0.0.1:0"}, url: "riemann+ws://ADDR", rates: [3]string{"500/s", "2k/s", "5k/s"},
	},
	{
		name: "apm", kind: "apm", url: "apm+http://ADDR", flags: []string{"--events", "2", "--spans", "0", "--mix", "transaction=1", "--clients", "2"},
		rates: [3]string{"200/s", "1k/s", "2k/s"},
	},
}

// Loads besides the three rates of the open loop.
const (
	closedLoop = "closed loop"
	fullSpeed  = "full speed"
	roundTrip  = "round trip"
)

// A cell is one run of the matrix.
type cell struct {
	matrixTarget
	load string // a rate, or one of the above
	impairment
}

func (c *cell) name() string {
	return strings.Join([]string{c.matrixTarget.name, c.load, c.impairment.name}, " / ")
}

// cells are all cells: the middle rate with every impairment, the other loads with every other one.
func cells() (all []cell) {
	list := impairments()
	slices.SortFunc(list, func(a, b impairment) int { return strings.Compare(a.name, b.name) })
	for k, s := range matrixTargets {
		for i, what := range list {
			loads := []string{s.rates[1], []string{s.rates[0], s.rates[2]}[(i+k)%2], []string{closedLoop, fullSpeed}[(i+k)%2]}
			if s.hasRoundTrip {
				loads = append(loads, roundTrip)
			}
			for _, l := range loads {
				all = append(all, cell{s, l, what})
			}
		}
	}
	return all
}

// delay is the delay of the stand-ins' answers.
const delay = "5ms"

func (c *cell) args(length time.Duration) (args []string, checked string) {
	args = append([]string{"--for", length.String()}, c.matrixTarget.flags...)
	wide := []string{"--max-in-flight", "100000"}
	switch c.load {
	case closedLoop:
		return append(args, "--concurrency", "8", "--max-in-flight", "8"), ofService
	case fullSpeed:
		return append(append(args, "--max-in-flight", "16"), c.batched...), ofService
	case roundTrip:
		return append(append(args, wide...), "--op", "roundtrip", "--rate", c.rates[0]), ofEndToEnd
	}
	args = append(append(args, wide...), "--rate", c.load)
	if c.kind == "riemann" {
		args = append(args, "--batch-events", "1")
	}
	return args, ofResponse
}

func (c *cell) runCell(t *testing.T, length time.Duration, start time.Duration) (f finding) {
	t.Helper()
	exe := assert.Value(impairedProgram())(t)
	f.Cell = c.name()
	dir := t.TempDir()
	record, trace := filepath.Join(dir, "record.csv"), filepath.Join(dir, "trace.parquet")
	system := startStandin(t, c.kind, append([]string{"--listen", "127.0.0.1:0", "--delay", delay, "--record", record}, c.serve...)...)
	args, checked := c.args(length)
	s := prepare(t, append([]string{"run", strings.Replace(c.url, "ADDR", system.targetAddr(), 1), "--json", "--trace", trace}, args...)...)
	s.cmd.Path, s.cmd.Args[0] = exe, exe
	s.env = c.env
	if c.impairment.flags != nil {
		more := c.impairment.flags(t, dir)
		s.args, s.cmd.Args = append(s.args, more...), append(s.cmd.Args, more...)
	}
	w := startProbe()
	s.begin()
	if c.during != nil {
		s.awaitStderr(progressText)
		pause(t, start)
		c.during(t, s.cmd.Process.Pid, system.cmd.Process.Pid)
	}
	e := s.wait(runTimeout)
	w.end()
	system.stop()
	e.wantOneOf(t, 0, 1, 3)
	reported := assert.Value(readStatement(e.stdout, checked))(t)
	f.Level = reported.level
	if c.system && reported.level == notTrusted && blamesGenerator(reported.reasons) {
		// If this machine kept the test itself from running, the generator was late too.
		f.Blamed = reported.reasons
		if w.longest > 10*time.Millisecond || w.total > length/200 {
			f.Excuse = fmt.Sprintf("this machine did not run the test for %v at a time, %v in total", w.longest.Round(time.Millisecond), w.total.Round(time.Millisecond))
		}
	}
	batches := assert.Value(readTrace(trace))(t)
	served := assert.Value(readRecord(record))(t)
	if reported.dropped > 0 {
		f.NotChecked = fmt.Sprintf("%d rows of the trace are missing", reported.dropped)
		return f
	}
	pairs, err := join(batches, served)
	if err == nil {
		err = causal(pairs)
	}
	assert.OK(t, err, "join the trace with the record")
	actual := truthOf(checked, pairs, c.system)
	assert.Must(t, len(actual.most) != 0, "nothing was joined: %d batches, %d rows of the record", len(batches), len(served))
	f.Breaches = breaches(reported, actual)
	return f
}

// targetAddr is the address to send to: the last one that the stand-in listens on,
// which is the WebSocket's if it has one.
func (r *standin) targetAddr() string {
	if _, last, ok := strings.Cut(r.addr, ", "); ok {
		_, last, _ = strings.Cut(last, " ")
		return last
	}
	return r.addr
}

// stop ends a stand-in as Ctrl-C does, so that it writes its record.
func (r *standin) stop() {
	_ = r.cmd.Process.Signal(syscall.SIGCONT)
	_ = r.cmd.Process.Signal(os.Interrupt)
	timeout := time.AfterFunc(10*time.Second, func() { _ = r.cmd.Process.Kill() })
	defer timeout.Stop()
	_ = r.cmd.Wait()
}

func seededRand(t *testing.T) *rand.Rand {
	t.Helper()
	n := uint64(1)
	if s := os.Getenv("CARRONADE_TEST_SEED"); s != "" {
		var err error
		n, err = strconv.ParseUint(s, 10, 64)
		assert.OK(t, err, "CARRONADE_TEST_SEED")
	}
	t.Logf("CARRONADE_TEST_SEED=%d", n)
	return rand.New(rand.NewPCG(n, 0))
}

// Whatever keeps the generator or the system from running, a reported time is right, or the report says that
// it is not. It does not run in parallel with other tests, because they would impair it too.
//
// CARRONADE_TEST_MATRIX names a file of finished runs, from which a matrix that was killed continues.
// CARRONADE_TEST_CELLS is a substring of the names of the cells to run.
func TestImpaired(t *testing.T) {
	rng := seededRand(t)
	all := cells()
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	const length = 5 * time.Second
	path := os.Getenv("CARRONADE_TEST_MATRIX")
	if only := os.Getenv("CARRONADE_TEST_CELLS"); only != "" {
		all = slices.DeleteFunc(all, func(c cell) bool { return !strings.Contains(c.name(), only) })
		path = ""
	}
	assert.Must(t, len(all) != 0, "there is nothing to run")
	fs := openFindings(t, path)
	earlier, skipped, failed := len(fs.all), map[string]int{}, 0
	for i := range all {
		c := &all[i]
		if _, done := fs.all[c.name()]; done {
			continue
		}
		if c.possible != nil {
			if err := c.possible(); err != nil {
				skipped[fmt.Sprintf("%s: %v", c.impairment.name, err)]++
				continue
			}
		}
		start := time.Duration(rng.Int64N(int64(300 * time.Millisecond)))
		if !t.Run(c.name(), func(t *testing.T) {
			long := length
			if !c.fitsShortRun {
				long = max(long, 6*time.Second)
			}
			fs.add(t, c.runCell(t, long, start))
		}) {
			failed++
		}
	}
	for why, n := range skipped {
		t.Logf("%d runs were left out: %s", n, why)
	}
	if earlier > 0 {
		t.Logf("%d runs were finished before, in %s", earlier, path)
	}
	var table strings.Builder
	fs.table(&table)
	t.Logf("results of %d runs:\n%s", len(fs.all), table.String())
	for _, f := range fs.all {
		for _, b := range f.violations() {
			t.Errorf("%s: %s", f.Cell, b)
		}
	}
	if failed == 0 {
		fs.close(t)
	}
}
