// Package report is a finished run as one document: Build makes it from what
// was measured, its JSON is the program's contract with other programs
// (docs/report.md), and Log writes the histograms of each interval as a log that
// HdrHistogram's tools read. What there is to say of a run is its view (view.go): rows
// with labels, units and meanings, which every form of a report lays out. Brief and Text
// do so for people, in 80 columns.
//
// It refuses to know how a run was done, where reports are kept, and what a
// terminal is. Its invariant: the document holds everything that the text
// shows, so a stored report prints as it did on the day.
package report
