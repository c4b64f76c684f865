package picture

import (
	"embed"
	"strings"
)

//go:embed charts/*.js charts/*.css charts/UPLOT-LICENSE
var chartFiles embed.FS

// ChartScripts are the names of the scripts, in the order in which a page runs them. They are no
// modules: what they define, format and charts, is visible to all scripts of the page.
var ChartScripts = []string{"uplot.js", "format.js", "charts.js"}

// ChartSheets are the names of the style sheets, in the order in which a page applies them. They use
// the colors of package picture, as custom properties.
var ChartSheets = []string{"uplot.css", "charts.css"}

// ChartFile returns the content of a script or a style sheet.
func ChartFile(name string) string {
	data, err := chartFiles.ReadFile("charts/" + name)
	if err != nil {
		panic(err) // the names are those above
	}
	return string(data)
}

// ChartScript returns all scripts as one, with the license of uPlot, for a page in one file.
func ChartScript() string {
	return "/*\n" + ChartFile("UPLOT-LICENSE") + "*/\n" + joinFiles(ChartScripts)
}

// ChartSheet returns all style sheets as one.
func ChartSheet() string { return joinFiles(ChartSheets) }

func joinFiles(names []string) string {
	var b strings.Builder
	for _, n := range names {
		b.WriteString(ChartFile(n))
		b.WriteByte('\n')
	}
	return b.String()
}
