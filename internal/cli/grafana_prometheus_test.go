//go:build unix

package cli_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"carronade/test/testkit/assert"
)

// Every query of the dashboards returns data of real runs in a real Prometheus, with classic
// and with native histograms. CARRONADE_TEST_PROMETHEUS names the program, 2.40 or later.
func TestDashboardsInPrometheus(t *testing.T) {
	program := os.Getenv("CARRONADE_TEST_PROMETHEUS")
	if program == "" {
		t.Skip("CARRONADE_TEST_PROMETHEUS does not name a Prometheus")
	}
	pushes := newPushes(t)
	classic, native := startPrometheus(t, program), startPrometheus(t, program, "--enable-feature=native-histograms")
	began := time.Now()
	runs := publishedRuns(t, pushes, "10s") // Prometheus may take five seconds to begin with a new target
	var addrs []string
	for _, r := range runs {
		addrs = append(addrs, r.addr)
	}
	for _, p := range []*prometheus{classic, native} {
		p.scrape(t, "runs", addrs...)
	}
	native.scrape(t, "pushes", strings.TrimPrefix(pushes.URL, "http://"))
	for _, p := range []*prometheus{classic, native} {
		p.await(t, fmt.Sprintf("count(carronade_run_active == 0) == %d", len(runs)))
	}
	all := len(runs) + 1 // one of the programs does two
	native.await(t, fmt.Sprintf("count(carronade_run_active_ratio == 0) == %d", all))
	for _, tt := range []struct {
		name, file string
		*prometheus
	}{
		{"classic", "carronade.json", classic},
		{"native", "carronade.json", native},
		{"received", "carronade-otlp.json", native},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := readBoard(t, tt.file)
			for _, q := range b.all() {
				n := tt.samples(t, q, began)
				t.Logf("%4d samples: %s %s", n, q.Name, q.LegendFormat)
				assert.True(t, n != 0 && (!q.Instant || n == all), "%s: %d samples: %s", q.Name, n, q.Expr)
			}
		})
	}
}

// A prometheus is a running server.
type prometheus struct{ url, dir string }

// startPrometheus starts a server with an empty store, which scrapes the targets in its folder
// twice a second.
func startPrometheus(t *testing.T, program string, flags ...string) *prometheus {
	t.Helper()
	p := &prometheus{dir: t.TempDir()}
	config := filepath.Join(p.dir, "prometheus.yml")
	text := `{global: {scrape_interval: 500ms, scrape_timeout: 500ms}, scrape_configs: [` +
		`{job_name: runs, file_sd_configs: [{files: [runs.json]}]}, ` +
		`{job_name: pushes, honor_labels: true, file_sd_configs: [{files: [pushes.json]}]}]}`
	assert.OK(t, os.WriteFile(config, []byte(text), 0o600))
	addr := freeAddress(t)
	p.url = "http://" + addr
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program, append([]string{"--config.file=" + config, "--storage.tsdb.path=" + filepath.Join(p.dir, "data"), "--web.listen-address=" + addr}, flags...)...)
	words := assert.Value(cmd.StderrPipe())(t)
	assert.OK(t, cmd.Start())
	t.Cleanup(func() { cancel(); _ = cmd.Wait() })
	watchdog := time.AfterFunc(time.Minute, cancel)
	defer watchdog.Stop()
	var said strings.Builder
	lines := bufio.NewScanner(words)
	for lines.Scan() {
		fmt.Fprintln(&said, lines.Text())
		if strings.Contains(lines.Text(), "ready to receive web requests") {
			go func() { _, _ = io.Copy(io.Discard, words) }()
			return p
		}
	}
	t.Fatalf("%s did not start:\n%s", program, said.String())
	return nil
}

func (p *prometheus) scrape(t *testing.T, job string, addrs ...string) {
	t.Helper()
	text := assert.Value(json.Marshal([]map[string]any{{"targets": addrs}}))(t)
	temp := filepath.Join(p.dir, job+".new")
	assert.OK(t, os.WriteFile(temp, text, 0o600))
	assert.OK(t, os.Rename(temp, filepath.Join(p.dir, job+".json")))
}

// await asks until the query has a result.
func (p *prometheus) await(t *testing.T, expr string) {
	t.Helper()
	ask := time.NewTicker(200 * time.Millisecond)
	defer ask.Stop()
	limit := time.After(40 * time.Second) // the pages stay for a minute
	for p.query(t, "", "query", url.Values{"query": {expr}}) == 0 {
		select {
		case <-ask.C:
		case <-limit:
			t.Fatalf("it is still not true that %s", expr)
		}
	}
}

// samples evaluates a query as Grafana does, since began, and counts the samples that are
// numbers or histograms.
func (p *prometheus) samples(t *testing.T, q boardQuery, began time.Time) int {
	t.Helper()
	expr := strings.NewReplacer("$__rate_interval", "2s", "$__range", "1h").Replace(q.Expr)
	expr = regexp.MustCompile(`"\$\w+"`).ReplaceAllString(expr, `".*"`)
	if q.Instant {
		return p.query(t, q.LegendFormat, "query", url.Values{"query": {expr}})
	}
	at := func(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMilli())/1e3, 'f', 3, 64) }
	return p.query(t, q.LegendFormat+q.TitleFormat+q.TextFormat, "query_range", url.Values{"query": {expr}, "start": {at(began)}, "end": {at(time.Now())}, "step": {"0.5"}})
}

// query counts the samples of an answer that are numbers or histograms. Series must have the
// labels of the legend.
func (p *prometheus) query(t *testing.T, legend, how string, values url.Values) (n int) {
	t.Helper()
	resp, err := http.PostForm(p.url+"/api/v1/"+how, values) //nolint:noctx // the server ends with the test
	assert.OK(t, err)
	defer resp.Body.Close()
	type pair = [2]any // time, value
	var answer struct {
		Error string
		Data  struct {
			Result []struct {
				Metric             map[string]string
				Values, Histograms []pair
				Value, Histogram   *pair
			}
		}
	}
	assert.OK(t, json.NewDecoder(resp.Body).Decode(&answer))
	if answer.Error != "" {
		t.Errorf("%s: %s", values.Get("query"), answer.Error)
	}
	for _, s := range answer.Data.Result {
		if s.Value != nil {
			s.Values = append(s.Values, *s.Value)
		}
		if s.Histogram != nil {
			n++
		}
		n += len(s.Histograms)
		for _, m := range legendLabel.FindAllStringSubmatch(legend, -1) {
			if s.Metric[m[1]] == "" && (m[1] != "le" || len(s.Values) > 0) {
				t.Errorf("a series of %s has no %s: %v", values.Get("query"), m[1], s.Metric)
			}
		}
		for _, v := range s.Values {
			if f, err := strconv.ParseFloat(fmt.Sprint(v[1]), 64); err == nil && !math.IsNaN(f) {
				n++
			}
		}
	}
	return n
}
