package export

import (
	"encoding/csv"
	"errors"
	"strings"
	"testing"
	"time"

	"carronade/internal/report"
	"carronade/internal/verdict/find"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// searched is the report of a search.
func searched() *report.Document {
	return &report.Document{
		Schema: report.SearchSchema, ID: "f1234567", Target: "null://", Op: "produce", Mode: report.Searching, Trust: measure.Trust{OK: true, Level: measure.Trusted},
		Search: &report.Search{Limits: []string{"p99 < 50 ms"}, AtLeast: 900, Answer: &find.Answer{
			Ending: find.Found, Holds: 948, HoldsConfirmed: true, Fails: 997, FailsConfirmed: true,
			Trials: []find.Tried{
				{Trial: find.Trial{Role: find.Probe, Concurrency: 8, Measure: 5 * time.Second}, Achieved: 900, Report: "abcd2345"},
				{
					Trial: find.Trial{Role: find.Confirm, Rate: 948, Settle: time.Second, Measure: time.Minute}, Achieved: 947, Report: "abcd2346",
					Verdict: &find.Verdict{Result: find.Pass, Why: "0.3 % | late", Share: 0.003, Least: 0.002, Most: 0.005},
					Times:   []find.Quantile{{Of: "response", P: 50, At: time.Millisecond}, {Of: "response", P: 99, At: 30 * time.Millisecond, Least: 20 * time.Millisecond, Most: 40 * time.Millisecond}},
				},
			},
		}},
	}
}

// CSV has a row for each trial and percentile, all of the same length.
func TestSearchCSV(t *testing.T) {
	rows, err := csv.NewReader(strings.NewReader(written(t, "csv", Options{}, searched(), searched()))).ReadAll()
	assert.OK(t, err)
	assert.Must(t, len(rows) == 1+2*3, "%d rows", len(rows))
	assert.Equal(t, strings.Join(rows[3], ","),
		"f1234567,2,confirm,948,0,1,60,947,abcd2346,holds,0.3 % | late,0.003,0.002,0.005,response,99,30000,20000,40000")
	var missing *MissingError
	run := document(t, nil)
	for _, ds := range [][]*report.Document{{searched(), run}, {run, searched()}} {
		err := Write(&strings.Builder{}, "csv", Of(ds...), Options{})
		assert.True(t, errors.As(err, &missing), "a search beside a run: %v", err)
	}
}

func TestSearchMarkdown(t *testing.T) {
	got := written(t, "markdown", Options{}, searched())
	assert.Has(t, got, "## Ceiling of null://", "**ceiling 948 to 997/s", "### Trials", `0.3 % \| late`)
	assert.True(t, !strings.Contains(got, "### Events"), "it has counts:\n%s", got)
}

func TestSearchJUnit(t *testing.T) {
	got := written(t, "junit", Options{}, searched())
	assert.Has(t, got, `tests="2" failures="0" errors="0"`, `testcase name="at-least"`, `name="answer" value="ceiling 948 to 997/s`)
	assert.True(t, !strings.Contains(got, "throughput"), "it has a throughput:\n%s", got)
	broken := searched()
	broken.Search.AtLeast = 960
	got = written(t, "junit", Options{}, broken)
	assert.True(t, strings.Contains(got, `failures="1"`), "got\n%s", got)
}
