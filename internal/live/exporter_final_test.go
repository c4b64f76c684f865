package live

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"carronade/load"
	"carronade/measure"
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
		_, tags, _ := strings.Cut(name, ";")
		assert.True(t, (want == "" || ";"+tags == want) && (want != "" || tags == ""), "Graphite: %q, want tags %q", line, want)
	}
}

func TestTagValue(t *testing.T) {
	for given, want := range map[string]string{"a;b c\n": "a_b_c_", "~x": "_~x", "": "_", "null://": "null://"} {
		assert.Equal(t, tagValue(given), want, "%q became", given)
	}
}

// The end of a run is pushed with the totals, and so is known to a collector. Graphite gets the numbers of intervals only.
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
	assert.True(t, len(w) == 1 && strings.Contains(w[0], `did not get the final values: it answered 503 Service Unavailable: "full"`), "warnings %q", w)
}

// A collector that was too slow for all intervals still gets the last ones.
func TestSlowGetsLast(t *testing.T) {
	first, more := make(chan struct{}), make(chan struct{})
	begun := sync.OnceFunc(func() { close(first) })
	url, last := otlpCollector(t, func() { begun(); <-more })
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

// The series of sangrenel cover accepted events; the fourth exists if anything was answered or with ZeroP99.
func TestGraphiteAccepted(t *testing.T) {
	for _, tt := range []struct {
		name       string
		counts     measure.Counts
		unanswered bool
		want       string // rate, error rate, output, p99
	}{
		{"nothing", measure.Counts{}, false, "0 0 0"},
		{"all accepted", measure.Counts{Sent: 10, Acked: 10, Bytes: 100, AckedBytes: 100}, false, "10 0 100"},
		{"some refused", measure.Counts{Sent: 10, Acked: 6, Failed: 3, Unknown: 1, Bytes: 100, AckedBytes: 60}, false, "6 40 60"},
		{"all refused", measure.Counts{Sent: 10, Failed: 10, Bytes: 100}, false, "0 100 0"},
		{"events of an earlier interval are refused", measure.Counts{Failed: 10}, false, "0 100 0"},
		{"events of an earlier interval are lost", measure.Counts{Unknown: 5, Acked: 5, AckedBytes: 50}, false, "5 50 50"},
		{"more is refused than sent", measure.Counts{Sent: 2, Failed: 30, Acked: 10, Bytes: 20, AckedBytes: 100}, false, "10 75 100"},
		{"sent, no outcome yet", measure.Counts{Sent: 10, Bytes: 100}, false, "0 0 0"},
		{"no answers, events of an earlier interval failed", measure.Counts{Failed: 3}, true, "0 100 0"},
		{"no answers", measure.Counts{Sent: 10, Unknown: 10, Bytes: 100}, true, "10 0 100"},
		{"no answers, some not sent", measure.Counts{Sent: 10, Unknown: 8, Failed: 2, Bytes: 100}, true, "8 20 100"},
		{"read", measure.Counts{Consumed: 10, Bytes: 100}, false, "10 0 100"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var s state
			p := s.point(&load.Snapshot{Interval: measure.Interval{End: time.Second, Counts: tt.counts}, Unanswered: tt.unanswered})
			p.at = time.Unix(7, 0)
			for zeros, want := range map[bool]string{false: tt.want, true: tt.want + " 0"} {
				var got []string
				for line := range strings.Lines(string((&graphite{prefix: "a", zeroP99: zeros}).lines(p))) {
					var v float64
					for _, name := range []string{"rate", "error_rate", "output", "p99"} {
						if _, err := fmt.Sscanf(line, "a.sangrenel."+name+" %f 7\n", &v); err == nil {
							got = append(got, fmt.Sprint(v))
						}
					}
				}
				assert.Equal(t, strings.Join(got, " "), want, "zeros %v", zeros)
			}
		})
	}
}

// Published is called for each interval, and replaces the log's message.
func TestPublished(t *testing.T) {
	addr, lines := listen(t)
	go func() {
		for range lines { // until it is closed
		}
	}()
	for _, tt := range []struct {
		name, addr string
		failed     bool
	}{{"present", addr, false}, {"absent", "127.0.0.1:1", true}} {
		t.Run(tt.name, func(t *testing.T) {
			published := make(chan error, 10)
			h := openedExporter(t, ExporterOptions{
				Graphite: tt.addr, Published: func(err error) { published <- err },
				Logf: func(format string, args ...any) { t.Errorf("logged: "+format, args...) },
			})
			h.Close(context.Background())
			assert.Must(t, len(published) == 3, "called %d times for three intervals", len(published))
			for range 3 {
				err := <-published
				assert.True(t, (err != nil) == tt.failed, "published %v", err)
			}
		})
	}
}

// Labels may be invalid UTF-8; the page stays valid.
func TestInvalidLabels(t *testing.T) {
	h := assert.Value(OpenExporter(ExporterOptions{MetricsAddr: "0"}))(t)
	defer h.Close(context.Background())
	h.Begin(ExportedRun{ID: "k3f9z0ab", Labels: map[string]string{"team": "a\xff"}})
	h.Show(counted(1))
	assert.True(t, scrape(t, h.Addr(), "text/plain")["carronade_run_info"] != nil, "run_info is missing")
}

// Labels whose names become equal in Prometheus keep all their values, in the same order at each scrape.
func TestEqualLabelNames(t *testing.T) {
	r := ExportedRun{ID: "k3f9z0ab", Labels: map[string]string{"a.b": "dot", "a-b": "dash", "a_b": "line", "a": "alone"}}
	want := []string{"id", "k3f9z0ab", "repetition", "1", "version", "v", "label_a", "alone", "label_a_b", "dash;dot;line"}
	for range 100 { // a map has no order
		diff := cmp.Diff(want, infoLabels(r, "v"))
		assert.Must(t, diff == "", "(-want +got):\n%s", diff)
	}
}

// TestNativeBuckets: the spans and differences of a native histogram have all buckets, and are never missing.
func TestNativeBuckets(t *testing.T) {
	for _, want := range []map[int]int64{{}, {0: 3}, {-7: 2, -6: 5, -5: 1, -2: 4, 90: 1}} {
		h := histogramOf(&exponential{buckets: want}, time.Now())
		got, at, count, next := map[int]int64{}, 0, int64(0), 0
		for _, s := range h.PositiveSpan {
			at += int(s.GetOffset())
			for range s.GetLength() {
				count += h.PositiveDelta[next]
				got[at] = count
				at, next = at+1, next+1
			}
		}
		if diff := cmp.Diff(want, got); diff != "" || len(h.PositiveSpan) == 0 || next != len(h.PositiveDelta) {
			t.Errorf("%d spans, %d of %d differences (-want +got):\n%s", len(h.PositiveSpan), next, len(h.PositiveDelta), diff)
		}
	}
}
