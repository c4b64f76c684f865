//go:build conformance

package acceptance

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// commitRepo makes a repository with one commit in a new folder.
func commitRepo(t *testing.T, branch string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	writeFile(t, filepath.Join(dir, "VERSION"), "1\n")
	for _, args := range [][]string{{"init", "-q", "-b", branch}, {"add", "."}, {"commit", "-qm", "one"}} {
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=t", "-c", "user.email=t@localhost"}, args...)...)
		out, err := cmd.CombinedOutput()
		assert.Must(t, err == nil, "git %v: %v\n%s", args, err, out)
	}
	return dir
}

// checkIndexed checks that all accepted events but missing were found in the store.
func (d *document) checkIndexed(t *testing.T, missing uint64) {
	t.Helper()
	x, acked := d.Indexed, d.wholeRun().Acked
	switch {
	case x == nil:
		t.Fatal("nothing was counted")
	case x.Expected != acked || acked == 0:
		t.Errorf("%d documents are expected, and %d events were accepted", x.Expected, acked)
	case x.Documents != int64(acked-missing):
		t.Errorf("%d documents were found of %d events, want all but %d", x.Documents, acked, missing)
	case !x.Still || x.Queued == nil || *x.Queued != 0:
		t.Errorf("it did not wait until all documents were there: %+v", x)
	case !strings.HasPrefix(x.Store, "OpenSearch 2."):
		t.Errorf("the store is %q", x.Store)
	}
}

// countsDocuments is locked by a test whose runs count the documents that they add to the shared node's data streams.
var countsDocuments sync.Mutex

// TestAPMIndexed sends to a stand-in that indexes into a real OpenSearch. The runs
// use the node one after the other, because all write to the same data streams.
func TestAPMIndexed(t *testing.T) {
	t.Parallel()
	countsDocuments.Lock()
	defer countsDocuments.Unlock()
	node := testkit.SharedSearch(t)
	runWith := func(t *testing.T, system []string, args ...string) ended {
		t.Helper()
		addr := "127.0.0.1:" + freePort(t)
		return run(t, append([]string{
			"run", "apm+http://" + addr, "--index", node.URL, "--index-still", "1s",
			"--system-cmd", strings.Join(append([]string{program, "standin", "apm", "--listen", addr, "--index", node.URL}, system...), " "),
		}, args...)...)
	}

	// One page contains everything in the table that hey-apm's test prints.
	t.Run("everything", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "report.json")
		page := runWith(t, nil, "--events", "1", "--spans", "2", "--frames", "3", "--concurrency", "4", "--for", "3s", "--gzip", "1",
			"--json-file", file, "--system-git", commitRepo(t, "trace-apm-server"),
			"--system-flag", "max-event=200KiB", "--system-flag-format", "--{name}={value}", "--full").wantOneOf(t, 0, 3).stdout
		text := assert.Value(os.ReadFile(file))(t)
		d := ended{stdout: string(text)}.document(t)
		d.checkIndexed(t, 0)
		if *d.Indexed.Share != 1 || !strings.Contains(page, "100.00% of the "+thousands(d.Indexed.Expected)+" expected") {
			t.Errorf("the share is %v", *d.Indexed.Share)
		}
		c := d.Totals
		assert.True(t, len(c.Statuses) == 1 && c.Statuses[0].Code == 202 && c.Statuses[0].Batches == c.Batches &&
			c.AckedBytes == c.Bytes && c.WireBytes < c.Bytes, "totals %+v", c)
		facts := d.System.Facts
		assert.True(t, facts["branch"] == "trace-apm-server" && len(facts["revision"].(string)) == 40 &&
			facts["unstaged_changes"] == false, "facts %v", facts)
		per := float64(c.AckedBytes) / c.ElapsedS * 60 / float64(d.System.PeakRSS)
		assert.True(t, d.System.Memory != nil && *d.System.Memory >= per*0.999 && *d.System.Memory <= per*1.001,
			"memory efficiency %v, want %v: accepted bytes a minute over the peak", d.System.Memory, per)
		unwrapped := strings.Join(strings.Fields(page), " ")
		assert.Has(t, unwrapped,
			"pushed ", "accepted ", " on the wire", "Answers status batches share a second events 202 ", " total ",
			" documents, 100.00% of the ", "service a batch mean ", " resident at most, in this run", "efficiency ",
			"branch trace-apm-server", "revision "+facts["revision"].(string)+" of "+strconv.Itoa(time.Now().UTC().Year())+"-",
			"flags max-event=200KiB",
		)
	})

	t.Run("documents lost", func(t *testing.T) {
		d := runWith(t, []string{"--lose", "137"}, "--count", "4000", "--events", "3-5", "--json").succeeded(t).document(t)
		d.checkIndexed(t, 137)
	})

	t.Run("events refused", func(t *testing.T) {
		d := runWith(t, []string{"--error", "event@2%"}, "--count", "4000", "--verbose", "--json").succeeded(t).document(t)
		d.checkIndexed(t, 0)
		if failed := d.wholeRun().Failed; failed < 20 || failed > 400 || d.failed("rejected") != failed || d.wholeRun().Acked != 4000-failed {
			t.Errorf("%d events failed, by class %d, of 4000 with 2%% refused", failed, d.failed("rejected"))
		}
	})

	// The store accepts no more documents: the server's queue loses the accepted events, and the report says what that means.
	t.Run("read-only", func(t *testing.T) {
		block := func(on bool) {
			t.Helper()
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, node.URL+"/traces-apm-default/_settings", strings.NewReader(`{"index.blocks.write":`+strconv.FormatBool(on)+`}`))
			assert.OK(t, err)
			req.Header.Set("Content-Type", "application/json")
			res := assert.Value(http.DefaultClient.Do(req))(t) //nolint:bodyclose // it is closed below
			res.Body.Close()
			assert.Must(t, res.StatusCode == http.StatusOK, "block writes: %s", res.Status)
		}
		block(true)
		defer block(false)
		e := runWith(t, nil, "--count", "2000", "--index-wait", "4s", "--json").succeeded(t)
		x := e.document(t).Indexed
		assert.True(t, x != nil && x.Documents == 0 && x.Share != nil && *x.Share == 0 &&
			strings.Contains(x.Note, "Elasticsearch accepts less"), "indexed %+v", x)
	})
}

