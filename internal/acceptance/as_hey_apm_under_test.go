package acceptance

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestAsHeyAPMUnderTest: given the address of Elasticsearch and the server's
// process, the test command prints counts of documents and the server's memory, and
// its numbers are those of the report.
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
			if !strings.HasPrefix(r.URL.Path, "/apm-*/") {
				t.Errorf("counted in %s", r.URL.Path)
			}
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(store.Close)
	file := filepath.Join(t.TempDir(), "report.json")
	e := run(t, "as", "hey-apm", "--report-json", file, "-base-url", "http://"+server.addr, "-apm-es-url", store.URL,
		"-system-pid", strconv.Itoa(server.cmd.Process.Pid), "test", "1s", "1", "2", "3", "2").wantOneOf(t, 0, 3)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	d, err := parseDocument(string(data))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`\n\n(\d+) docs indexed \((\d+\.\d\d) / sec\)  \((\d+\.\d\d)% of expected\)\n\d+\.\d\d ms / request\n` +
		`([\d.]+Mb) \(max RSS\)\n(\d+\.\d{3}) memory efficiency \(accepted data volume per minute / memory used\)\n\z`).FindStringSubmatch(e.stdout)
	if m == nil || d.Indexed == nil || d.System == nil || d.System.Memory == nil {
		t.Fatalf("indexed %+v, system %+v, and:\n%s%s", d.Indexed, d.System, e.stdout, e.stderr)
	}
	want := []string{
		"9", m[2], fmt.Sprintf("%.2f", 900/float64(d.wholeRun().Acked)),
		fmt.Sprintf("%.1fMb", float64(d.System.PeakRSS)/1e6), fmt.Sprintf("%.3f", *d.System.Memory),
	}
	for i, w := range want {
		if m[i+1] != w {
			t.Errorf("it prints %q, the report has %q:\n%s", m[i+1], w, e.stdout)
		}
	}
}
