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

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"google.golang.org/protobuf/types/known/timestamppb"

	"carronade/internal/conn"
	"carronade/measure"
	"carronade/protocol"
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
		return nil, &protocol.Error{Doing: "read --metrics-addr", Err: fmt.Errorf("%s: %w", o.MetricsAddr, err), Hint: "give HOST:PORT, or only a port, such as 9464, for this machine alone"}
	}
	ln, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, &protocol.Error{Doing: "listen for Prometheus", Err: err, Hint: "give --metrics-addr another port; 0 picks a free one"}
	}
	p := &metricsServer{addr: ln.Addr().String(), exporter: e, info: o}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", p.serve)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "carronade: a run in progress; Prometheus reads /metrics")
	})
	p.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go p.server.Serve(ln) //nolint:errcheck // it ends with an error when it is closed
	return p, nil
}

func (p *metricsServer) close() { p.server.Close() }

// serve answers with the current metrics in the format that the reader prefers.
func (p *metricsServer) serve(w http.ResponseWriter, r *http.Request) {
	families := p.collect()
	format := expfmt.NegotiateAccept(r.Header, expfmt.DefaultOpenMetricsAcceptedFormats()...)
	w.Header().Set("Content-Type", string(format))
	encoder := expfmt.NewEncoder(w, format)
	for _, f := range families {
		if encoder.Encode(f) != nil {
			return // the reader has gone
		}
	}
	if last, ok := encoder.(expfmt.Closer); ok {
		_ = last.Close() // likewise
	}
}

// collect returns the current metrics, by name.
func (p *metricsServer) collect() (all []*dto.MetricFamily) {
	p.exporter.mu.Lock()
	defer p.exporter.mu.Unlock()
	s := &p.exporter.state
	if s.began.IsZero() {
		return nil
	}
	add := func(kind dto.MetricType, name, help string, m *dto.Metric, labels ...string) {
		labels = append(labels, "target", s.run.Target, "op", s.run.Op)
		for i := 0; i < len(labels); i += 2 {
			m.Label = append(m.Label, &dto.LabelPair{Name: &labels[i], Value: new(strings.ToValidUTF8(labels[i+1], "\uFFFD"))})
		}
		slices.SortFunc(m.Label, func(a, b *dto.LabelPair) int { return strings.Compare(a.GetName(), b.GetName()) })
		name = "carronade_" + name
		if n := len(all); n > 0 && all[n-1].GetName() == name {
			all[n-1].Metric = append(all[n-1].Metric, m)
			return
		}
		all = append(all, &dto.MetricFamily{Name: &name, Help: &help, Type: &kind, Metric: []*dto.Metric{m}})
	}
	gauge := func(name, help string, v float64, labels ...string) {
		add(dto.MetricType_GAUGE, name, help, &dto.Metric{Gauge: &dto.Gauge{Value: &v}}, labels...)
	}
	counter := func(name, help string, v float64, labels ...string) {
		add(dto.MetricType_COUNTER, name, help, &dto.Metric{Counter: &dto.Counter{Value: &v}}, labels...)
	}
	defer func() {
		slices.SortFunc(all, func(a, b *dto.MetricFamily) int { return strings.Compare(a.GetName(), b.GetName()) })
	}()
	gauge("run_info", "The run that the other metrics belong to.", 1, infoLabels(s.run, p.info.Version)...)
	gauge("run_start_time_seconds", "Start of the run, since the epoch.", float64(s.began.UnixNano())/1e9)
	gauge("run_active", "1 during the run, 0 after it.", oneIf(s.running))
	if !s.seen {
		return all
	}
	gauge("phase", "The phase that the run is in.", 1, "phase", s.phase)
	for _, c := range measure.Counters {
		counter(c.Metric+"_total", c.Help, float64(c.Of(&s.counts)))
	}
	for _, st := range s.statuses {
		counter("answers_total", "Batches answered, by status code.", float64(st.Batches), "code", strconv.Itoa(st.Code))
	}
	gauge("in_flight_events", "Events sent and not yet done.", float64(s.inFlight))
	if s.behind >= 0 && s.counts.Consumed > 0 {
		gauge("behind_events", "Consuming: events behind the end of the logs.", float64(s.behind))
	}
	for _, g := range s.groups {
		counter("group_consumed_events_total", groupConsumedHelp, float64(g.consumed), "group", g.name)
		gauge("group_backlog_events", groupBacklogHelp, float64(g.backlog), "group", g.name)
	}
	counter("generator_cpu_seconds_total", "Processor time of the generator.", s.usage.CPU.Seconds())
	gauge("generator_resident_memory_bytes", "Resident memory of the generator.", float64(s.usage.RSS))
	for _, t := range publishedTimes(&s.times) {
		if t.h != nil {
			e := exponentialOf(t)
			add(dto.MetricType_HISTOGRAM, e.name+"_seconds", e.help, &dto.Metric{Histogram: histogramOf(&e, s.began)})
		}
	}
	return all
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

// histogramOf has classic and native buckets, so that every version of Prometheus can read it.
func histogramOf(e *exponential, began time.Time) *dto.Histogram {
	h := &dto.Histogram{
		SampleCount: &e.count, SampleSum: &e.sum, CreatedTimestamp: timestamppb.New(began),
		Schema: new(int32(scale)), ZeroThreshold: new(0.0), ZeroCount: new(uint64(0)),
	}
	for i, n := range e.classic {
		h.Bucket = append(h.Bucket, &dto.Bucket{CumulativeCount: &n, UpperBound: &bounds[i]})
	}
	// Native buckets come in spans without gaps, each as its difference from the one before. A span of
	// length 0 says that there are none.
	next, last := 0, int64(0)
	for _, i := range slices.Sorted(maps.Keys(e.buckets)) {
		if len(h.PositiveSpan) == 0 || i > next {
			h.PositiveSpan = append(h.PositiveSpan, &dto.BucketSpan{Offset: new(int32(i - next)), Length: new(uint32(0))})
		}
		*h.PositiveSpan[len(h.PositiveSpan)-1].Length++
		h.PositiveDelta = append(h.PositiveDelta, e.buckets[i]-last)
		next, last = i+1, e.buckets[i]
	}
	if len(h.PositiveSpan) == 0 {
		h.PositiveSpan = []*dto.BucketSpan{{Offset: new(int32(0)), Length: new(uint32(0))}}
	}
	return h
}