// thousands formats a count as pages print it.
func thousands(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// TestAPMWatched watches a stand-in that is already running, by its process id, until it is killed.
func TestAPMWatched(t *testing.T) {
	t.Parallel()
	server := startStandin(t, "apm", "--listen", "127.0.0.1:0")
	pid := strconv.Itoa(server.cmd.Process.Pid)
	args := []string{"run", "apm+http://" + server.addr, "--rate", "2k/s", "--json", "--system-pid", pid, "--for"}
	d := run(t, append(args, "1s")...).succeeded(t).document(t)
	assert.Must(t, d.System != nil && d.System.PeakRSS >= 1<<20 && !d.System.Died, "system %+v", d.System)
	assert.OK(t, server.cmd.Process.Signal(syscall.Signal(0)), "a system that the program did not start was stopped")
	s := start(t, append(args, "60s")...)
	s.awaitStderr(progressText)
	pause(t, time.Second)
	server.kill()
	killed := time.Now()
	d = s.wait(runTimeout).want(t, 3).document(t)
	if took := time.Since(killed); took > 20*time.Second { // the run would last a minute
		t.Errorf("the run ended %v after its system", took)
	}
	assert.True(t, d.Stopped == "system ended" && d.System.Died, "stopped by %q, system %+v", d.Stopped, d.System)
	run(t, append(args, "1s")...).want(t, 2).says(t, pid, "hint:") // the process is gone
}

// TestAPMQueueFull: the server's queue fills in the middle of the run. Accepted
// events are acked, refused ones are throttled, and the intervals show when.
func TestAPMQueueFull(t *testing.T) {
	t.Parallel()
	s := startStandin(t, "apm", "--listen", "127.0.0.1:0", "--queue", "2000", "--drain", "1/s")
	d := run(t, "run", "apm+http://"+s.addr, "--rate", "2k/s", "--for", "2s", "--interval", "500ms", "--json").succeeded(t).document(t)
	all := d.wholeRun()
	assert.True(t, all.Acked >= 1900 && all.Acked <= 2100 && all.Failed == all.Sent-all.Acked && d.failed("throttled") == all.Failed,
		"acked %d, failed %d of %d, throttled %d, want the 2000 that fit into the queue acked", all.Acked, all.Failed, all.Sent, d.failed("throttled"))
	var accepted, refused bool
	for _, iv := range d.Intervals {
		for _, s := range iv.Statuses {
			accepted, refused = accepted || s.Code == 202 && iv.StartS < 0.5, refused || s.Code == 503 && iv.StartS >= 1
		}
	}
	assert.True(t, accepted && refused, "the intervals do not show when the answers changed")
}

// TestAPMStopsReading freezes the server for a second: the response times show the freeze, and nothing is lost.
func TestAPMStopsReading(t *testing.T) {
	r := startStandin(t, "apm", "--listen", "127.0.0.1:0")
	const measurement = 5 * time.Second
	s := start(t, "run", "apm+http://"+r.addr, "--rate", "4k/s", "--for", measurement.String(), "--json")
	s.awaitStderr(progressText)
	pause(t, time.Second)
	freeze := r.freezeFor(time.Second)
	d := s.wait(runTimeout).succeeded(t).document(t)
	d.checkFreeze(t, freeze, measurement, 1.1)
	assert.Equal(t, d.Totals.Acked, 20_000, "events acked")
}

// TestRiemannKilled kills the server in the middle of an open loop and starts another
// one: every event is accounted for, and the run continues.
func TestRiemannKilled(t *testing.T) {
	t.Parallel()
	for _, clients := range []string{"1", "4"} {
		t.Run(clients+" connections", func(t *testing.T) {
			t.Parallel()
			first := startStandin(t, "riemann", "--listen", "127.0.0.1:0", "--delay", "5ms")
			s := start(t, "run", "riemann://"+first.addr, "--rate", "2000/s", "--clients", clients, "--for", "6s", "--json")
			s.awaitStderr(progressText)
			pause(t, 1500*time.Millisecond)
			first.killInDebt(100 * time.Millisecond)
			pause(t, time.Second)
			second := startStandin(t, "riemann", "--listen", first.addr, "--delay", "5ms")
			d := s.wait(runTimeout).succeeded(t).document(t)
			second.kill()
			all := d.Totals
			assert.Equal(t, all.Offered, 12_000, "offered")
			assert.True(t, all.Unknown != 0, "no event is unknown, although the server was killed with events in flight")
			assert.True(t, all.Acked >= 6_000, "acked %d events of 12000: the run did not continue", all.Acked)
			assert.True(t, len(d.Failures) != 0, "no failure is named")
			late := uint64(0)
			for _, iv := range d.Intervals {
				if iv.StartS >= 4.9 {
					late += iv.Acked
				}
			}
			assert.True(t, late != 0, "no event was acked after the server came back")
		})
	}
}

// TestRiemannFrozen freezes a server in an open loop, on one connection and on eight.
func TestRiemannFrozen(t *testing.T) {
	const measurement = 5 * time.Second
	for _, tt := range []struct {
		clients, bound string
		queueing       bool
	}{
		{"1", "10000", false},
		{"8", "10000", false},
		{"1", "1", true},
		{"8", "1", true},
	} {
		t.Run(fmt.Sprintf("%s connections, bound %s", tt.clients, tt.bound), func(t *testing.T) {
			r := startStandin(t, "riemann", "--listen", "127.0.0.1:0")
			s := start(t, "run", "riemann://"+r.addr, "--rate", "2000/s", "--clients", tt.clients, "--max-in-flight", tt.bound, "--for", measurement.String(), "--json")
			s.awaitStderr(progressText)
			pause(t, time.Second)
			freeze := r.freezeFor(time.Second)
			d := s.wait(runTimeout).succeeded(t).document(t)
			assert.Must(t, d.Response != nil && d.Queueing != nil && d.Service != nil, "the report has no response, queueing or service")
			d.checkFreeze(t, freeze, measurement, 1.05)
			assert.True(t, d.Totals.Acked == 10_000 && d.Response.Count == 10_000,
				"acked %d, response times of %d, want 10000", d.Totals.Acked, d.Response.Count)
			d.checkQueueing(t, freeze, tt.queueing)
		})
	}
}

// TestRiemannStopsReading freezes a server for a second, at a rate that fills its socket, so that writes block.
func TestRiemannStopsReading(t *testing.T) {
	r := startStandin(t, "riemann", "--listen", "127.0.0.1:0")
	const measurement = 5 * time.Second
	s := start(t, "run", "riemann://"+r.addr, "--rate", "200k/s", "--batch-events", "100", "--max-in-flight", "100k", "--for", measurement.String(), "--json")
	s.awaitStderr(progressText)
	pause(t, time.Second)
	freeze := r.freezeFor(time.Second)
	d := s.wait(runTimeout).succeeded(t).document(t)
	assert.Equal(t, d.Totals.Acked, 1_000_000, "events acked")
	d.checkFreeze(t, freeze, measurement, 1.1)
	delay := d.SendDelay.P99US / 1e6
	assert.True(t, delay <= freeze.least.Seconds()/2+d.Freezes.TotalS, "send delay p99 is %.3f s: a full socket is not a delay of the generator", delay)
}

// TestAsRiemannLoad runs the command published in 2013, by a link with the script's name, until it is
// interrupted. It parses the output and the files by their format only: the sums are those of the report.
func TestAsRiemannLoad(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		args  []string
		batch float64
	}{{"single event sends", nil, 1}, {"bulk sends", []string{"-w", "2", "-c", "3", "--batch-size=400"}, 400}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := startStandin(t, "riemann", "--listen", "127.0.0.1:0", "--discard")
			dir := t.TempDir()
			link, file := filepath.Join(dir, "riemann-load.sh"), filepath.Join(dir, "report.json")
			assert.OK(t, os.Symlink(program, link))
			s := prepare(t, append(tt.args, server.addr, "--report-json", file)...)
			s.cmd.Path, s.cmd.Args[0], s.cmd.Dir = link, link, dir
			s.begin()
			s.awaitStdout(2, "====\n")
			s.signal(os.Interrupt)
			e := s.wait(30*time.Second).want(t, 130)

			text := assert.Value(os.ReadFile(file))(t)
			var d document
			assert.OK(t, json.Unmarshal(text, &d))
			last := lastBlock(t, e.stdout)
			for name, want := range map[string]float64{
				"acks.count":           float64(d.Totals.Acked) / tt.batch,
				"acks.mean rate":       d.Totals.EventsPerS / tt.batch,
				"event-acks.count":     float64(d.Totals.Acked),
				"event-acks.mean rate": d.Totals.EventsPerS,
				"sends.count":          float64(d.Totals.Batches),
				"throughput.count":     float64(d.Totals.WireBytes),
				"throughput.mean rate": float64(d.Totals.WireBytes) / d.Totals.ElapsedS,
				"rtt.count":            float64(d.Service.Count),
				"rtt.max":              d.Service.MaxUS / 1e6,
				"rtt.mean":             d.Service.MeanUS / 1e6,
				"rtt.median":           d.Service.P50US / 1e6,
				"rtt.99%":              d.Service.P99US / 1e6,
				"rtt.99.9%":            d.Service.P999US / 1e6,
				"unacked.value":        0,
			} {
				got, ok := last[name]
				assert.True(t, ok && math.Abs(got-want) <= 0.006, "%s is %v, want %v", name, got, want)
			}
			assert.True(t, d.Totals.Acked != 0, "nothing was acked")
			folders, _ := filepath.Glob(filepath.Join(dir, "[0-9]*"))
			assert.Must(t, len(folders) == 1, "folders of reports: %q", folders)
			for name, want := range map[string]float64{
				"acks": float64(d.Totals.Acked) / tt.batch, "event-acks": float64(d.Totals.Acked), "sends": float64(d.Totals.Batches),
				"throughput": float64(d.Totals.WireBytes), "unacked": 0, "rtt": -1,
			} {
				rows := csvRows(t, filepath.Join(folders[0], name+".csv"))
				n := len(rows)
				assert.Must(t, n >= 2 && n <= 8, "%s.csv has %d rows, want one per second", name, n)
				for i, row := range rows {
					assert.Equal(t, row[0], float64(i+1), "%s.csv: the second of row %d", name, i+1)
				}
				got := rows[len(rows)-1][1]
				assert.True(t, want < 0 || got == want, "%s.csv ends with %v, want %v", name, got, want)
			}
			for _, name := range []string{"acks.png", "rtt.png", "throughput.png", "unacked.png", "plots.html"} {
				info, err := os.Stat(filepath.Join(folders[0], name))
				assert.True(t, err == nil && info.Size() != 0, "%s: %v", name, err)
			}
		})
	}
}

