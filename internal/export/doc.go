// Package export writes reports in every form that has a name: for people
// (text, markdown, html, pictures), for programs (json, csv, junit) and for the
// tools of HdrHistogram. It answers for what each form holds and in which
// order, so that a column that once had a name keeps it, and refuses to know
// where reports are kept and who asks.
//
// Its invariant: a form says what the report says. What a run did not measure
// is left empty and is never a zero, and a form that a report cannot fill is
// refused with the reason.
package export
