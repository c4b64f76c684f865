package report

import (
	"math"
	"testing"
	"time"

	"carronade/internal/verdict/find"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// Uses come from the gauges of a report and from what is known of the machine.
func TestTrialUses(t *testing.T) {
	d := trialReport(0)
	gauge := func(from, name string, mean float64) {
		d.Gauges = append(d.Gauges, Gauge{From: from, Name: name, Mean: &mean, Points: []Point{{AtS: 2}, {AtS: 4}, {AtS: 6}}})
	}
	gauge("system", "CPU", 1.2)
	gauge("system", "RSS", 1<<30)
	gauge("system", "GC pause time", 500)
	gauge("system", "kafka_server_KafkaRequestHandlerPool_RequestHandlerAvgIdlePercent", 0.25)
	gauge("host", "CPU", 3)
	gauge("host", "memory available", 2<<30)
	gauge("host", "memory pressure", 10)
	gauge("host", "I/O pressure", 20)
	gauge("host", "received", 25e6)
	gauge("host", "sent", 50e6)
	d.System = &System{Facts: map[string]any{"cpu_limit": 1.5, "memory_limit_bytes": int64(4 << 30)}}
	d.Host = map[string]any{"os": "linux", "cores": 4, "memory_bytes": 8 << 30, "network": []any{map[string]any{"mbit_per_s": 1000}}}
	d.Generator = Generator{CPUShare: 0.5, Busy: 0.6, BoundFull: 0.7, BoundFullMost: 0.9}
	want := map[string]float64{
		"processors of the system": 0.8, "memory of the system": 0.25, "collector of the system": 0.25,
		"kafka_server_KafkaRequestHandlerPool_RequestHandlerAvgIdlePercent (busy)": 0.75,
		"processors of this machine": 0.75, "memory of this machine": 0.75, "memory pressure of this machine": 0.1,
		"I/O pressure of this machine": 0.2, "network of this machine, received": 0.2, "network of this machine, sent": 0.4,
		"the generator's processors": 0.5, "the generator's busiest thread": 0.6, find.Window: 0.7, find.Busiest: 0.9,
	}
	check := func(want map[string]float64) {
		t.Helper()
		all := uses(d)
		assert.Equal(t, len(all), len(want), "uses %+v", all)
		for i := range all {
			w, ok := want[all[i].Resource]
			assert.True(t, ok && math.Abs((all[i].Used/all[i].Bound)-w) <= 1e-9, "got %+v, want %v", all[i], w)
		}
	}
	check(want)
	d.System, d.Gauges, d.Host = nil, nil, nil
	check(map[string]float64{"the generator's processors": 0.5, "the generator's busiest thread": 0.6, find.Window: 0.7, find.Busiest: 0.9})
	d.Service = &measure.Summary{Count: 1, Percentiles: []measure.Value{{P: 50, D: 1500 * time.Microsecond}}}
	out := TrialOutcome(&find.Options{}, find.Trial{Role: find.Search, Measure: time.Second, Slot: time.Second}, d, nil, time.Second)
	assert.True(t, out.Service == 1500*time.Microsecond && len(out.Uses) == 4, "got %+v", out)
}

// The limit of this process is that of the system only if the run started it.
func TestTrialUsesOfALimitedMachine(t *testing.T) {
	mean := 1.0
	d := trialReport(0)
	d.Gauges = []Gauge{{From: "system", Name: "CPU", Mean: &mean}}
	d.Host = map[string]any{"os": "linux", "cores": 4, "cpu_limit": 2}
	for _, tt := range []struct {
		settings []Setting
		bound    float64
	}{
		{nil, 4},
		{[]Setting{{Name: "system-pid", Value: "12"}}, 4},
		{[]Setting{{Name: "system-cmd", Value: "server"}}, 2},
	} {
		d.Settings = tt.settings
		if all := uses(d); len(all) == 0 || all[0].Resource != "processors of the system" || all[0].Bound != tt.bound {
			t.Errorf("%v: got %+v, want %v processors", tt.settings, all, tt.bound)
		}
	}
}
