package live

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"carronade/test/testkit/assert"
)

// withSecret is a run whose URL has a login.
var withSecret = ExportedRun{ID: "k3f9z0ab", Target: "kafka://alice:canary@127.0.0.1:9092/t", Op: "produce"}

// otlpCollector starts a collector: its URL, and what it got. It calls then before each answer.
func otlpCollector(t *testing.T, then func()) (url string, bodies chan otlpRequest) {
	t.Helper()
	bodies = make(chan otlpRequest, 100)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var body otlpRequest
		err := json.NewDecoder(r.Body).Decode(&body)
		assert.True(t, err == nil, "%v", err)
		bodies <- body
		then()
	}))
	t.Cleanup(s.Close)
	return s.URL, bodies
}

const shownTarget = "kafka://***@127.0.0.1:9092/t"

// Every series says its target and operation, without the login.
func TestTargetAndOp(t *testing.T) {
	url, bodies := otlpCollector(t, func() {})
	addr, lines := listen(t)
	h := assert.Value(OpenExporter(ExporterOptions{MetricsAddr: "0", OTLP: url, Graphite: addr, Prefix: "lab"}))(t)
	h.Begin(withSecret)
	h.Show(counted(1))

	for name, family := range scrape(t, h.Addr(), "text/plain") {
		for _, m := range family.Metric {
			got := make(map[string]string)
			for _, l := range m.Label {
				got[l.GetName()] = l.GetValue()
			}
			assert.True(t, got["target"] == shownTarget && got["op"] == "produce", "Prometheus: %s has %v", name, got)
		}
	}
	w := h.Close(context.Background())
	assert.True(t, w == nil, "warnings %q", w)
	body := <-bodies
	text, _ := json.Marshal(body)
	assert.True(t, !strings.Contains(string(text), "canary"), "OTLP: the password is in %s", text)
	check := func(name string, attributes []otlpAttribute) {
		t.Helper()
		got := make(map[string]string)
		for _, a := range attributes {
			got[a.Key] = a.Value.String
		}
		assert.True(t, got["target"] == shownTarget && got["op"] == "produce", "OTLP: %s has %v", name, got)
	}
	for _, m := range body.ResourceMetrics[0].ScopeMetrics[0].Metrics {
		switch {
		case m.Sum != nil:
			for _, p := range m.Sum.Points {
				check(m.Name, p.Attributes)
			}
		case m.Gauge != nil:
			check(m.Name, m.Gauge.Points[0].Attributes)
		default:
			check(m.Name, m.Exponential.Points[0].Attributes)
		}
	}
	for line := range lines {
		name, _, _ := strings.Cut(line, " ")
		want := ""
		if strings.HasPrefix(name, "lab.carronade.") {
			want = ";target=" + shownTarget + ";op=produce"
		}
		if _, tags, _ := strings.Cut(name, ";"); want != "" && ";"+tags != want || want == "" && tags != "" {
			t.Errorf("Graphite: %q, want tags %q", line, want)
		}
	}
}

func TestTagValue(t *testing.T) {
	for given, want := range map[string]string{"a;b c\n": "a_b_c_", "~x": "_~x", "": "_", "null://": "null://"} {
		assert.Equal(t, tagValue(given), want, "%q became", given)
	}
}

// The end of a run is pushed with the totals, and so is known to a collector. Graphite
// gets the numbers of intervals only.
func TestFinalPushed(t *testing.T) {
	url, bodies := otlpCollector(t, func() {})
	addr, lines := listen(t)
	h := openedExporter(t, ExporterOptions{OTLP: url, Graphite: addr, Prefix: "lab"})
	h.End()
	w := h.Close(context.Background())
	assert.True(t, w == nil, "warnings %q", w)
	for i := range 4 {
		values := make(map[string]string)
		for _, m := range (<-bodies).ResourceMetrics[0].ScopeMetrics[0].Metrics {
			if m.Sum != nil {
				values[m.Name] = m.Sum.Points[0].Int
			} else if m.Gauge != nil {
				values[m.Name] = m.Gauge.Points[0].Int
			}
		}
		active, acked := "1", "2970"
		if i == 3 {
			active = "0"
		} else {
			acked = []string{"990", "1980", "2970"}[i]
		}
		assert.True(t, values["carronade.run_active"] == active && values["carronade.acked_events"] == acked,
			"push %d: active %s, acked %s, want %s and %s",
			i, values["carronade.run_active"], values["carronade.acked_events"], active, acked)
	}
	n := 0
	for line := range lines {
		if strings.Contains(line, "sangrenel.rate") {
			n++
		}
	}
	assert.Equal(t, n, 3, "Graphite intervals")
}

// A collector that refuses the final values is named in a warning.
func TestFinalLost(t *testing.T) {
	n := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n++; n > 3 {
			http.Error(w, "full", http.StatusServiceUnavailable)
		}
	}))
	defer s.Close()
	h := openedExporter(t, ExporterOptions{OTLP: s.URL})
	h.End()
	w := h.Close(context.Background())
	if len(w) != 1 || !strings.Contains(w[0], `did not get the final values: it answered 503 Service Unavailable: "full"`) {
		t.Errorf("warnings %q", w)
	}
}

// A collector that was too slow for all intervals still gets the last ones.
func TestSlowGetsLast(t *testing.T) {
	first, more := make(chan struct{}), make(chan struct{})
	begun := sync.OnceFunc(func() { close(first) })
	url, last := otlpCollector(t, func() {
		begun()
		<-more
	})
	h := assert.Value(OpenExporter(ExporterOptions{OTLP: url}))(t)
	h.Begin(exported)
	h.Show(counted(1))
	<-first
	for n := range maxQueued + 5 {
		h.Show(counted(n + 2))
	}
	h.End()
	close(more)
	w := h.Close(context.Background())
	assert.True(t, len(w) == 1 && strings.Contains(w[0], "was too slow for 6 intervals"), "warnings %q", w)
	var end otlpRequest
	for len(last) > 0 {
		end = <-last
	}
	for _, m := range end.ResourceMetrics[0].ScopeMetrics[0].Metrics {
		assert.True(t, m.Name != "carronade.run_active" || m.Gauge.Points[0].Int == "0", "the last push is not that of the end")
	}
}

// The page stays when the sending has ended.
func TestPageStays(t *testing.T) {
	addr, lines := listen(t)
	h := openedExporter(t, ExporterOptions{MetricsAddr: "0", Graphite: addr})
	assert.True(t, h.Shown() && !(*Exporter)(nil).Shown(), "an exporter with metrics shows none, or one without shows some")
	h.End()
	w := h.Flush(context.Background())
	assert.True(t, w == nil, "warnings %q", w)
	for range lines { // the connection is closed
	}
	got := scrape(t, h.Addr(), "text/plain")
	f := got["carronade_acked_events_total"]
	assert.True(t, f != nil && f.Metric[0].GetCounter().GetValue() == 2970, "acked: %v", f)
	w = h.Close(context.Background())
	assert.True(t, w == nil, "warnings %q", w)
	if c, err := net.Dial("tcp", h.Addr()); err == nil {
		c.Close()
		t.Error("the page is open after Close")
	}
}
