// Package report is a finished run as one document. Build makes it from the measurement, its
// JSON is the interface to other programs (docs/report.md), and Log writes the histograms of
// each interval in HdrHistogram's log format. The view (view.go) has the content of a report
// as rows with labels, units and meanings, which every format lays out. Brief and Text print
// it in 80 columns. For a search it makes the outcome of a trial from the trial's report (package
// find knows no reports), and the report of the search from its answer.
//
// The package does not depend on how a run is made, on stores or on terminals. Invariant:
// the document has everything that the text shows, so the text of a stored report never
// changes.
package report
