// Package picture makes figures of reports and draws them. A Figure is data:
// axes, series, a heat map, and what they are called; Of makes those of a
// report, or of several laid over each other. Figures are drawn as SVG, with
// words for those who do not see it, and as PNG by a rasteriser of our own, and
// package page draws the same data anew in a browser. It answers for what is
// shown and how it looks, in both themes and to the color-blind, and refuses
// to know where reports come from and what is concluded from them.
//
// Its invariant: nothing measured is left out of a figure. Points that are
// closer than the picture is fine are joined by their extremes, a heat map
// counts each observation of its histograms once, and a hole in a series is a
// hole in its line.
package picture
