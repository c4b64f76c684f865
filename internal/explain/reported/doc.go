// Package reported joins explain and reports: what a stored report has, as the input of explain,
// and its findings as a document and as text. It knows which of a report's series follow the
// load, and so explain nothing, and which flag would watch what was not watched.
//
// Invariant: everything that it says follows from the report alone.
package reported
