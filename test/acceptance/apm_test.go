//go:build conformance

package acceptance

import (
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

// countsDocuments is locked by a test whose runs count the documents that they add to
// the shared node's data streams.
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

	// The store accepts no more documents: the server's queue loses the accepted
	// events, and the report says what that means.
	t.Run("read-only", func(t *testing.T) {
		block := func(on bool) {
			t.Helper()
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, node.URL+"/traces-apm-default/_settings", strings.NewReader(`{"index.blocks.write":`+strconv.FormatBool(on)+`}`))
			assert.OK(t, err)
			req.Header.Set("Content-Type", "application/json")
			res, err := http.DefaultClient.Do(req)
			assert.OK(t, err)
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
	if all.Acked < 1900 || all.Acked > 2100 || all.Failed != all.Sent-all.Acked || d.failed("throttled") != all.Failed {
		t.Errorf("acked %d, failed %d of %d, throttled %d, want the 2000 that fit into the queue acked", all.Acked, all.Failed, all.Sent, d.failed("throttled"))
	}
	var accepted, refused bool
	for _, iv := range d.Intervals {
		for _, s := range iv.Statuses {
			accepted, refused = accepted || s.Code == 202 && iv.StartS < 0.5, refused || s.Code == 503 && iv.StartS >= 1
		}
	}
	assert.True(t, accepted && refused, "the intervals do not show when the answers changed")
}

// TestAPMStopsReading freezes the server for a second: the response times show
// the freeze, and nothing is lost.
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
