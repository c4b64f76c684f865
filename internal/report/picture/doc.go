// Package picture makes figures from reports and draws them. A Figure is data:
// axes, series, a heat map, and their names. Of makes the figures of a report, or
// of several reports overlaid. Figures are drawn as SVG, with descriptions for
// readers who cannot see it, and as PNG by the package's own rasteriser. The folder charts
// has the script that draws the same data in a browser, with its style sheet: the same for
// the live page and the page of a report. It draws with uPlot, which is embedded as it was
// released. The package is responsible for what is shown
// and how it looks, in both themes and to the color-blind. It does not know where
// reports come from or what follows from them.
// Its invariant: no measurement is left out of a figure. Points closer than the
// picture's resolution are reduced to their extremes, a heat map counts each
// observation of its histograms once, and a gap in a series is a gap in its line.
package picture
