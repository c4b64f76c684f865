// Package export writes reports in every named format: for people (text,
// markdown, html, pictures), for programs (json, csv, junit) and for the tools
// of HdrHistogram. It defines what each format contains and in which order; a
// column never changes its name. It does not know where reports are stored or
// who requests them.
//
// HTML is one self-contained file: it needs no network, no other file, and no script to be
// read. Pictures are in it as SVG and as tables. A script draws charts of the same data in
// their place: they have the reader's width, show values under the pointer or by arrow keys,
// hide series, and zoom together over time.
//
// Its invariants: a format says what the report says. What a run did not measure
// is left empty and is never a zero, and a format that a report cannot fill is
// refused with the reason. Text from a report is untrusted and never becomes markup or
// script: html/template escapes it in the page and layout.Markup in the pictures, the script
// only makes text nodes of it, and the page's content security policy allows only the script
// whose hash it names, and no connections.
package export
