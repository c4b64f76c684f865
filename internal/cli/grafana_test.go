//go:build unix

package cli_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

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

// all are the queries of panels, annotations and variables. A query of a variable is its
// selector, with the label as the legend.
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

// selectors reads a query: its metrics, the labels on which they are joined, and those
// that are added or kept.
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

// The queries of the dashboards name only metrics and labels that runs export, and every
// exported metric is in a query.
func TestDashboardsShowWhatRunsExport(t *testing.T) {
	t.Parallel()
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

// A dashboard can be imported, which asks for the data source, and provisioned, which leaves
// its variable to Grafana.
func TestDashboardsCanBeImported(t *testing.T) {
	for _, file := range []string{"carronade.json", "carronade-otlp.json"} {
		b := readBoard(t, file)
		if len(b.Inputs) != 1 || b.Inputs[0].Name != "DS_PROMETHEUS" || b.Inputs[0].Type != "datasource" || b.Inputs[0].PluginID != "prometheus" || b.Schema < 39 {
			t.Errorf("%s: inputs %v, schema %d", file, b.Inputs, b.Schema)
		}
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
