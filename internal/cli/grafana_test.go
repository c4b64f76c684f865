//go:build unix

package cli_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"carronade/test/testkit/assert"
)

// A board is what the tests read of a Grafana dashboard.
type board struct {
	Inputs []struct {
		Name, Type, PluginID string
	} `json:"__inputs"`
	Schema      int `json:"schemaVersion"`
	Annotations struct{ List []boardQuery }
	Templating  struct {
		List []struct {
			Name, Type, Definition string
			Datasource             boardSource
			Current                struct{ Value any }
		}
	}
	Panels []struct {
		Type, Title string
		Datasource  boardSource
		Targets     []boardQuery
	}
}

type boardSource struct{ Type, UID string }

// A boardQuery is a query of a panel or an annotation.
type boardQuery struct {
	Name, Expr, LegendFormat, TitleFormat, TextFormat string
	Instant                                           bool
	Datasource                                        boardSource
}

func readBoard(t *testing.T, file string) (b board) {
	t.Helper()
	assert.OK(t, json.Unmarshal(assert.Value(os.ReadFile(root+"/packaging/grafana/"+file))(t), &b))
	return b
}

// all are the queries of panels, annotations and variables. A query of a variable is its selector, with the label as the legend.
func (b *board) all() (out []boardQuery) {
	for _, p := range b.Panels {
		for _, q := range p.Targets {
			q.Name = p.Title
			out = append(out, q)
		}
	}
	out = append(out, b.Annotations.List...)
	for _, v := range b.Templating.List {
		if m := labelValues.FindStringSubmatch(v.Definition); m != nil {
			out = append(out, boardQuery{Name: "variable " + v.Name, Expr: m[1], LegendFormat: "{{" + m[2] + "}}", Datasource: v.Datasource})
		}
	}
	return out
}

var labelValues = regexp.MustCompile(`^label_values\((.*), (\w+)\)$`)

// promWords are the functions, operators and keywords of PromQL that the dashboards use. All other
// names outside of braces and lists of labels are metrics.
var promWords = []string{"and", "by", "group_left", "histogram_quantile", "last_over_time", "on", "or", "rate", "sum"}

// A promSelector is a metric and the labels that its matchers and the grouping around it name.
type promSelector struct {
	metric string
	labels []string
}

var (
	promLabels   = regexp.MustCompile(`\b(by|on|group_left) \(([^)]*)\)`)
	promWindow   = regexp.MustCompile(`\[\$__(rate_interval|range)\]`)
	promMatchers = regexp.MustCompile(`\{([^}]*)\}`)
	promMatcher  = regexp.MustCompile(`^(\w+)(=~?)"[^"]*"$`)
	promName     = regexp.MustCompile(`[a-zA-Z_:][\w:]*(\{\d+\})?`)
)

// selectors reads a query: its metrics, the labels on which they are joined, and those that are added or kept.
func selectors(t *testing.T, expr string) (metrics []promSelector, joined, kept []string) {
	t.Helper()
	for _, m := range promLabels.FindAllStringSubmatch(expr, -1) {
		names := strings.FieldsFunc(m[2], func(r rune) bool { return r == ',' || r == ' ' })
		if m[1] == "on" {
			joined = append(joined, names...)
		} else {
			kept = append(kept, names...)
		}
	}
	expr = promLabels.ReplaceAllString(expr, "$1")
	expr = promWindow.ReplaceAllString(expr, "")
	var matchers [][]string // replaced by their index
	expr = promMatchers.ReplaceAllStringFunc(expr, func(text string) string {
		var names []string
		for m := range strings.SplitSeq(strings.Trim(text, "{}"), ", ") {
			part := promMatcher.FindStringSubmatch(m)
			assert.Must(t, part != nil, "cannot read the matcher %q of %s", m, expr)
			names = append(names, part[1])
		}
		matchers = append(matchers, names)
		return fmt.Sprintf("{%d}", len(matchers)-1)
	})
	for _, name := range promName.FindAllString(expr, -1) {
		name, index, ok := strings.Cut(strings.TrimSuffix(name, "}"), "{")
		if slices.Contains(promWords, name) {
			continue
		}
		s := promSelector{metric: name}
		if ok {
			var i int
			fmt.Sscan(index, &i)
			s.labels = matchers[i]
		}
		metrics = append(metrics, s)
	}
	return metrics, joined, kept
}

// exports are metrics and the labels that they have in any of several runs.
type exports map[string]map[string]bool

func (e exports) add(metric string, labels ...string) {
	if e[metric] == nil {
		e[metric] = make(map[string]bool)
	}
	for _, l := range labels {
		e[metric][l] = true
	}
}

