//go:build conformance

package acceptance

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

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
