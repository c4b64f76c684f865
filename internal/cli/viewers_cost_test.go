//go:build unix

package cli_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"testing"

	"carronade/test/testkit/assert"
)

// BenchmarkViewers measures what the page and its viewers cost a run: the processor time of the process
// per second, in percent of one core. At its end it compares the runs with four viewers with those
// without the page.
//
//	go test ./internal/cli -run '^$' -bench Viewers -benchtime 3x
func BenchmarkViewers(b *testing.B) {
	store := filepath.Join(b.TempDir(), "reports.db")
	cpu := map[int]float64{}
	for i := range b.N {
		all := []int{-1, 0, 4} // -1: no page
		if i%2 == 1 {
			slices.Reverse(all) // so that drift affects all
		}
		for _, viewers := range all {
			cpu[viewers] += runWithViewers(b, store, viewers)
		}
	}
	b.ReportMetric(cpu[-1]/float64(b.N), "%core-alone")
	b.ReportMetric(cpu[0]/float64(b.N), "%core-page")
	b.ReportMetric(cpu[4]/float64(b.N), "%core-4-viewers")
	cmd := exec.Command(carronade(b), "compare", "viewers=-1", "viewers=4", "--store", store)
	out, err := cmd.CombinedOutput()
	b.Logf("%v\n%s", err, out)
}

func runWithViewers(b *testing.B, store string, viewers int) float64 {
	b.Helper()
	args := []string{"run", "null://?delay=1ms", "--rate", "5k/s", "--for", "10s", "--quiet", "--no-calibrate", "--store", store, "--label", fmt.Sprint("viewers=", viewers)}
	if viewers >= 0 {
		args = append(args, "--web")
	}
	cmd := exec.Command(carronade(b), args...)
	cmd.Env = append(os.Environ(), "CARRONADE_TEST_UNTRUSTED=none")
	said := assert.Value(cmd.StderrPipe())(b)
	assert.OK(b, cmd.Start())
	lines := bufio.NewReader(said)
	var watching sync.WaitGroup
	if viewers >= 0 {
		text, err := lines.ReadString('\n')
		m := page.FindStringSubmatch(text)
		assert.Must(b, err == nil && m != nil, "%q, %v", text, err)
		for range viewers {
			watching.Go(func() { watch(m[1], m[2]) })
		}
	}
	rest, _ := io.ReadAll(lines)
	assert.OK(b, cmd.Wait(), "%s", rest)
	watching.Wait()
	return float64(cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime()) / 10e9 * 100
}

var runID = regexp.MustCompile(`"id": *"(\w+)"`)

func watch(url, token string) {
	get := func(path string) (io.ReadCloser, error) {
		q, err := http.NewRequest(http.MethodGet, url+"api"+path, http.NoBody)
		if err != nil {
			return nil, err
		}
		q.Header.Set("Authorization", "Bearer "+token)
		a, err := http.DefaultClient.Do(q)
		if err != nil {
			return nil, err
		}
		return a.Body, nil
	}
	for id := ""; id == ""; {
		body, err := get("/runs")
		if err != nil {
			return
		}
		text, _ := io.ReadAll(body)
		body.Close()
		if m := runID.FindSubmatch(text); m != nil {
			id = string(m[1])
			if body, err = get("/runs/" + id + "/events"); err == nil {
				io.Copy(io.Discard, body)
				body.Close()
			}
		}
	}
}
