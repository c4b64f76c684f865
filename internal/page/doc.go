// Package page writes reports as one self-contained HTML file: it needs no network, no other
// file, and no script to be read. Pictures are in it as SVG and as tables. A script draws
// charts of the same data in their place (package charts): they have the reader's width, show values
// under the pointer or by arrow keys, hide series, and zoom together over time. The package is responsible for what the
// page shows and for its safety; it does not know how pictures are made or where reports come
// from.
//
// Invariant: text from a report is untrusted and never becomes markup or script. One place
// escapes it (package markup), the script only makes text nodes of it, and the page's content
// security policy allows only the script whose hash it names, and no connections.
package page
