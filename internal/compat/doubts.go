package compat

import (
	"fmt"
	"io"

	"carronade/internal/report"
	"carronade/measure"
)

// Doubts says what speaks against a run, for tools whose own lines have no place
// for it: what could not be done, why the generator is not to be trusted or by how
// much it was noisy, and which limit was broken. The report's warnings are said
// already, by whoever fired.
func Doubts(w io.Writer, d *report.Document) {
	for _, text := range d.Problems {
		fmt.Fprintf(w, "warning: %s\n", text)
	}
	for _, text := range d.Trust.Reasons {
		fmt.Fprintf(w, "warning: not to be trusted: %s\n", text)
	}
	if d.TrustLevel() == measure.Noisy {
		for _, text := range d.Trust.Doubts {
			fmt.Fprintf(w, "warning: noisy: %s\n", text)
		}
	}
	for _, c := range d.Checks {
		if !c.OK {
			fmt.Fprintf(w, "warning: %s: %s\n", c.Name, c.Text)
		}
	}
}

// Complaint is Doubts after what of the records was not taken, for Kafka's tools.
func Complaint(w io.Writer, d *report.Document) {
	for _, f := range d.Failures {
		fmt.Fprintf(w, "%s: %s (%d records)\n", f.Class, f.Text, f.Events)
	}
	Doubts(w, d)
}
