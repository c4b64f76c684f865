package report

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"carronade/internal/host"
	"carronade/internal/verdict/find"
	"carronade/internal/workload"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// limitsOf parses limits.
func limitsOf(t *testing.T, texts ...string) (out []workload.Limit) {
	t.Helper()
	for _, text := range texts {
		l := assert.Value(workload.ParseLimit(text))(t)
		out = append(out, l)
	}
	return out
}

// trialReport is the report of 4 intervals of 1 s with 100 events each, one of which has late
// events, and an answer after the end.
func trialReport(late uint64) *Document {
	d := &Document{ID: "abcd2345", Trust: measure.Trust{OK: true, Level: measure.Trusted}}
	all := measure.NewHistogram()
	for i := range 5 {
		h := measure.NewHistogram()
		iv := Interval{Phase: measure.Measurement, StartS: float64(2 + i), EndS: float64(3 + i)}
		switch i {
		case 4: // in the drain
			iv.Acked = 10
			h.RecordN(80*time.Millisecond, 10)
		case 3:
			iv.Offered, iv.Acked = 100, 90
			h.RecordN(time.Millisecond, 90)
		case 1:
			iv.Offered, iv.Acked = 100, 100
			h.RecordN(time.Millisecond, 100-late)
			h.RecordN(90*time.Millisecond, late)
		default:
			iv.Offered, iv.Acked = 100, 100
			h.RecordN(time.Millisecond, 100)
		}
		iv.Histograms = map[string]string{"response": h.EncodeHDR()}
		all.Merge(h)
		d.Intervals = append(d.Intervals, iv)
	}
	d.Totals.Offered, d.Totals.Sent, d.Totals.Acked, d.Totals.EventsPerS = 400, 400, 400, 100
	d.Response = measure.Summarize(all, nil, nil)
	return d
}

// An outcome says how far the generator may have affected its trial.
func TestTrialTrust(t *testing.T) {
	o := &find.Options{Times: TimeLimits(limitsOf(t, "p99<50ms"))}
	for level, want := range map[measure.Level]measure.Level{measure.Trusted: "", measure.Noisy: measure.Noisy, measure.NotTrusted: measure.NotTrusted} {
		for _, role := range []find.Role{find.Probe, find.Confirm} {
			d := trialReport(0)
			d.Trust = measure.Trust{OK: level != measure.NotTrusted, Level: level}
			assert.Equal(t, TrialOutcome(o, find.Trial{Role: role, Rate: 100, Measure: 4 * time.Second, Slot: time.Second}, d, nil, time.Second).Trust, want,
				"%s, %s", level, role)
		}
	}
}

// The slots of an outcome have the late events of a report, also those answered after the end.
func TestTrialOutcome(t *testing.T) {
	limits := limitsOf(t, "p99<50ms", "max<1s", "throughput>=90/s")
	o := &find.Options{Times: TimeLimits(limits)}
	assert.Must(t, len(o.Times) == 2 && o.Times[0].Quantile == 0.99 && o.Times[1].Quantile == 1, "got %+v", o.Times)
	trial := find.Trial{Role: find.Confirm, Rate: 100, Measure: 4 * time.Second, Slot: time.Second, Relax: time.Second}
	out := TrialOutcome(o, trial, trialReport(7), limits, 6*time.Second)
	assert.Must(t, len(out.Slots) == 4 && events(out.Slots) == 400 && out.Broken == "" && out.Generator == "" && out.Dead == "" && out.ReportID == "abcd2345",
		"got %+v", out)
	for i, want := range []uint64{0, 7, 0, 10} {
		got := out.Slots[i].Over
		assert.True(t, got[0] == want && got[1] == 0, "slot %d: got %v late, want %d and none", i, got, want)
	}
	assert.True(t, out.Slots[2].Waiting == 0 && out.Slots[3].Waiting == 10,
		"got %+v, want what waited at the end of the measurement, not of the drain", out.Slots)
	d := trialReport(0)
	d.Op = workload.RoundTrip // nothing was read
	out = TrialOutcome(o, trial, d, limits, 6*time.Second)
	assert.True(t, out.Slots[3].Waiting == 400, "got %+v, want all waiting for a consumer", out.Slots)
}

