package picture

import (
	"strings"
	"testing"

	"carronade/internal/report"
	"carronade/internal/verdict/fault"
	"carronade/test/testkit/assert"
)

// TestFaultMarks: a fault is shaded until it was mended, or until the limit holds again, and its
// moments have names.
func TestFaultMarks(t *testing.T) {
	d := measured("a", 20, 1)
	mark := func(kind, name string, at float64) fault.Mark { return fault.Mark{Kind: kind, Name: name, AtS: at} }
	stop, kill := mark("fault", "stop", 4), mark("fault", "kill", 10)
	d.Faults = &report.Faults{
		Marks: []fault.Mark{stop, mark("heal", "stop", 6), kill},
		Scores: []fault.Score{
			{Mark: stop, ObservedS: 6},
			{Mark: kill, ObservedS: 10, Whole: fault.Numbers{Back: &fault.Time{S: 3}}},
		},
	}
	f, ok := ByName(Of(d), "throughput")
	assert.Must(t, ok, "the throughput is missing")
	var shaded, moments []Mark
	for _, m := range f.Marks {
		switch {
		case m.Kind == Fault:
			shaded = append(shaded, m)
		case strings.HasPrefix(m.Text, "fault ") || strings.HasPrefix(m.Text, "heal "):
			moments = append(moments, m)
		}
	}
	if len(shaded) != 2 || shaded[0].From != 4 || shaded[0].To != 6 || shaded[1].From != 10 || shaded[1].To != 13 {
		t.Errorf("shaded: %+v", shaded)
	}
	assert.True(t, len(moments) == 3 && moments[0].From == 4 && moments[0].To == 4 && moments[0].Text == "fault stop",
		"moments: %+v", moments)
	assert.True(t, strings.Contains(f.Describe(), "A fault was there from 4"),
		"the description lacks the fault: %s", f.Describe())
}