// lastBlock parses the last block of the output: the numbers by METRIC.NAME.
func lastBlock(t *testing.T, text string) map[string]float64 {
	t.Helper()
	_, block, ok := strings.Cut(text[max(strings.LastIndex(text, "====\n"), 0):], "\n")
	assert.Must(t, ok, "no block:\n%.2000s", text)
	out, metric := map[string]float64{}, ""
	for line := range strings.Lines(block) {
		line = strings.TrimRight(line, "\n")
		if name, ok := strings.CutSuffix(line, ":"); ok {
			metric = strings.TrimSpace(name)
			continue
		}
		name, value, ok := strings.Cut(line, " = ")
		if !ok {
			if name, value, ok = strings.Cut(line, " <= "); !ok {
				continue
			}
		}
		value, _, _ = strings.Cut(strings.TrimSuffix(value, "s"), " ")
		v, err := strconv.ParseFloat(value, 64)
		assert.True(t, err == nil, "%s: %v", line, err)
		out[metric+"."+strings.TrimSpace(name)] = v
	}
	return out
}

func csvRows(t *testing.T, path string) (out [][]float64) {
	t.Helper()
	for _, row := range testkit.CSV(t, path)[1:] {
		var numbers []float64
		for _, cell := range row {
			v := assert.Value(strconv.ParseFloat(cell, 64))(t, "%s", path)
			numbers = append(numbers, v)
		}
		out = append(out, numbers)
	}
	return out
}
