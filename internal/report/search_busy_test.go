package report

import (
	"math"
	"strings"
	"testing"
	"time"

	"carronade/internal/host"
	"carronade/internal/verdict/find"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// What other programs used is what neither the generator nor the system that was watched did, with what
// was stolen.
func TestOthersOfATrial(t *testing.T) {
	d := trialReport(0)
	d.Totals.ElapsedS = 10
	d.Host = map[string]any{"os": "linux", "cores": 4}
	d.Generator.CPUS = 5
	gauge := func(from, name string, mean, most float64) {
		g := Gauge{From: from, Name: name, Mean: &mean, Max: &most}
		for i := range 45 { // of 100 ms; one second is busy, and a tenth of another is more so
			p := Point{AtS: 0.05 + float64(i)/10, Value: mean}
			switch {
			case i >= 20 && i < 30:
				p.Value = most + 0.5*float64(1-2*(i%2))
			case i == 5:
				p.Value = 4
			}
			g.Points = append(g.Points, p)
		}
		d.Gauges = append(d.Gauges, g)
	}
	gauge("host", "CPU", 2.5, 3.5)
	gauge("host", "steal", 5, 10)
	gauge("system", "CPU", 1.2, 2)
	limits := limitsOf(t, "p99<50ms")
	for _, role := range []find.Role{find.Probe, find.Search} {
		out := TrialOutcome(&find.Options{Times: TimeLimits(limits)}, find.Trial{Role: role, Rate: 100, Measure: 4 * time.Second, Slot: time.Second}, d, limits, time.Second)
		if u := out.Others; math.Abs(u.Used-1) > 1e-9 || u.Bound != 4 || math.Abs(out.OthersMost-2) > 1e-9 {
			t.Errorf("%s: got %+v, at most %v", role, u, out.OthersMost)
		}
	}
	d.Gauges = nil
	u, most := others(d)
	assert.True(t, u.Bound == 0 && most == 0, "got %+v, %v of an unknown machine", u, most)
}

// The report of a search that a busy machine ended is not trusted, and says so.
func TestReportOfABusyMachine(t *testing.T) {
	const why = "this machine is too busy to decide (other programs use 1.9 of 2 processors)"
	d, err := SearchReport(&Searched{
		ID: "f1234567", Limits: []string{"p99 < 50 ms"}, Of: stored(find.Confirm, 0),
		Answer: &find.Answer{Ending: find.Busy, Why: why, Holds: 900, HoldsConfirmed: true, Trials: []find.Tried{{Report: "abcd2345"}}},
	})
	assert.OK(t, err)
	assert.True(t, !d.Trust.OK && d.Trust.Level == measure.NotTrusted && d.ExitCode() == host.ExitUntrusted, "got %+v, exit code %d", d.Trust, d.ExitCode())
	assert.True(t, strings.HasPrefix(d.Headline(), "no confirmed ceiling (p99 < 50 ms): "+why+"; 900/s holds; "), "got %q", d.Headline())
	v := d.Search.verdicts()[0]
	assert.True(t, v.Mark == Bad && v.Label == "too busy" && v.Texts[0] == why, "got %+v", v)
}
