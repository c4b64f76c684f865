// Package page writes reports as one HTML file that needs nothing else: no
// network, no other file, and no script to be read. The pictures stand in it
// as SVG and as tables; a script of our own draws the same data anew in the
// reader's width, reads values under the pointer or by arrow keys, hides
// series and zooms all pictures over time together. It answers for what the
// page shows and for its safety, and refuses to know how pictures are made and
// where reports come from.
//
// Its invariant: what a report holds are others' words. None of them is markup
// or script, whatever they are: they are escaped in one place (package markup),
// the script makes text nodes of them, and the page's own policy allows no
// script but the one whose hash it names, and no connection at all.
package page