// The backlog of a trial is that of the consumer group which has read least, and the verdict names it.
func TestTrialOfGroups(t *testing.T) {
	limits := limitsOf(t, "end-to-end.p99<1s")
	o := &find.Options{Times: TimeLimits(limits)}
	d := trialReport(0)
	d.Op = workload.RoundTrip
	d.Groups = []Group{{Name: "billing", EventsPerS: 100}, {Name: "search", EventsPerS: 60}, {Name: "audit", EventsPerS: 100}}
	d.EndToEnd = d.Response
	for i := range d.Intervals {
		iv := &d.Intervals[i]
		iv.Consumed, iv.Groups = 260, []GroupInterval{{Consumed: 100}, {Consumed: 60}, {Consumed: 100}}
		iv.Histograms["end_to_end"] = iv.Histograms["response"]
	}
	trial := find.Trial{Role: find.Confirm, Rate: 100, Measure: 4 * time.Second, Slot: time.Second, Relax: time.Second}
	out := TrialOutcome(o, trial, d, limits, 6*time.Second)
	for i, want := range []uint64{40, 80, 120, 160} {
		assert.Equal(t, out.Slots[i].Waiting, want, "waiting in second %d", i)
	}
	v := o.Judge(out)
	assert.True(t, v.Result == find.Fail && v.Growing && v.Why == "the backlog of group search grows by 40/s", "%+v", v)
}

// What else ends a trial: limits on other results, failures, a generator that decides.
func TestTrialOutcomeOf(t *testing.T) {
	for _, tt := range []struct {
		name   string
		limits []string
		alter  func(*Document)
		result find.Result
		why    string
	}{
		{"a broken limit", []string{"p99<200ms", "throughput>=200/s"}, func(*Document) {}, find.Fail, "throughput"},
		{"a limit that the generator may have broken", []string{"p99<200ms", "throughput>=200/s"}, func(d *Document) { d.Trust = measure.Trust{Level: measure.NotTrusted} }, find.Invalid, "throughput"},
		{"failures", []string{"p99<200ms"}, func(d *Document) {
			d.Totals.Failed = 3
			d.Failures = []measure.Failure{{Class: "timeout"}}
		}, find.Fail, "3 of 400 events failed: timeout"},
		{"failures where drops are limited", []string{"max<200ms", "dropped=0"}, func(d *Document) { d.Totals.Failed = 3 }, find.Fail, "3 of 400 events failed"},
		{"failures that are not allowed", []string{"max<200ms", "failed=0"}, func(d *Document) { d.Totals.Failed = 3 }, find.Fail, "failed"},
		{"a backlog of a generator that is too slow", []string{"p99<200ms"}, func(d *Document) {
			for i := range 4 {
				d.Intervals[i].Acked = 10
			}
			d.Trust = measure.Trust{Level: measure.NotTrusted, Reasons: []string{"it fired late"}}
		}, find.Invalid, "not trusted: it fired late"},
		{"failures that are allowed", []string{"max<200ms", "failure-rate<5%"}, func(d *Document) { d.Totals.Failed = 3 }, find.Pass, ""},
		{"the generator decides", []string{"max<50ms"}, func(d *Document) {
			h := measure.NewHistogram()
			h.RecordN(time.Millisecond, 400)
			d.ResponseLower = measure.Summarize(h, nil, nil)
		}, find.Invalid, "what the generator may have added"},
		{"the generator is too slow", []string{"p99<200ms"}, func(d *Document) {
			d.Totals.Sent = 300
			d.Trust = measure.Trust{Level: measure.NotTrusted, Reasons: []string{"it fired late"}}
		}, find.Invalid, "it fired late"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			limits := limitsOf(t, tt.limits...)
			o := &find.Options{Times: TimeLimits(limits)}
			d := trialReport(2)
			tt.alter(d)
			trial := find.Trial{Role: find.Search, Rate: 100, Measure: 4 * time.Second, Slot: time.Second, Relax: time.Second}
			v := o.Judge(TrialOutcome(o, trial, d, limits, 6*time.Second))
			assert.True(t, v.Result == tt.result && strings.Contains(v.Why, tt.why), "got %+v, want %s", v, tt.result)
		})
	}
	limits := limitsOf(t, "p99<1s", "server.heap<5")
	o := &find.Options{Times: TimeLimits(limits)}
	out := TrialOutcome(o, find.Trial{Role: find.Search, Measure: time.Second, Slot: time.Second}, trialReport(0), limits, time.Second)
	assert.True(t, strings.Contains(out.Unclear, "no metrics of the server"), "got %+v", out)
	out = TrialOutcome(o, find.Trial{Role: find.Probe, Measure: time.Second}, trialReport(0), limits, time.Second)
	assert.True(t, strings.Contains(out.Unclear, "no metrics of the server"), "got %+v, want the first trial to show it", out)
	d := trialReport(0)
	d.System = &System{Died: true}
	assert.True(t, TrialOutcome(o, find.Trial{Role: find.Probe}, d, nil, time.Second).Dead != "", "the system that died is not seen")
}

