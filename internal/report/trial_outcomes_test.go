package report

import (
	"errors"
	"math"
	"testing"
	"time"

	"carronade/internal/host"
	"carronade/internal/verdict/find"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

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
	if d.ID != "f1234567" || d.Labels[RoleLabel] != AnswerRole || d.Labels["team"] != "blue" || s.Of.Labels[RoleLabel] != "confirm" || !d.Trust.OK || d.Check() != nil || d.Partial {
		t.Errorf("got %+v", d)
	}
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
