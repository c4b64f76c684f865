// Package charts is the script that draws charts in a browser, with its style sheet: the same for
// the live page and the page of a report. It draws with uPlot, which is embedded as it was
// released. It knows figures as numbers, and not where they come from; see charts.js.
package charts

import (
	"embed"
	"strings"
)

//go:embed uplot.js uplot.css format.js charts.js charts.css UPLOT-LICENSE
var files embed.FS

// Scripts are the names of the scripts, in the order in which a page runs them. They are no
// modules: what they define, format and charts, is visible to all scripts of the page.
var Scripts = []string{"uplot.js", "format.js", "charts.js"}

// Sheets are the names of the style sheets, in the order in which a page applies them. They use
// the colors of package picture, as custom properties.
var Sheets = []string{"uplot.css", "charts.css"}

// File returns the content of a script or a style sheet.
func File(name string) string {
	data, err := files.ReadFile(name)
	if err != nil {
		panic(err) // the names are those above
	}
	return string(data)
}

// Script returns all scripts as one, with the license of uPlot, for a page in one file.
func Script() string { return "/*\n" + File("UPLOT-LICENSE") + "*/\n" + join(Scripts) }

// Sheet returns all style sheets as one.
func Sheet() string { return join(Sheets) }

func join(names []string) string {
	var b strings.Builder
	for _, n := range names {
		b.WriteString(File(n))
		b.WriteByte('\n')
	}
	return b.String()
}
