// Package export writes reports in every named format: for people (text,
// markdown, html, pictures), for programs (json, csv, junit) and for the tools
// of HdrHistogram. It defines what each format contains and in which order; a
// column never changes its name. It does not know where reports are stored or
// who requests them.
//
// Its invariant: a format says what the report says. What a run did not measure
// is left empty and is never a zero, and a format that a report cannot fill is
// refused with the reason.
package export