// check reports what a query names and the runs did not export. It returns the names of the query's metrics.
func (e exports) check(t *testing.T, q boardQuery) (used []string) {
	t.Helper()
	metrics, joined, kept := selectors(t, q.Expr)
	assert.True(t, len(metrics) != 0, "%s: no metric in %q", q.Name, q.Expr)
	somewhere := make(map[string]bool)
	for _, m := range metrics {
		used = append(used, m.metric)
		labels, ok := e[m.metric]
		if !ok {
			t.Errorf("%s: no run exports %s: %s", q.Name, m.metric, q.Expr)
			continue
		}
		maps.Copy(somewhere, labels)
		for _, l := range append(m.labels, joined...) {
			assert.True(t, labels[l], "%s: %s has no label %s: %s", q.Name, m.metric, l, q.Expr)
		}
	}
	for _, m := range legendLabel.FindAllStringSubmatch(q.LegendFormat+q.TitleFormat+q.TextFormat, -1) {
		kept = append(kept, m[1])
	}
	for _, l := range kept {
		// native histograms have no le, and need none
		assert.True(t, somewhere[l] || l == "le", "%s: no metric has the label %s: %s", q.Name, l, q.Expr)
	}
	return used
}

var legendLabel = regexp.MustCompile(`\{\{(\w+)\}\}`)

// The queries of the dashboards name only metrics and labels that runs export, and every exported metric is in a query.
func TestDashboardsShowWhatRunsExport(t *testing.T) {
	pushes := newPushes(t)
	runs := publishedRuns(t, pushes, "300ms")
	scraped := make(exports)
	for _, r := range runs {
		r.until(t, "the last metrics stay at")
		for _, f := range scrapePage(t, r.addr) {
			scraped.family(f, "job", "instance") // labels that Prometheus adds
		}
	}
	received := make(exports)
	for _, f := range pushes.families() {
		received.family(f)
	}
	for _, tt := range []struct {
		file   string
		has    exports
		unused []string // sums and counts of times: the panels show percentiles, which need neither
	}{
		{"carronade.json", scraped, []string{
			"carronade_end_to_end_seconds_count", "carronade_end_to_end_seconds_sum", "carronade_response_seconds_count", "carronade_response_seconds_sum",
			"carronade_send_delay_seconds_count", "carronade_send_delay_seconds_sum", "carronade_service_seconds_count", "carronade_service_seconds_sum",
		}},
		{"carronade-otlp.json", received, nil},
	} {
		t.Run(tt.file, func(t *testing.T) {
			b := readBoard(t, tt.file)
			unused := maps.Clone(tt.has)
			queries := b.all()
			assert.True(t, len(queries) >= 40, "only %d queries", len(queries))
			for _, q := range queries {
				assert.Equal(t, q.Datasource, (boardSource{"prometheus", "${datasource}"}), "%s: its data source", q.Name)
				for _, metric := range tt.has.check(t, q) {
					delete(unused, metric)
				}
			}
			got := slices.Sorted(maps.Keys(unused))
			assert.True(t, slices.Equal(got, tt.unused), "in no query: %q, want %q", got, tt.unused)
		})
	}
}

// A dashboard can be imported, which asks for the data source, and provisioned, which leaves its variable to Grafana.
func TestDashboardsCanBeImported(t *testing.T) {
	for _, file := range []string{"carronade.json", "carronade-otlp.json"} {
		b := readBoard(t, file)
		assert.True(t, len(b.Inputs) == 1 && b.Inputs[0].Name == "DS_PROMETHEUS" && b.Inputs[0].Type == "datasource" && b.Inputs[0].PluginID == "prometheus" && b.Schema >= 39,
			"%s: inputs %v, schema %d", file, b.Inputs, b.Schema)
		names := []string{"__rate_interval", "__range"} // Grafana's own
		for _, v := range b.Templating.List {
			names = append(names, v.Name)
			assert.True(t, v.Type != "datasource" || v.Name == "datasource" && v.Current.Value == "${DS_PROMETHEUS}",
				"%s: the data source is %v", file, v)
			assert.True(t, v.Type != "query" || labelValues.MatchString(v.Definition), "%s: variable %s is %q", file, v.Name, v.Definition)
		}
		assert.True(t, slices.Equal(names[2:], []string{"datasource", "target", "op", "run"}), "%s: variables %q", file, names)
		for _, q := range b.all() {
			for _, m := range regexp.MustCompile(`\$(\w+)`).FindAllStringSubmatch(q.Expr, -1) {
				assert.True(t, slices.Contains(names, m[1]), "%s: %s: no variable %s", file, q.Name, m[1])
			}
		}
	}
}

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

// startPrometheus starts a server with an empty store, which scrapes the targets in its folder twice a second.
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

// samples evaluates a query as Grafana does, since began, and counts the samples that are numbers or histograms.
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

// query counts the samples of an answer that are numbers or histograms. Series must have the labels of the legend.
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
