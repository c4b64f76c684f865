package arch

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
)

// A definition of the measurement stands in one place. Where the compiler cannot refuse a second one,
// a pattern finds it.
var definitions = []struct {
	what    string
	pattern *regexp.Regexp
	in      []string // the files that may have it
}{
	{"the send delay is computed by load.Passage", regexp.MustCompile(`(?i)\bsent(first\(\))? ?- ?max\([^)]*\.(due|ready|free|room)\b`), []string{"load/times.go"}},
	{"the counters are listed by measure.CountsOf", regexp.MustCompile(`(?s)\bOffered\b.{0,1000}\bRetries\b.{0,500}\bAckedBytes\b`), []string{"measure/counts.go"}},
	{"the percentiles of reports are listed by measure.PercentilesOf", regexp.MustCompile(`\{(50, 90, |50, 99, |"p?50", "p?9[059]", "p?9)`), []string{"internal/live/frame_recorder.go"}}, // a frame is small: it has three
	{"a run begins to watch, and waits for its end, in internal/run/life.go", regexp.MustCompile(`:?= newGaugeReader\(|\be\.startKeeping\(|<-died:\n\t+(if )?died = nil`), []string{"internal/run/life.go"}},
	{"an error with a hint is advice.Error", regexp.MustCompile(`type \w*[eE]rror struct \{[^}]*\b[hH]int\b`), []string{"internal/advice/advice.go"}},
	{"rows become Markdown and CSV in layout.Table", regexp.MustCompile(`csv\.NewWriter|"\| ?-{3}|" ?\| "\) \+ " ?\|`), []string{
		"internal/layout/table_forms.go",
		"internal/report/export/csv.go", "internal/report/export/endtoend.go", // a row after the other: a series may not fit the memory
		"internal/serve/shell/reports.go", // hey-apm's columns
	}},
	{"results are listed by workload.Results", regexp.MustCompile(`\{(Name: )?"(throughput|lost|failure.(rate|share)|longest.stall|index.share|(max_)?rss)",[^\n]*\bKind|case "(failure-rate|target-share|index-share)"|"(failure-rate|target-share|lost|index-share)": +[a-zA-Z]`), []string{"internal/workload/results.go", "internal/report/results.go"}},
}

// checkOnce returns a finding for each definition that a Go file repeats.
func checkOnce(name string, src []byte) (findings []Finding) {
	if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "test/") {
		return nil
	}
	for _, d := range definitions {
		if slices.Contains(d.in, name) {
			continue
		}
		for _, at := range d.pattern.FindAllIndex(src, -1) {
			findings = append(findings, Finding{name, bytes.Count(src[:at[0]], []byte("\n")) + 1, d.what + ", and nowhere else: use it"})
		}
	}
	return findings
}
