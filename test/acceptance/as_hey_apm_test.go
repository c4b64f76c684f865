//go:build conformance

package acceptance

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"carronade/test/testkit/assert"
)

// TestAsHeyAPM runs hey-apm's commands against a server, parses the output by its
// format only, and finds the reports' sums in it.
func TestAsHeyAPM(t *testing.T) {
	t.Parallel()
	const token = "canary-of-hey-apm"
	home := t.TempDir()
	file := filepath.Join(home, "token")
	assert.OK(t, os.WriteFile(file, []byte(token), 0o600))
	server := startStandin(t, "apm", "--listen", "127.0.0.1:0", "--v1", "--secret-token", "file:"+file, "--error", "queue-full@30%", "--delay", "40ms")
	reported := func(t *testing.T, args ...string) (e ended, ds []document) {
		t.Helper()
		dir := t.TempDir()
		args = append([]string{"as", "hey-apm", "--report-json", filepath.Join(dir, "report.json")}, args...)
		codes := []int{1, 3} // some are refused
		if slices.Contains(args, "--strict") {
			codes = []int{0}
		}
		e = run(t, args...).wantOneOf(t, codes...)
		paths, _ := filepath.Glob(filepath.Join(dir, "*.json"))
		for _, path := range paths { // in their order
			data := assert.Value(os.ReadFile(path))(t)
			assert.True(t, !strings.Contains(string(data), token) && !strings.Contains(e.stdout+e.stderr, token),
				"the token is in the report or the output")
			var d document
			assert.OK(t, json.Unmarshal(data, &d))
			ds = append(ds, d)
		}
		return e, ds
	}
	header := "Authorization: Bearer " + token

	t.Run("a profile", func(t *testing.T) {
		t.Parallel()
		e, ds := reported(t, "-base-url", "http://"+server.addr+"/", "-header", header, "-profile", "tiny", "-run", "2s")
		tables := tablesOf(t, e.stdout)
		assert.Must(t, len(tables) == 3 && len(ds) == 3, "%d tables and %d reports, want 3:\n%s", len(tables), len(ds), e.stdout)
		for i, d := range ds {
			tables[i].checkAgainst(t, &d)
			assert.True(t, d.Totals.Acked != 0, "nothing was acked: %+v", d.Totals)
		}
	})
	t.Run("a test", func(t *testing.T) {
		t.Parallel()
		for _, strict := range []bool{false, true} {
			args := []string{"-base-url", "http://" + server.addr, "-header", header, "test", "2s", "1", "2", "3", "4"}
			if strict {
				args = append([]string{"--strict"}, args...)
			}
			e, ds := reported(t, args...)
			m := regexp.MustCompile(`\n(\d+\.\d\d) ms / request\n`).FindStringSubmatch(e.stdout)
			assert.Must(t, m != nil && len(ds) == 1, "%d reports, and:\n%s", len(ds), e.stdout)
			ms, _ := strconv.ParseFloat(m[1], 64)
			d := &ds[0]
			if !strict {
				tablesOf(t, e.stdout)[0].checkAgainst(t, d)
				want := d.Service.MeanUS / 1e3
				assert.True(t, math.Abs(ms-want) <= 0.006, "%v ms a request, want %v", ms, want)
				line := fmt.Sprintf(" , accepted %.1fkb / sec\n", d.Totals.BytesPerS/1e3)
				assert.True(t, strings.Contains(e.stdout, line), "no %q in\n%s", line, e.stdout)
				var pushed float64
				m = regexp.MustCompile(`\npushed ([\d.]+)kb / sec`).FindStringSubmatch(e.stdout)
				if m != nil {
					pushed, _ = strconv.ParseFloat(m[1], 64)
				}
				accepted := d.Totals.EventsPerS * float64(d.accepted()) / float64(d.Totals.Acked) // batches a second
				if want := d.Totals.BytesPerS / 1e3 * d.Totals.AnswersPerS / accepted; math.Abs(pushed-want) > want/50 {
					t.Errorf("pushed %v kb a second, want about %v:\n%s", pushed, want, e.stdout)
				}
			} else if took := ms * float64(d.accepted()) / 1e3; took < d.Totals.ElapsedS*0.999 || took > e.elapsed.Seconds() {
				// 1000/rate, and the rate is over the time until everything had stopped
				t.Errorf("%v ms a request are %.3f s for the %d accepted ones; sending took %v s, and the program %v", ms, took, d.accepted(), d.Totals.ElapsedS, e.elapsed)
			}
		}
	})
	t.Run("agents", func(t *testing.T) {
		t.Parallel()
		e, ds := reported(t, "-apm-url", "http://"+server.addr, "-apm-secret", token, "-run", "2s", "-tf", "1ms", "-ef", "2ms", "-sm", "3", "-sx", "3", "-t", "1000")
		assert.Must(t, len(ds) == 2, "%d reports, want 2", len(ds))
		got := map[string]float64{}
		for line := range strings.Lines(e.stdout) {
			m := regexp.MustCompile(`^([a-z -][a-z %-]*?) \.+ ([\d.]+)\n$`).FindStringSubmatch(line)
			if m != nil {
				got[m[1]], _ = strconv.ParseFloat(m[2], 64)
			}
		}
		tx, errs := ds[0].Totals, ds[1].Totals
		for name, want := range map[string]uint64{
			"transactions sent": tx.Sent / 4, "spans sent": tx.Sent / 4 * 3, "spans sent per transaction": 3, "errors sent": errs.Sent,
			"total events sent": tx.Sent + errs.Sent, " - accepted": tx.Acked + errs.Acked, "total requests": tx.Batches + errs.Batches, "failed": 0,
		} {
			v, ok := got[name]
			assert.True(t, ok && v == float64(want), "%q is %v, want %d", name, v, want)
		}
		assert.True(t, tx.Sent+tx.Dropped == 4000 && tx.Acked > 0 && strings.Contains(e.stdout, "queue is full"),
			"%+v, and:\n%s", tx, e.stdout)
	})
}

