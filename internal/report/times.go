package report

import (
	"slices"

	"carronade/measure"
)

// A Time is one of the times that a run has, and what was measured of it.
type Time struct {
	Name  string // in fields, files and flags: "end_to_end"
	Title string // for people: "end to end"
	Of    string // what has it: "an event", "a shot"
	Main  bool   // it is of the system, and what people ask for first

	Sum *measure.Summary // nil: there is no such number in this run
}

// times are all of them, in the order in which people ask.
var times = []struct {
	Time
	of  func(*Times) *measure.Summary
	row func(*Interval) *measure.Summary // nil: intervals have a histogram of it alone
}{
	{Time{Name: "response", Title: "response", Of: "an event", Main: true}, func(t *Times) *measure.Summary { return t.Response }, func(iv *Interval) *measure.Summary { return iv.Response }},
	{Time{Name: "service", Title: "service", Of: "a shot", Main: true}, func(t *Times) *measure.Summary { return t.Service }, func(iv *Interval) *measure.Summary { return iv.Service }},
	{Time{Name: "end_to_end", Title: "end to end", Of: "an event", Main: true}, func(t *Times) *measure.Summary { return t.EndToEnd }, func(iv *Interval) *measure.Summary { return iv.EndToEnd }},
	{Time{Name: "send_delay", Title: "send delay", Of: "an event"}, func(t *Times) *measure.Summary { return t.SendDelay }, func(iv *Interval) *measure.Summary { return iv.SendDelay }},
	{Time{Name: "gather", Title: "gather", Of: "an event"}, func(t *Times) *measure.Summary { return t.Gather }, nil},
	{Time{Name: "held", Title: "held", Of: "a shot"}, func(t *Times) *measure.Summary { return t.Held }, nil},
	{Time{Name: failedService, Title: "failed service", Of: "a shot"}, func(t *Times) *measure.Summary { return t.FailedService }, nil},
}

// failedService stands with the failures, where the text has a place for them.
const failedService = "failed_service"

// All are the times of the hold, of a step or of a phase, in the order in which
// people ask for them.
func (t *Times) All() []Time {
	out := make([]Time, len(times))
	for i := range times {
		out[i] = times[i].Time
		out[i].Sum = times[i].of(t)
	}
	return out
}

// Measured are those of All that something was counted for.
func (t *Times) Measured() []Time {
	return slices.DeleteFunc(t.All(), func(t Time) bool { return t.Sum.IsEmpty() })
}

// TimeNames are the names of all times, the Main ones first.
func TimeNames() []string {
	names := make([]string, len(times))
	for i := range times {
		names[i] = times[i].Name
	}
	return names
}

// named returns a time by the name of its histogram.
func (t *Times) named(name string) *measure.Summary {
	for i := range times {
		if times[i].Name == name {
			return times[i].of(t)
		}
	}
	return nil
}

// Time returns a time of the interval by its name; nil where the run has no such
// number, or intervals have no summary of it.
func (iv *Interval) Time(name string) *measure.Summary {
	for i := range times {
		if times[i].Name == name && times[i].row != nil {
			return times[i].row(iv)
		}
	}
	return nil
}
