//go:build conformance

package acceptance

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
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

// TestClean: nearly all runs that nothing impairs are trusted, because a check that
// trusts no run would be useless. CARRONADE_TEST_CLEAN is the number of runs of each
// target, 100 without it.
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
