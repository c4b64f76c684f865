package cli

import (
	"errors"
	"testing"
	"time"

	"carronade/internal/compat"
	"carronade/load"
	"carronade/measure"
)

// The report of a load on topics says how many there were to be, where there was
// a number, and cannot be replayed.
func TestTopicReport(t *testing.T) {
	for _, tt := range []struct {
		name string
		load compat.TopicLoad
		want any // count
	}{
		{"by name", compat.TopicLoad{Op: "delete", Names: []string{"a", "b"}}, 2},
		{"made as they go", compat.TopicLoad{Op: "create", Next: func() string { return "a" }, Times: 7}, 7},
		{"one read again", compat.TopicLoad{Op: "read", Names: []string{"a"}, Times: 7}, 7},
		{"without end", compat.TopicLoad{Op: "read", Names: []string{"a"}, Times: -1, For: time.Second}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := topicReport(&compat.TopicResult{Target: "kafka://127.0.0.1:9092", Result: &load.Result{}}, tt.load)
			if got := d.Workload.(map[string]any)["count"]; got != tt.want {
				t.Errorf("count is %v, want %v", got, tt.want)
			}
			var said *words
			if _, err := replayed(d); !errors.As(err, &said) || said.Hint == "" {
				t.Errorf("replayed: %v", err)
			}
		})
	}
}

// The generator of such a load is judged like that of any other.
func TestTopicReportIsJudged(t *testing.T) {
	slow := measure.NewHistogram()
	slow.Record(2 * time.Second)
	late := &load.Result{Mode: load.OpenLoop, Hold: measure.Tally{Name: "hold", End: time.Second, Answers: 3, Set: measure.Set{Lag: slow}}}
	d := topicReport(&compat.TopicResult{Target: "kafka://127.0.0.1:9092", Result: late}, compat.TopicLoad{Op: "list", Rate: 1})
	if d.Trust.OK || len(d.Trust.Reasons) != 1 || d.Totals.AnswersPerS != 3 {
		t.Errorf("got %+v, %g answers/s", d.Trust, d.Totals.AnswersPerS)
	}
}
