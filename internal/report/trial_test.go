package report

import (
	"strings"
	"testing"
	"time"

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
	if len(out.Slots) != 4 || events(out.Slots) != 400 || out.Broken != "" || out.Generator != "" || out.Dead != "" || out.ReportID != "abcd2345" {
		t.Fatalf("got %+v", out)
	}
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
		}, find.Invalid, "the generator may be the cause: it fired late"},
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
	if out := TrialOutcome(o, find.Trial{Role: find.Probe, Measure: time.Second}, trialReport(0), limits, time.Second); !strings.Contains(out.Unclear, "no metrics of the server") {
		t.Errorf("got %+v, want the first trial to show it", out)
	}
	d := trialReport(0)
	d.System = &System{Died: true}
	assert.True(t, TrialOutcome(o, find.Trial{Role: find.Probe}, d, nil, time.Second).Dead != "",
		"the system that died is not seen")
}

func events(slots []find.Slot) (n uint64) {
	for i := range slots {
		n += slots[i].Events
	}
	return n
}
