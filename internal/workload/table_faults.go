package workload

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"carronade/internal/verdict/fault"
	"carronade/protocol"
	"carronade/units"
)

const groupFaults = "faults"

// faultTable has the settings about faults, the same for every kind.
func faultTable() []Setting {
	return []Setting{
		{
			Option: protocol.Option{Name: "fault", Type: protocol.List, Group: groupFaults, Independent: true, Help: "a fault that the run makes, such as 60s:stop=leader,10s (repeatable; see docs/faults.md)", Word: "FAULT"},
			check:  checkFault,
		},
		{
			Option: protocol.Option{Name: "at", Type: protocol.List, Group: groupFaults, Independent: true, Help: "when to run the command of --exec: TIME, or TIME:heal for a command that heals a fault (repeatable)", Word: "TIME"},
			check:  checkMoment,
		},
		{
			Option: protocol.Option{Name: "exec", Type: protocol.List, Group: groupFaults, Independent: true, Help: "a command for each --at, in the same order; it needs --allow-exec", Word: "CMD", Show: showCommand},
		},
		{
			Option:   protocol.Option{Name: "allow-exec", Type: protocol.Bool, Group: groupFaults, Help: "run the commands of --exec, also those in a file or a report"},
			FlagOnly: true,
		},
		{
			Option: protocol.Option{Name: "marks", Type: protocol.Bool, Group: groupFaults, Help: "take marks while it runs (carronade mark), and score what follows each"},
			Aside:  true,
		},
		{
			Option: protocol.Option{Name: "fault-ceiling", Type: protocol.Rate, Group: groupFaults, Help: "what the system is known to take, for predictions (default: as seen while it catches up)"},
			Aside:  true,
			NotOps: notReading,
			check:  checkRate,
		},
	}
}

// TakesMarks reports whether marks can be put on the time axis of the run, so that what scores need
// is recorded.
func (w *Workload) TakesMarks() bool {
	return w.Bool("marks") || w.Has("fault") || w.Has("exec") || w.LimitsFaults()
}

// LimitsFaults reports whether a limit is on the score of a fault.
func (w *Workload) LimitsFaults() bool { return slices.ContainsFunc(w.List("slo"), limitsFaults) }

// FaultCeiling is the given capacity of the system, events/s; 0 without one.
func (w *Workload) FaultCeiling() float64 { return parsed(w, "fault-ceiling", units.ParseRate) }

func checkFault(text string) error {
	_, err := fault.Parse(text)
	if err == nil {
		return nil
	}
	hint := fault.Form
	if errors.Is(err, fault.ErrAction) {
		hint = "run a tool of your own for other faults: --at 60s --exec CMD --at 70s:heal --exec CMD (see docs/faults.md)"
	}
	return &protocol.Error{Err: fmt.Errorf("%q: %w", text, err), Hint: hint}
}

func checkMoment(text string) error {
	if _, err := fault.ParseMoment(text); err != nil {
		return &protocol.Error{Err: err, Hint: "such as --at 60s --exec 'systemctl stop broker' --at 70s:heal --exec 'systemctl start broker'"}
	}
	return nil
}

// Faults are those that the run makes, in the order given.
func (w *Workload) Faults() []fault.Fault { return parsedList(w, "fault", fault.Parse) }

// Moments are when the commands of --exec run, one for each.
func (w *Workload) Moments() []fault.Moment { return parsedList(w, "at", fault.ParseMoment) }

// parsedList parses the values of a setting that were checked when they were set.
func parsedList[T any](w *Workload, name string, parse func(string) (T, error)) (out []T) {
	for _, text := range w.List(name) {
		v, err := parse(text)
		if err != nil {
			panic("workload: " + name + " was not checked: " + err.Error())
		}
		out = append(out, v)
	}
	return out
}

// faultConflicts checks the settings of faults against each other, and against the end of the run.
func (w *Workload) faultConflicts(fault func(name, hint, format string, args ...any)) {
	if n, m := len(w.List("at")), len(w.List("exec")); n != m {
		name, other, a, b := "at", "exec", n, m
		if n == 0 {
			name, other, a, b = "exec", "at", m, n
		}
		fault(name, "give an --exec for each --at", "it is given %s, and --%s %s", units.Plural(a, "time"), other, units.Plural(b, "time"))
		return
	}
	if !w.Has("fault") && !w.Has("exec") {
		return
	}
	p, err := w.Plan()
	if err != nil {
		return // the check of the schedule reports it
	}
	end := p.Measurement.Time
	if end > 0 {
		end += p.WarmupTime
	}
	if p.Schedule != nil {
		if e := p.Schedule.End(); end == 0 || e < end {
			end = e
		}
	}
	late := func(name string, at time.Duration) {
		if end > 0 && at >= end {
			fault(name, "the times of faults count from the start of the run, with its warm-up", "%s is not before the end of the run, which is %s long", at, end)
		}
	}
	all := w.Faults()
	for i := range all {
		late("fault", all[i].At)
		for k := range i {
			if all[i].Overlaps(&all[k]) {
				fault("fault", "the end of one would undo the other: let the second begin later", "%s at %s and %s at %s overlap",
					all[k].String(), units.FormatDuration(all[k].At), all[i].String(), units.FormatDuration(all[i].At))
				return
			}
		}
	}
	for _, m := range w.Moments() {
		late("exec", m.At)
	}
}

// ErrExec is the error of a workload that would run commands without being allowed to.
var ErrExec = errors.New("the workload runs commands (--exec), which was not allowed")
