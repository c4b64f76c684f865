package reporttest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"carronade/internal/report"
	"carronade/load"
	"carronade/measure"
)

// epoch is the start of the first report of the suite.
var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// regions are the regions of the suite's runs, alternating.
var regions = []string{"north", "quay", "south"}

// Head makes what is known of a run before it measures: report n of the suite,
// begun n minutes after the first. The same n makes the same report.
func Head(n int) *report.Document {
	r := rand.New(rand.NewPCG(uint64(n), 1)) //nolint:gosec // numbers for tests
	runID := r.Uint64()
	rate := []string{"10k/s", "50k/s", "100k/s"}[n/len(regions)%3]
	d := &report.Document{
		Schema: report.Schema, ID: report.IDOf(runID), RunID: fmt.Sprint(runID), Version: "devel go1.26.8 linux/amd64",
		Target: "kafka://127.0.0.1:9092/orders", Op: "produce", Mode: load.OpenLoop,
		Labels: map[string]string{"region": regions[n%len(regions)], "team": "ingest"}, Note: fmt.Sprintf("run %d of the suite", n),
		Repetition: 1, Repetitions: 1,
		StartedAt: epoch.Add(time.Duration(n) * time.Minute), EndedAt: epoch.Add(time.Duration(n) * time.Minute),
		Trust:  measure.Trust{OK: true, Reasons: []string{}, Notes: []string{}},
		Checks: []report.Check{}, Problems: []string{}, Warnings: []string{},
		Workload: map[string]any{"target": "kafka://127.0.0.1:9092/orders", "rate": rate, "for": "1m", "seed": "18446744073709551557"},
		Steps:    []report.Phase{}, Phases: []report.Phase{}, Gauges: []report.Gauge{}, Intervals: []report.Interval{},
		Failures: []measure.Failure{}, Classes: map[string]uint64{}, Hosts: []any{}, Logs: []load.LogResult{}, LagEvents: map[string]int64{},
		Host:  map[string]any{"name": "lab-1", "os": "linux", "cpu": "a processor of 2.4 GHz", "cores": 8, "memory_bytes": 34359738368},
		Facts: map[string]any{"topic": "orders", "partitions": 12, "replicas": 3, "brokers": []any{map[string]any{"id": 1, "version": "4.1"}, map[string]any{"id": 2, "version": "4.1"}}},
	}
	d.Totals.RateOf = report.RateAcked
	for _, s := range []struct{ name, kind, value string }{
		{"target", "string", "kafka://127.0.0.1:9092/orders"},
		{"op", "string", "produce"},
		{"rate", "rate", rate},
		{"for", "duration", "1m"},
		{"warmup", "duration", "5s"},
		{"size", "size", "1KiB"},
		{"max-in-flight", "count", "1000"},
		{"acks", "string", "all"},
		{"linger", "duration", "5ms"},
		{"compression", "string", "lz4"},
		{"batch-size", "size", "256KiB"},
		{"seed", "string", "18446744073709551557"},
		{"clients", "count", "4"},
		{"verify", "bool", "false"},
		{"label", "list", "region=" + regions[n%len(regions)]},
	} {
		d.Settings = append(d.Settings, report.Setting{Name: s.name, Type: s.kind, Value: s.value, Independent: s.name != "label" && s.name != "seed"})
	}
	return d
}

// Interval makes interval i of report n, a second long.
func Interval(n, i int) report.Interval {
	r := rand.New(rand.NewPCG(uint64(n), uint64(i)+2)) //nolint:gosec // numbers for tests
	h := measure.NewHistogram()
	for range 2000 {
		h.Record(time.Duration(r.ExpFloat64() * float64(3*time.Millisecond)))
	}
	c := measure.Counts{Offered: 10_000, Sent: 10_000, Acked: 10_000, Batches: 2000, Answered: 2000, Bytes: 10_240_000, AckedBytes: 10_240_000, WireBytes: 5_000_000 + r.Uint64N(1e6)}
	text := h.EncodeHDR()
	return report.Interval{
		Phase: measure.Measurement, StartS: float64(i), EndS: float64(i + 1), Counts: c, WithinS: 1, Arrived: 10_000, EventsPerS: 10_000, InFlight: r.Uint64N(100),
		Response: measure.Summarize(h, nil, nil), Service: measure.Summarize(h, nil, nil), SendDelay: measure.Summarize(h, nil, nil),
		Histograms: map[string]string{"response": text, "service": text, "send_delay": text},
	}
}

// Document makes report n of the suite, complete and sealed, with this many
// intervals.
func Document(n, intervals int) *report.Document {
	rows := make([]report.Interval, intervals)
	for i := range rows {
		rows[i] = Interval(n, i)
	}
	return Complete(Head(n), rows)
}

// Complete makes the report of a head and its intervals.
func Complete(head *report.Document, rows []report.Interval) *report.Document {
	d := report.Assemble(head, rows)
	d.Stopped, d.Partial = load.ByTime, false
	d.Trust = measure.Trust{OK: true, Reasons: []string{}, Notes: []string{}}
	d.Steady = measure.Steady{Known: true, OK: true}
	d.Warnings = []string{strings.Repeat("w", len(rows)%3+1)}
	if err := d.Seal(); err != nil {
		panic("reporttest: " + err.Error()) // it has only plain values
	}
	return d
}