func events(slots []find.Slot) (n uint64) {
	for i := range slots {
		n += slots[i].Events
	}
	return n
}

// stored is the report of a trial as the store has it.
func stored(role find.Role, late uint64) *Document {
	d := trialReport(late)
	d.Target, d.Op, d.RunID = "null://", "produce", "1"
	d.Labels = map[string]string{SearchLabel: "f1234567", RoleLabel: string(role), "team": "blue"}
	d.StartedAt = time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC)
	d.EndedAt = d.StartedAt.Add(7 * time.Second)
	for _, s := range [][2]string{{"rate", "100/s"}, {"for", "4s"}, {"warmup", "2s"}, {"interval", "1s"}, {"acks", "all"}} {
		d.Settings = append(d.Settings, Setting{Name: s[0], Value: s[1], Independent: true})
	}
	d.Workload = map[string]any{"target": "null://", "rate": "100/s", "for": "4s", "acks": "all"}
	return d
}

func sequence(ds ...*Document) func(func(*Document, error) bool) {
	return func(yield func(*Document, error) bool) {
		for _, d := range ds {
			if !yield(d, nil) {
				return
			}
		}
	}
}

// A trial is read back from its report, and judged by other limits than it was run for.
func TestTrialOutcomes(t *testing.T) {
	limits := limitsOf(t, "p99<85ms")
	o := &find.Options{Times: TimeLimits(limits)}
	partial := stored(find.Search, 0)
	partial.Partial = true
	answer := &Document{Search: &Search{}}
	out, last, err := TrialOutcomes(o, limits, sequence(stored(find.Search, 7), partial, answer, stored(find.Confirm, 0)))
	assert.Must(t, err == nil && len(out) == 2, "got %+v, %v", out, err)
	want := find.Trial{Role: find.Search, Rate: 100, Settle: 2 * time.Second, Measure: 4 * time.Second, Slot: time.Second}
	assert.True(t, out[0].Trial == want && out[0].Elapsed == 7*time.Second && out[1].Trial.Role == find.Confirm, "got %+v", out)
	assert.Equal(t, out[0].Slots[1].Over[0], 7, "events took longer than 85 ms")
	assert.True(t, last.Labels[RoleLabel] == "confirm" && last.Intervals == nil, "got %+v", last)
	limits = limitsOf(t, "end-to-end.p99<1s")
	o = &find.Options{Times: TimeLimits(limits)}
	var none *NoDataError
	_, _, err = TrialOutcomes(o, limits, sequence(stored(find.Search, 0)))
	assert.True(t, errors.As(err, &none) && none.Time == "end_to_end", "got %v", err)
	broken := errors.New("the store is gone")
	_, _, err = TrialOutcomes(o, limits, func(yield func(*Document, error) bool) { yield(nil, broken) })
	assert.True(t, errors.Is(err, broken), "got %v", err)
}

// The error names a report that is not a trial.
func TestTrialOf(t *testing.T) {
	for _, alter := range []func(*Document){
		func(d *Document) { d.Settings = nil },
		func(d *Document) { d.Settings[0].Value = "fast" },
		func(d *Document) { d.Settings[1].Value = "long" },
	} {
		d := stored(find.Search, 0)
		alter(d)
		_, err := trialOf(d)
		assert.ErrorHas(t, err, "report abcd2345 is not a trial of a search")
	}
}

