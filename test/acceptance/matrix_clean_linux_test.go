//go:build conformance

package acceptance

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"carronade/test/testkit/assert"
)

// A cleanTarget describes the clean runs of one kind of target. They send to sinks,
// so that a run has nearly the whole machine.
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
	{"kafka", []cleanVariant{
		{"wire", []string{"--topic", "t:2"}, "kafka://ADDR/t", nil, []string{"1k/s", "20k/s", "100k/s", "500k/s"}},
	}},
	{"riemann", []cleanVariant{
		{"tcp", nil, "riemann://ADDR", nil, []string{"1k/s", "10k/s", "50k/s"}},
		{"ws", []string{"--ws", "127.0.0.1:0"}, "riemann+ws://ADDR", nil, []string{"1k/s", "5k/s", "10k/s"}},
	}},
	{"apm", []cleanVariant{
		{"v2", nil, "apm+http://ADDR", nil, []string{"4k/s", "40k/s", "200k/s"}},
	}},
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

// This file keeps and counts the results of a matrix's runs, so that a matrix that
// was killed can be continued.

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
	path  string
	build string
	all   map[string]finding
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
