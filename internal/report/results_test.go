package report

import (
	"fmt"
	"testing"

	"carronade/internal/verdict/fault"
	"carronade/internal/workload"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// TestResultsHaveOneValue: a result is a field of the report or is computed, and nothing else is computed.
func TestResultsHaveOneValue(t *testing.T) {
	names := map[string]bool{}
	for _, r := range workload.Results() {
		assert.True(t, !names[r.Name] && !names[r.Field], "%s is there twice", r.Name)
		names[r.Name], names[r.Field] = true, true
		assert.True(t, (r.Of != "") != (computed[r.Name] != nil), "%s: in the report it is %q, and computed: %t", r.Name, r.Of, computed[r.Name] != nil)
	}
	for name := range computed {
		assert.True(t, names[name], "%s is computed, and not in the table", name)
	}
	assert.Equal(t, len(fieldsOf()) > 0, true, "fields of the report")
}

// TestEveryResultCanBeLimited: each result of a run that sends, and each of one that reads, decides a limit.
func TestEveryResultCanBeLimited(t *testing.T) {
	share, cores := 0.99, 12.5
	sends := limited()
	sends.Totals.InFlightPeak, sends.Totals.Answered, sends.Totals.Batches = 9, 100, 100
	sends.System.EventsPerCPUS, sends.System.Efficiency = &cores, &cores
	sends.System.GCPauses, sends.System.GCPauseS, sends.System.GCPauseMaxS = 3, 0.1, 0.05
	sends.Indexed = &Indexed{Docs: 5, Share: &share}
	sends.Ledger.Committed = 1
	sends.Freezes.Longest = []Freeze{{LengthS: 0.02}}
	sends.Faults = &Faults{Scores: []fault.Score{{Whole: fault.Numbers{Blackout: &fault.Time{S: 1e-4}, Back: &fault.Time{S: 1e-4}}}}}
	sends.Backlog = &ReadBacklog{State: BacklogDrained, BuildS: &cores, DrainS: &cores, MostEvents: 5, EventsPerS: 2}
	sends.Phases[0].EndS = 20
	for i := range 20 {
		iv := Interval{Phase: measure.Measurement, StartS: float64(i), EndS: float64(i + 1), LagEvents: 5, Groups: []GroupInterval{{}}}
		sends.Intervals = append(sends.Intervals, iv)
	}
	reads := *sends
	reads.Totals.RateOf, reads.Totals.Consumed, reads.Totals.FetchS = RateConsumed, 1000, 2
	reads.Groups = []Group{{Name: "g-1", EventsPerS: 2}}
	for _, r := range workload.Results() {
		text := r.Name
		if r.Kind != workload.VerdictKind {
			text = fmt.Sprintf("%s>=1%s", r.Name, map[workload.LimitKind]string{
				workload.DurationKind: "ms", workload.RateKind: "/s", workload.ShareKind: "%", workload.SizeKind: "MiB", workload.SpeedKind: "B/s",
			}[r.Kind])
			if r.Better == workload.Less {
				text = r.Name + "<=" + text[len(r.Name)+2:]
			}
		}
		l := assert.Value(workload.ParseLimit(text))(t)
		d := sends
		if r.Needs == workload.NeedsReading {
			d = &reads
		}
		c := d.CheckLimits([]workload.Limit{l})[0]
		assert.True(t, c.Found != nil || r.Kind == workload.VerdictKind && !c.CannotTell, "%s: %s", text, c.Text)
	}
}
