package live

import (
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"

	"carronade/internal/conn"
	"carronade/target"
)

// A metricsServer serves /metrics to Prometheus, on a server of its own.
type metricsServer struct {
	addr     string
	server   *http.Server
	exporter *Exporter
	info     ExporterOptions
}

// newMetricsServer serves an exporter's metrics.
func newMetricsServer(e *Exporter, o ExporterOptions) (*metricsServer, error) {
	host, port, err := conn.ListenAddress(o.MetricsAddr)
	if err != nil {
		return nil, &target.Error{Doing: "read --metrics-addr", Err: fmt.Errorf("%s: %w", o.MetricsAddr, err), Hint: "give HOST:PORT, or only a port, such as 9464, for this machine alone"}
	}
	ln, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, &target.Error{Doing: "listen for Prometheus", Err: err, Hint: "give --metrics-addr another port; 0 picks a free one"}
	}
	p := &metricsServer{addr: ln.Addr().String(), exporter: e, info: o}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(p)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "carronade: a run in progress; Prometheus reads /metrics")
	})
	p.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go p.server.Serve(ln) //nolint:errcheck // it ends with an error when it is closed
	return p, nil
}

func (p *metricsServer) close() { p.server.Close() }

// Describe sends nothing: the metrics depend on the run.
func (p *metricsServer) Describe(chan<- *prometheus.Desc) {}

// Collect sends the current metrics.
func (p *metricsServer) Collect(to chan<- prometheus.Metric) {
	p.exporter.mu.Lock()
	defer p.exporter.mu.Unlock()
	s := &p.exporter.state
	if s.began.IsZero() {
		return
	}
	series := prometheus.Labels{"target": strings.ToValidUTF8(s.run.Target, "\uFFFD"), "op": s.run.Op}
	value := func(kind prometheus.ValueType, name, help string, v float64, labels ...string) {
		var names, values []string
		for i := 0; i < len(labels); i += 2 {
			names, values = append(names, labels[i]), append(values, strings.ToValidUTF8(labels[i+1], "\uFFFD"))
		}
		to <- prometheus.MustNewConstMetric(prometheus.NewDesc("carronade_"+name, help, names, series), kind, v, values...)
	}
	gauge := func(name, help string, v float64, labels ...string) {
		value(prometheus.GaugeValue, name, help, v, labels...)
	}
	gauge("run_info", "The run that the other metrics belong to.", 1, infoLabels(s.run, p.info.Version)...)
	gauge("run_start_time_seconds", "Start of the run, since the epoch.", float64(s.began.UnixNano())/1e9)
	gauge("run_active", "1 during the run, 0 after it.", oneIf(s.running))
	if !s.seen {
		return
	}
	gauge("phase", "The phase that the run is in.", 1, "phase", s.phase)
	for _, c := range counters {
		value(prometheus.CounterValue, c.name+"_total", c.help, float64(c.of(&s.counts)))
	}
	for _, st := range s.statuses {
		value(prometheus.CounterValue, "answers_total", "Batches answered, by status code.", float64(st.Batches), "code", strconv.Itoa(st.Code))
	}
	gauge("in_flight_events", "Events sent and not yet done.", float64(s.inFlight))
	if s.behind >= 0 && s.counts.Consumed > 0 {
		gauge("behind_events", "Consuming: events behind the end of the logs.", float64(s.behind))
	}
	value(prometheus.CounterValue, "generator_cpu_seconds_total", "Processor time of the generator.", s.usage.CPU.Seconds())
	gauge("generator_resident_memory_bytes", "Resident memory of the generator.", float64(s.usage.RSS))
	for _, t := range publishedTimes(&s.times) {
		if t.h != nil {
			e := exponentialOf(t)
			to <- &combinedHistogram{desc: prometheus.NewDesc("carronade_"+e.name+"_seconds", e.help, nil, series), e: &e, began: s.began}
		}
	}
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// infoLabels describe a run, besides its target and operation, which all metrics
// have. The report's labels have the names label_NAME, in
// which characters that Prometheus does not allow become underscores. If names
// become equal, the label has all their values, joined by ";" in the order of the
// names, as OpenTelemetry specifies for Prometheus.
func infoLabels(r ExportedRun, version string) []string {
	out := []string{"id", r.ID, "repetition", strconv.Itoa(max(r.Repetition, 1)), "version", version}
	var names []string
	values := make(map[string][]string)
	for _, k := range slices.Sorted(maps.Keys(r.Labels)) {
		name := "label_" + strings.Map(func(c rune) rune {
			if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' {
				return c
			}
			return '_'
		}, k)
		if values[name] == nil {
			names = append(names, name)
		}
		values[name] = append(values[name], r.Labels[k])
	}
	slices.Sort(names)
	for _, n := range names {
		out = append(out, n, strings.Join(values[n], ";"))
	}
	return out
}

// A combinedHistogram has classic and native buckets, so that every version of
// Prometheus can read it.
type combinedHistogram struct {
	desc  *prometheus.Desc
	e     *exponential
	began time.Time
}

// Desc returns the metric's description.
func (b *combinedHistogram) Desc() *prometheus.Desc { return b.desc }

// Write writes the metric.
func (b *combinedHistogram) Write(m *dto.Metric) error {
	var none uint64
	native, err := prometheus.NewConstNativeHistogram(b.desc, b.e.count, b.e.sum, b.e.buckets, nil, none, scale, 0, b.began)
	if err != nil {
		return err
	}
	if err := native.Write(m); err != nil {
		return err
	}
	for i, n := range b.e.classic {
		end := bounds[i]
		m.Histogram.Bucket = append(m.Histogram.Bucket, &dto.Bucket{CumulativeCount: &n, UpperBound: &end})
	}
	return nil
}
