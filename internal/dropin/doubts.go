package dropin

import (
	"fmt"
	"io"
	"strings"

	"carronade/internal/report"
)

// WriteWarnings writes what makes a run doubtful, for tools whose own lines have no
// place for it; that it is not trusted is one line. The report's warnings were already printed during the run.
func WriteWarnings(w io.Writer, d *report.Document) {
	const distrust = "not to be trusted: "
	var lines []string
	at := -1 // of the line about trust
	for _, text := range d.Against() {
		if reason, ok := strings.CutPrefix(text, distrust); ok && at >= 0 {
			lines[at] += "; " + reason
			continue
		} else if ok {
			at = len(lines)
		}
		lines = append(lines, text)
	}
	for _, text := range lines {
		fmt.Fprintf(w, "warning: %s\n", text)
	}
}

// WriteProblems writes the records that failed, then the warnings, for Kafka's
// tools.
func WriteProblems(w io.Writer, d *report.Document) {
	for _, f := range d.Failures {
		fmt.Fprintf(w, "%s: %s (%d records)\n", f.Class, f.Text, f.Events)
	}
	WriteWarnings(w, d)
}
