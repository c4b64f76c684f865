package run

import (
	"time"

	"carronade/internal/report"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/measure"
)

// fewestBeyond is the number of events beyond a percentile from which on it can end a run.
const fewestBeyond = 10

// An abort ends a run when a limit is broken (--abort-on-fail). After each interval it checks
// the limits on what was measured so far, in a run with steps on what the step has so far.
// Limits whose results are known only at the end (of the delivery, of a stall, of the system's
// metrics) do not end a run.
type abort struct {
	limits []workload.Limit
	form   report.Series
	delay  time.Duration // of the measurement, in which nothing ends the run
	steps  []load.Step
	stop   func()

	began   time.Duration // of the measurement
	begun   bool
	step    int
	sum     measure.Interval
	waiting report.Backlog // events that wait for an answer
	before  []bool         // which limits were broken after the interval before
	broken  string         // the limit that ended the run
}

// newAbort returns nil if broken limits do not end the run.
func (e *execution) newAbort(mode load.Mode, plan *load.Plan, stop func()) *abort {
	w := e.Workload
	if !w.Has("abort-on-fail") {
		return nil
	}
	a := &abort{
		limits: w.Limits(), delay: w.Duration("abort-on-fail"), stop: stop,
		form: report.Series{Mode: mode, Percentiles: w.Percentiles()},
	}
	if plan != nil {
		a.form.Unanswered = plan.Unanswered
		if len(plan.Steps) > 1 {
			a.steps = plan.Steps
		}
	}
	return a
}

// look checks the limits after an interval.
func (a *abort) look(s load.Snapshot) {
	// Intervals of the drain have rows of the measurement, but belong to no rate.
	if a.broken != "" || s.Phase == measure.Drain {
		return
	}
	for i := range s.Rows {
		iv := &s.Rows[i]
		a.waiting.Add(iv.End.Seconds(), &iv.Counts)
		if iv.Phase != measure.Measurement {
			continue
		}
		if !a.begun {
			a.begun, a.began = true, iv.End-iv.Within // a warm-up may end within the interval
		}
		for a.step < len(a.steps) && iv.Start-a.began >= a.steps[a.step].End {
			a.step++
			a.sum = measure.Interval{}
		}
		if a.sum.End == 0 {
			a.sum.Start = iv.Start
		}
		a.sum = measure.Join(a.sum, *iv)
	}
	if !a.begun || a.sum.End-a.began <= a.delay {
		return
	}
	rate := 0.0
	if a.step < len(a.steps) {
		rate = a.steps[a.step].Rate
	}
	all := a.sum
	if a.form.Mode == load.OpenLoop && !a.form.Unanswered {
		all.Censored = a.waiting.Ages(a.sum.Start.Seconds())
	}
	broken := make([]bool, len(a.limits))
	for i := range a.limits {
		l := &a.limits[i]
		n := all.Acked + all.Censored.Count()
		if l.Stat == workload.PercentileStat && float64(n)*(100-l.Percentile) < 100*fewestBeyond {
			continue
		}
		broken[i] = a.form.Broken(l, &all, rate)
		// A rate may be low in one interval because the generator did not run.
		late := l.Kind == workload.RateKind || l.Name == "target-share"
		if broken[i] && (!late || a.before != nil && a.before[i]) {
			a.broken = l.String()
			a.stop()
			return
		}
	}
	a.before = broken
}