// A trial of a search without limits says of which search it is.
func TestTrialOfWithoutLimits(t *testing.T) {
	reading := stored(find.Read, 0)
	over := stored(find.Search, 0)
	over.Settings[0].Name, over.Settings[0].Value = "concurrency", "8"
	for want, d := range map[string]*Document{"the rate of reading": reading, "a search over concurrency": over} {
		_, err := trialOf(d)
		assert.ErrorHas(t, err, want)
	}
}

// The report of a search has what its trials share, and the answer.
func TestSearchReport(t *testing.T) {
	limits := limitsOf(t, "p99<50ms", "max<1s")
	s := &Searched{
		ID: "f1234567", Limits: []string{"p99 < 50 ms", "max < 1 s"}, Began: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC), Ended: time.Date(2026, 3, 1, 9, 10, 0, 0, time.UTC),
		Options: find.Options{Times: TimeLimits(limits), Budget: time.Minute}, AtLeast: 800,
		Answer: &find.Answer{Ending: find.Found, Holds: 900, HoldsConfirmed: true, Fails: 920, FailsConfirmed: true, Trials: []find.Tried{{Report: "abcd2345"}}},
		Of:     stored(find.Confirm, 0),
	}
	s.Of.System = &System{Facts: map[string]any{"revision": "abc"}, PeakRSSBytes: 5}
	d := assert.Value(SearchReport(s))(t)
	assert.True(t, d.ID == "f1234567" && d.Labels[RoleLabel] == AnswerRole && d.Labels["team"] == "blue" && s.Of.Labels[RoleLabel] == "confirm" && d.Trust.OK && d.Check() == nil && !d.Partial,
		"got %+v", d)
	names := ""
	for _, one := range d.Settings {
		names += one.Name + "=" + one.Value + ";"
	}
	assert.Equal(t, names, "acks=all;slo=p99 < 50 ms, max < 1 s;", "settings")
	if w := d.Workload.(map[string]any); len(w) != 2 || d.System.PeakRSSBytes != 0 || d.System.Facts["revision"] != "abc" {
		t.Errorf("got %+v and %+v", w, d.System)
	}
	want := SearchLimit{Name: "max < 1 s", Of: "response", P: 100, Within: time.Second}
	w := d.Search.Within
	assert.True(t, len(w) == 2 && w[1] == want, "got %+v", w)
	s.Answer.Ending, s.Canceled = find.AtLeast, true
	d, _ = SearchReport(s)
	assert.True(t, !d.Trust.OK && d.Partial && d.ExitCode() == host.ExitInterrupted, "got %+v", d)
}

// The interval of a percentile is where the trial would just not fail and just hold.
func TestQuantiles(t *testing.T) {
	limits := limitsOf(t, "p99<50ms", "max<1s")
	o := &find.Options{Times: TimeLimits(limits)}
	trial := find.Trial{Role: find.Search, Rate: 100, Measure: 4 * time.Second, Slot: time.Second, Relax: time.Second}
	out := TrialOutcome(o, trial, trialReport(7), limits, time.Second)
	assert.Must(t, len(out.Times) == 3, "got %+v", out.Times)
	near := func(got, want time.Duration) bool { return math.Abs(got.Seconds()/want.Seconds()-1) < 0.02 }
	q := out.Times[0]
	assert.True(t, q.P == 50 && near(q.At, time.Millisecond), "p50: %+v", q)
	// 17 of 400 took 80 or 90 ms.
	if q := out.Times[1]; q.P != 99 || q.Of != "response" || !near(q.At, 90*time.Millisecond) || q.Least > q.At || q.Most < q.At {
		t.Errorf("p99: %+v", q)
	}
	q = out.Times[2]
	assert.True(t, q.P == 100 && near(q.At, 90*time.Millisecond), "max: %+v", q)
	d := trialReport(0)
	d.Intervals[0].Unknown = 100 // never answered: longer than everything
	d.Intervals[0].Acked = 0
	q = TrialOutcome(o, trial, d, limits, time.Second).Times[1]
	assert.True(t, near(q.At, 80*time.Millisecond), "p99 with lost events: %+v", q)
	d.Intervals = nil
	d.Trust.Level = measure.Trusted
	out = TrialOutcome(o, trial, d, limits, time.Second)
	assert.True(t, len(out.Times) == 0, "times of nothing: %+v", out.Times)
}

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
