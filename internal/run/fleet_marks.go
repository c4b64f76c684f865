package run

import (
	"time"

	"carronade/internal/report"
	"carronade/internal/verdict/fault"
	"carronade/load"
)

// fleetMarks take the marks of a run that several generators make. What scores need stays with
// those: the marks are in the report without scores. Nil fleetMarks do nothing.
type fleetMarks struct {
	Marker
	plan *load.Plan
}

// newFleetMarks returns nil if the run takes no marks.
func (e *execution) newFleetMarks(plan *load.Plan) *fleetMarks {
	if !e.Workload.TakesMarks() {
		return nil
	}
	rec := fault.NewRecorder(faultLimit, 1, 1, func(int32) int { return 0 })
	return &fleetMarks{Marker: Marker{e: e, rec: rec}, plan: plan}
}

// begin takes marks from now on; the run begins at a time that may be still to come.
func (m *fleetMarks) begin(at time.Time) {
	if m == nil {
		return
	}
	m.mu.Lock()
	m.began = at
	m.mu.Unlock()
	if m.e.Marks != nil {
		m.e.Marks(&m.Marker)
	}
}

// report returns the marks. The generators' clocks may be apart from this one by skew.
func (m *fleetMarks) report(skew time.Duration) *report.Faults {
	if m == nil {
		return nil
	}
	m.end()
	limit, budget := termsOf(m.e.Workload.Limits(), m.plan.Schedule != nil)
	f := &report.Faults{LimitS: limit.Seconds(), Budget: budget, Marks: m.rec.Marks(), Scores: []fault.Score{}}
	for i := range f.Marks {
		f.Marks[i].BoundS += skew.Seconds()
	}
	if len(f.Marks) == 0 {
		f.Marks = []fault.Mark{}
		return f
	}
	f.Notes = []string{"marks of a fleet have no scores: its agents keep no single answers"}
	return f
}
