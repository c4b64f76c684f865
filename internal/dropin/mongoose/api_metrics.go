package mongoose

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"carronade/internal/dropin"
	"carronade/measure"
)

// mostMeasured limits how many steps of a run have metrics; the oldest that ended are left out.
const mostMeasured = 64

// A measuredStep is a step of a run, with its newest metrics. It is nil without an API, and its
// methods do nothing then.
type measuredStep struct {
	api   *api
	s     *step
	began time.Time
	m     metrics
	shown bool // m is set
	over  bool
}

// watch begins to publish the metrics of a step, until its end is called.
func (a *api) watch(s *step) *measuredStep {
	if a == nil {
		return nil
	}
	own := &measuredStep{api: a, s: s, began: time.Now()}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.measured = append(a.measured, own)
	if len(a.measured) > mostMeasured {
		if i := slices.IndexFunc(a.measured, func(o *measuredStep) bool { return o.over }); i >= 0 {
			a.measured = slices.Delete(a.measured, i, i+1)
		}
	}
	return own
}

// show publishes metrics.
func (m *measuredStep) show(now *metrics) {
	if m == nil {
		return
	}
	m.api.mu.Lock()
	defer m.api.mu.Unlock()
	m.m, m.shown = *now, true
	m.m.durations, m.m.latencies = nil, nil // they go on
}

// look publishes the metrics of a meter.
func (m *measuredStep) look(of *meter) {
	if m != nil {
		m.show(of.look())
	}
}

// end says that the step has ended, however it did. One that never had metrics is left out.
func (m *measuredStep) end() {
	if m == nil {
		return
	}
	m.api.mu.Lock()
	defer m.api.mu.Unlock()
	if m.over = true; !m.shown {
		m.api.measured = slices.DeleteFunc(m.api.measured, func(o *measuredStep) bool { return o == m })
	}
}

// look returns the metrics without starting a row.
func (m *meter) look() *metrics {
	own := *m
	return own.metrics(time.Now())
}

// escaped is a value of a label.
var escaped = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// getMetrics answers with the metrics of the steps of the newest run, in Prometheus's text format.
func (a *api) getMetrics(w http.ResponseWriter, _ *http.Request) {
	a.mu.Lock()
	var all []measuredStep
	for _, m := range a.measured {
		all = append(all, *m)
	}
	id := a.last
	a.mu.Unlock()
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	var b bytes.Buffer
	for i := range gauges {
		g := &gauges[i]
		if len(all) == 0 {
			break
		}
		fmt.Fprintf(&b, "# HELP mongoose_%s %s\n# TYPE mongoose_%[1]s gauge\n", g.name, g.help)
		for k := range all {
			fmt.Fprintf(&b, "mongoose_%s{%s} %s\n", g.name, all[k].labels(id), dropin.JavaDouble(g.of(&all[k].m)))
		}
	}
	w.Write(b.Bytes()) //nolint:errcheck // who asked has gone
}

// labels are those of a step.
func (m *measuredStep) labels(id int64) string {
	s := m.s
	if s.v.has("run-id") {
		id = s.v.number("run-id")
	}
	var all []string
	for _, l := range [][2]string{
		{"load_step_id", s.id},
		{"load_op_type", s.op},
		{"storage_driver_limit_concurrency", strconv.Itoa(s.concurrency)},
		{"item_data_size", s.v.text("item-data-size")},
		{"start_time", strconv.FormatInt(m.began.UnixMilli(), 10)},
		{"node_list", "[" + strings.Join(s.nodes, ", ") + "]"},
		{"user_comment", s.v.text("run-comment")},
		{"run_id", strconv.FormatInt(id, 10)},
	} {
		all = append(all, l[0]+`="`+escaped.Replace(l[1])+`"`)
	}
	return strings.Join(all, ",")
}

// A gauge is a number of a step.
type gauge struct {
	name, help string
	of         func(m *metrics) float64
}

// gauges are those of mongoose; times are in seconds.
var gauges = func() (all []gauge) {
	add := func(name, help string, of func(m *metrics) float64) { all = append(all, gauge{name, help, of}) }
	for _, t := range []struct {
		name string
		of   func(m *metrics) timing
	}{{"duration", func(m *metrics) timing { return m.duration }}, {"latency", func(m *metrics) timing { return m.latency }}} {
		add(t.name+"_count", "Operations with a "+t.name+".", func(m *metrics) float64 { return float64(m.succ) })
		add(t.name+"_sum", "Sum of the "+t.name+", s.", func(m *metrics) float64 { return t.of(m).sum })
		add(t.name+"_mean", "Mean "+t.name+", s.", func(m *metrics) float64 { return t.of(m).mean / 1e6 })
		add(t.name+"_min", "Least "+t.name+", s.", func(m *metrics) float64 { return float64(t.of(m).min) / 1e6 })
		add(t.name+"_max", "Largest "+t.name+", s.", func(m *metrics) float64 { return float64(t.of(m).max) / 1e6 })
	}
	add("concurrency_mean", "Mean number of operations in flight.", func(m *metrics) float64 { return m.mean })
	add("concurrency_last", "Operations in flight.", func(m *metrics) float64 { return float64(m.current) })
	for _, c := range []struct {
		name, what       string
		count, mean, now func(m *metrics) float64
	}{
		{"byte", "Bytes", func(m *metrics) float64 { return float64(m.bytes) }, func(m *metrics) float64 { return m.meanBytes }, func(m *metrics) float64 { return m.lastBytes }},
		{"success_op", "Operations that succeeded", func(m *metrics) float64 { return float64(m.succ) }, func(m *metrics) float64 { return m.meanRate }, func(m *metrics) float64 { return m.lastRate }},
		{"failed_op", "Operations that failed", func(m *metrics) float64 { return float64(m.fail) }, func(m *metrics) float64 { return measure.PerSecond(m.fail, m.elapsed) }, func(m *metrics) float64 { return m.lastFails }},
	} {
		add(c.name+"_count", c.what+".", c.count)
		add(c.name+"_rate_mean", c.what+", mean per second.", c.mean)
		add(c.name+"_rate_last", c.what+" per second, lately.", c.now)
	}
	add("elapsed_time_value", "Time since the start of the step, s.", func(m *metrics) float64 { return m.elapsed.Seconds() })
	return all
}()
