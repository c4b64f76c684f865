package compat

import (
	"fmt"
	"io"

	"carronade/internal/report"
)

// Doubts says what speaks against a run, for tools whose own lines have no place
// for it. The report's warnings are said already, by whoever fired.
func Doubts(w io.Writer, d *report.Document) {
	for _, text := range d.Against() {
		fmt.Fprintf(w, "warning: %s\n", text)
	}
}

// Complaint is Doubts after what of the records was not taken, for Kafka's tools.
func Complaint(w io.Writer, d *report.Document) {
	for _, f := range d.Failures {
		fmt.Fprintf(w, "%s: %s (%d records)\n", f.Class, f.Text, f.Events)
	}
	Doubts(w, d)
}
