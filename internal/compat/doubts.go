package compat

import (
	"fmt"
	"io"

	"carronade/internal/report"
)

// writeWarnings writes what makes a run doubtful, for tools whose own lines have no
// place for it. The report's warnings were already printed during the run.
func writeWarnings(w io.Writer, d *report.Document) {
	for _, text := range d.Against() {
		fmt.Fprintf(w, "warning: %s\n", text)
	}
}

// writeProblems writes the records that failed, then the warnings, for Kafka's
// tools.
func writeProblems(w io.Writer, d *report.Document) {
	for _, f := range d.Failures {
		fmt.Fprintf(w, "%s: %s (%d records)\n", f.Class, f.Text, f.Events)
	}
	writeWarnings(w, d)
}
