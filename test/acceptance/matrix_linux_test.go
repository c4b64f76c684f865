//go:build conformance

package acceptance

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"text/tabwriter"
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

// targetAddr is the address to send to: the last one that the stand-in listens on, which is the WebSocket's if it has one.
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
		n = assert.Value(strconv.ParseUint(s, 10, 64))(t, "CARRONADE_TEST_SEED")
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

// A cleanTarget describes the clean runs of one kind of target. They send to sinks, so that a run has nearly the whole machine.
type cleanTarget struct {
	kind     string
	variants []cleanVariant
}

type cleanVariant struct {
	name  string
	serve []string
	url   string // contains ADDR
	flags []string
	// rates are at most half of those of the open loops in make bench.
	rates []string
}

var cleanTargets = []cleanTarget{
	{"kafka", []cleanVariant{{"wire", []string{"--topic", "t:2"}, "kafka://ADDR/t", nil, []string{"1k/s", "20k/s", "100k/s", "500k/s"}}}},
	{"riemann", []cleanVariant{
		{"tcp", nil, "riemann://ADDR", nil, []string{"1k/s", "10k/s", "50k/s"}},
		{"ws", []string{"--ws", "127.0.0.1:0"}, "riemann+ws://ADDR", nil, []string{"1k/s", "5k/s", "10k/s"}},
	}},
	{"apm", []cleanVariant{{"v2", nil, "apm+http://ADDR", nil, []string{"4k/s", "40k/s", "200k/s"}}}},
}

const (
	// mostLost is how long a quiet machine may keep the test from running in a run of
	// 5 s: half of the 1 % that can move a p99. It does not depend on the verdict.
	mostLost = 25 * time.Millisecond
	// cleanAttempts is how often a run is tried until the machine is quiet.
	cleanAttempts = 2
)

// Nearly all runs that nothing impairs are trusted, because a check that trusts no run would be useless.
// CARRONADE_TEST_CLEAN is the number of runs of each target, 100 without it.
func TestClean(t *testing.T) {
	runs := 0
	switch n := os.Getenv("CARRONADE_TEST_CLEAN"); {
	case n != "":
		var err error
		runs, err = strconv.Atoi(n)
		assert.Must(t, err == nil && runs >= 1, "CARRONADE_TEST_CLEAN=%s: want the number of runs of each target", n)
	default:
		runs = 100
	}
	rng := seededRand(t)
	for _, c := range cleanTargets {
		t.Run(c.kind, func(t *testing.T) {
			fs := openFindings(t, cleanFile(c.kind, runs))
			for i := range runs {
				v := c.variants[i%len(c.variants)]
				// After the rates comes a closed loop, in which the generator is the limit.
				load := (i / len(c.variants)) % (len(v.rates) + 1)
				name := closedLoop
				if load < len(v.rates) {
					name = v.rates[load]
				}
				f := finding{Cell: strings.Join([]string{c.kind, strconv.Itoa(i), v.name + ", " + name}, " / ")}
				if _, done := fs.all[f.Cell]; done {
					continue
				}
				t.Run(f.Cell, func(t *testing.T) {
					system := startStandin(t, c.kind, append([]string{"--listen", "127.0.0.1:0", "--discard"}, v.serve...)...)
					defer system.kill()
					args := append([]string{"run", strings.Replace(v.url, "ADDR", system.targetAddr(), 1), "--json", "--for", "5s", "--seed", strconv.FormatUint(rng.Uint64()>>1, 10)}, v.flags...)
					if name == closedLoop {
						args = append(args, "--concurrency", "4")
					} else {
						args = append(args, "--rate", name)
					}
					for range cleanAttempts {
						w := startProbe()
						e := run(t, args...)
						w.end()
						e.wantOneOf(t, 0, 3)
						report := assert.Value(readTrust(e.stdout))(t)
						f.Level, f.LostMS, f.NotChecked = report.level, w.total.Seconds()*1e3, ""
						if f.Level != trusted {
							t.Logf("%s: %q %q; this machine did not run the test for %v in total, %v at most at a time", f.Level, report.reasons, report.doubts, w.total.Round(time.Millisecond), w.longest.Round(time.Millisecond))
						}
						// A closed loop and its system take all processors: there the time
						// that the test lost does not show whether the machine was quiet.
						if w.total <= mostLost || name == closedLoop {
							break
						}
						f.NotChecked = "the machine was busy"
					}
					fs.add(t, f)
				})
			}
			count, busy := map[string]int{}, 0
			for _, f := range fs.all {
				if f.NotChecked != "" {
					busy++
					continue
				}
				count[f.Level]++
			}
			var table strings.Builder
			fs.table(&table)
			quiet := len(fs.all) - busy
			t.Logf("%d clean runs of %s on a quiet machine: %d trusted, %d noisy, %d not trusted; %d others on a busy machine\n%s", quiet, c.kind, count[trusted], count[noisy], count[notTrusted], busy, table.String())
			assert.Must(t, quiet >= len(fs.all)/2,
				"the machine was busy in %d of %d runs: repeat this test on one that is quiet", busy, len(fs.all))
			// 2 % and 10 %, rounded up.
			if limit := (2*quiet + 99) / 100; count[notTrusted] > limit {
				t.Errorf("%d of %d are not trusted, want %d at most", count[notTrusted], quiet, limit)
			}
			limit := (10*quiet + 99) / 100
			assert.True(t, count[noisy] <= limit, "%d of %d are noisy, want %d at most", count[noisy], quiet, limit)
			if len(fs.all) >= runs {
				fs.close(t)
			}
		})
	}
}

