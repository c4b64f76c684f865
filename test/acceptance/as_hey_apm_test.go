//go:build conformance

package acceptance

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"carronade/test/testkit"
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

func (d *document) accepted() (n uint64) {
	for _, s := range d.Totals.Statuses {
		if s.Code == http.StatusAccepted {
			n += s.Batches
		}
	}
	return n
}

// Given the address of Elasticsearch and the server's process, the test command prints counts of documents
// and the server's memory, and its numbers are those of the report.
func TestAsHeyAPMUnderTest(t *testing.T) {
	t.Parallel()
	server := startStandin(t, "apm", "--listen", "127.0.0.1:0", "--delay", "20ms")
	counts := 0
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := map[string]any{"version": map[string]any{"number": "6.8.23"}, "status": "green", "count": 100}
		if strings.Contains(r.URL.Path, "_count") {
			if counts++; counts > 1 {
				answer["count"] = 109
			}
			assert.True(t, strings.HasPrefix(r.URL.Path, "/apm-*,traces-apm*,"), "counted in %s", r.URL.Path)
		}
		err := json.NewEncoder(w).Encode(answer)
		assert.True(t, err == nil, "%v", err)
	}))
	t.Cleanup(store.Close)
	file := filepath.Join(t.TempDir(), "report.json")
	e := run(t, "as", "hey-apm", "--report-json", file, "-base-url", "http://"+server.addr, "-apm-es-url", store.URL,
		"-system-pid", strconv.Itoa(server.cmd.Process.Pid), "test", "1s", "1", "2", "3", "2").wantOneOf(t, 0, 3)
	data := assert.Value(os.ReadFile(file))(t)
	d := assert.Value(parseDocument(string(data)))(t)
	m := regexp.MustCompile(`\n\n(\d+) docs indexed \((\d+\.\d\d) / sec\)  \((\d+\.\d\d)% of expected\)\n\d+\.\d\d ms / request\n` +
		`([\d.]+Mb) \(max RSS\)\n(\d+\.\d{3}) memory efficiency \(accepted data volume per minute / memory used\)\nsaving report\nreport \S+ saved in \S+\n\z`).FindStringSubmatch(e.stdout)
	assert.Must(t, m != nil && d.Indexed != nil && d.System != nil && d.System.Memory != nil,
		"indexed %+v, system %+v, and:\n%s%s", d.Indexed, d.System, e.stdout, e.stderr)
	want := []string{
		"9", m[2], fmt.Sprintf("%.2f", 900/float64(d.wholeRun().Acked)),
		fmt.Sprintf("%.1fMb", float64(d.System.PeakRSS)/1e6), fmt.Sprintf("%.3f", *d.System.Memory),
	}
	for i, w := range want {
		assert.Equal(t, m[i+1], w, "what it prints:\n%s", e.stdout)
	}
}

// The test command, in place of apm switch -fcm axw/trace REV, fetches the remote, and builds and tests that
// revision, which is older than the branch.
func TestAsHeyAPMKeepsTheRevision(t *testing.T) {
	t.Parallel()
	theirs, own := commitRepo(t, "trace"), commitRepo(t, "main")
	git := func(dir string, args ...string) string {
		t.Helper()
		out, err := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=t", "-c", "user.email=t@localhost"}, args...)...).Output()
		assert.OK(t, err, "git %v", args)
		return strings.TrimSpace(string(out))
	}
	writeFile(t, filepath.Join(theirs, "VERSION"), "of the revision\n")
	git(theirs, "commit", "-qam", "two")
	rev := git(theirs, "rev-parse", "HEAD")
	writeFile(t, filepath.Join(theirs, "VERSION"), "of the branch\n")
	git(theirs, "commit", "-qam", "three")
	git(own, "remote", "add", "axw", theirs)

	addr := "127.0.0.1:" + freePort(t)
	dir := t.TempDir()
	file, built := filepath.Join(dir, "report.json"), filepath.Join(dir, "built")
	run(t, "as", "hey-apm", "--report-json", file, "-base-url", "http://"+addr, "-system-git", own, "-system-fetch", "axw", "-system-checkout", rev,
		"-system-build", "cp VERSION "+built, "-system-cmd", program+" standin apm --listen "+addr, "test", "300ms", "1", "2", "3", "4").wantOneOf(t, 0, 3)
	if text, err := os.ReadFile(built); err != nil || string(text) != "of the revision\n" {
		t.Errorf("it built %q, %v", text, err)
	}
	data := assert.Value(os.ReadFile(file))(t)
	var d struct {
		System struct{ Facts map[string]any }
	}
	decode(t, string(data), &d)
	assert.True(t, d.System.Facts["revision"] == rev, "the report is of %v, want %s", d.System.Facts["revision"], rev)
}

// The report of the test command is saved where -es-url says, and the last line says so.
func TestAsHeyAPMSavesInElasticsearch(t *testing.T) {
	t.Parallel()
	node := testkit.SharedSearch(t)
	server := startStandin(t, "apm", "--listen", "127.0.0.1:0")
	e := run(t, "as", "hey-apm", "-base-url", "http://"+server.addr, "-es-url", node.URL+"/heyapm", "-label", "round=saved", "test", "300ms", "1", "2", "3", "4").wantOneOf(t, 0, 3)
	assert.True(t, strings.HasSuffix(e.stdout, " ms / request\nsaving report\nreport indexed in elasticsearch\n"),
		"the last lines are\n%s%s", e.stdout, e.stderr)
	place := strings.Replace(node.URL, "http://", "elasticsearch://", 1) + "/heyapm"
	list := run(t, "report", "list", "--store", place, "--columns", "label.as,label.round").want(t, 0).stdout
	assert.True(t, strings.Contains(list, "hey-apm") && strings.Contains(list, "saved"), "the store has\n%s", list)
}
