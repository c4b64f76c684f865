package workload

import (
	"slices"

	"carronade/target"
	"carronade/units"
)

const groupFaults = "faults"

// faultTable has the settings about faults, the same for every kind.
func faultTable() []Setting {
	return []Setting{
		{
			Option: target.Option{Name: "marks", Type: target.Bool, Group: groupFaults, Help: "take marks while it runs (carronade mark), and score what follows each"},
			Aside:  true,
			NotOps: notReading,
		},
		{
			Option: target.Option{Name: "fault-ceiling", Type: target.Rate, Group: groupFaults, Help: "what the system is known to take, for predictions (default: as seen while it catches up)"},
			Aside:  true,
			NotOps: notReading,
			check:  checkRate,
		},
	}
}

// TakesMarks reports whether marks can be put on the time axis of the run, so that what scores need
// is recorded.
func (w *Workload) TakesMarks() bool {
	return w.Bool("marks") || slices.ContainsFunc(w.List("slo"), limitsFaults)
}

// FaultCeiling is the given capacity of the system, events/s; 0 without one.
func (w *Workload) FaultCeiling() float64 { return parsed(w, "fault-ceiling", units.ParseRate) }