// cleanFile is the file that keeps finished clean runs; empty: none.
func cleanFile(kind string, runs int) string {
	path := os.Getenv("CARRONADE_TEST_MATRIX")
	if path == "" {
		return ""
	}
	ext := filepath.Ext(path)
	return strings.TrimSuffix(path, ext) + "-clean-" + kind + "-" + strconv.Itoa(runs) + ext
}

// This file keeps and counts the results of a matrix's runs, so that a matrix that was killed can be continued.

// A finding is the result of a cell: a line in the file of finished cells.
type finding struct {
	Cell       string   `json:"cell"`
	Build      string   `json:"build"` // of the program under test
	Level      string   `json:"level"`
	Breaches   []string `json:"breaches,omitempty"`
	Blamed     []string `json:"blamed,omitempty"` // reasons that blame the generator for a stop of the system
	Excuse     string   `json:"excuse,omitempty"` // why that is acceptable
	NotChecked string   `json:"unjudged,omitempty"`
	LostMS     float64  `json:"lost_ms,omitempty"` // of clean runs: how long this machine did not run the test
}

func (f *finding) violations() []string {
	out := f.Breaches
	if len(f.Blamed) > 0 && f.Excuse == "" {
		out = append(slices.Clip(out), fmt.Sprintf("the system was stopped, and the generator is blamed: %q", f.Blamed))
	}
	return out
}

// findings are the findings in a file, if there is one, and new ones.
type findings struct {
	path, build string
	all         map[string]finding
}

func openFindings(t *testing.T, path string) *findings {
	t.Helper()
	exe, err := impairedProgram()
	assert.OK(t, err)
	text := assert.Value(os.ReadFile(exe))(t)
	fs := &findings{path: path, build: fmt.Sprintf("%.12x", sha256.Sum256(text)), all: map[string]finding{}}
	if path == "" {
		return fs
	}
	text, err = os.ReadFile(path)
	assert.Must(t, err == nil || os.IsNotExist(err), "%v", err)
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var f finding
		if json.Unmarshal(lines.Bytes(), &f) == nil && f.Build == fs.build { // ignore incomplete lines and those of other builds
			fs.all[f.Cell] = f
		}
	}
	return fs
}

func (fs *findings) add(t *testing.T, f finding) {
	t.Helper()
	f.Build = fs.build
	fs.all[f.Cell] = f
	if fs.path == "" {
		return
	}
	line := assert.Value(json.Marshal(f))(t)
	out, err := os.OpenFile(fs.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = out.Write(append(line, '\n'))
		if e := out.Close(); err == nil {
			err = e
		}
	}
	assert.OK(t, err)
}

// close ends a complete matrix: the next one starts from the beginning.
func (fs *findings) close(t *testing.T) {
	if fs.path != "" {
		err := os.Rename(fs.path, fs.path+".last")
		assert.True(t, err == nil || os.IsNotExist(err), "%v", err)
	}
}

func (fs *findings) table(w io.Writer) {
	type row struct{ runs, trusted, noisy, notTrusted, notChecked, breaches int }
	rows := map[string]*row{}
	for _, f := range fs.all {
		parts := strings.Split(f.Cell, " / ")
		for _, name := range []string{parts[len(parts)-1], "~ all"} {
			r := rows[name]
			if r == nil {
				r = &row{}
				rows[name] = r
			}
			r.runs++
			switch f.Level {
			case trusted:
				r.trusted++
			case noisy:
				r.noisy++
			case notTrusted:
				r.notTrusted++
			}
			if f.NotChecked != "" {
				r.notChecked++
			}
			if len(f.violations()) > 0 {
				r.breaches++
			}
		}
	}
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(out, "impairment\truns\ttrusted\tnoisy\tnot trusted\tnot checked\tpromise broken\t")
	var names []string
	for name := range rows {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		r := rows[name]
		fmt.Fprintf(out, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t\n", strings.TrimPrefix(name, "~ "), r.runs, r.trusted, r.noisy, r.notTrusted, r.notChecked, r.breaches)
	}
	out.Flush()
}