// A table is what hey-apm prints about one kind of requests.
type table struct {
	codes map[int]uint64
	total uint64
	rps   float64
}

func tablesOf(t *testing.T, text string) (out []table) {
	t.Helper()
	head := regexp.MustCompile(`^https?://\S+ (\d+)\n$`)
	code := regexp.MustCompile(`^  \[(\d{3})\]\t(\d+) responses \(([\d.]+)%\) \n$`)
	sum := regexp.MustCompile(`^  total\t(\d+) responses \(([\d.]+) rps\)\n$`)
	for line := range strings.Lines(text) {
		switch {
		case head.MatchString(line):
			out = append(out, table{codes: map[int]uint64{}})
		case code.MatchString(line):
			m := code.FindStringSubmatch(line)
			c, _ := strconv.Atoi(m[1])
			out[len(out)-1].codes[c], _ = strconv.ParseUint(m[2], 10, 64)
		case sum.MatchString(line):
			m := sum.FindStringSubmatch(line)
			last := &out[len(out)-1]
			last.total, _ = strconv.ParseUint(m[1], 10, 64)
			last.rps, _ = strconv.ParseFloat(m[2], 64)
		}
	}
	return out
}

// checkAgainst compares a table with a report.
func (tb *table) checkAgainst(t *testing.T, d *document) {
	t.Helper()
	var total uint64
	for _, s := range d.Totals.Statuses {
		total += s.Batches
		assert.Equal(t, tb.codes[s.Code], s.Batches, "batches with the code %d", s.Code)
	}
	assert.True(t, tb.total == total && len(tb.codes) == len(d.Totals.Statuses),
		"total %d, the report has %d: %v and %v", tb.total, total, tb.codes, d.Totals.Statuses)
	want := d.Totals.AnswersPerS
	assert.True(t, math.Abs(tb.rps-want) <= 0.006 && want > 0, "%v rps, the report has %v", tb.rps, want)
}

// accepted is how many batches the server accepted in the whole run.
func (d *document) accepted() (n uint64) {
	for _, s := range d.Totals.Statuses {
		if s.Code == http.StatusAccepted {
			n += s.Batches
		}
	}
	return n
}
