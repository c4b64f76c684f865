// Package page is the design that the page of a report, the live page and that of a team share: one style
// sheet, one band, one set of charts. It has templates for what a page shows before its script runs, and the
// scripts that fill them and draw. It does not know what the pages show.
// Its invariant: a page has no other style sheet, and no script but these and its own.
package page

import (
	"embed"
	"encoding/json"
	"html/template"
	"regexp"
	"strings"
	"sync"

	"carronade/internal/report"
	"carronade/internal/report/picture"
)

//go:embed *.js *.css *.html UPLOT-LICENSE
var files embed.FS

// Scripts are the names of the scripts, in the order in which a page runs them. They are no modules: what
// they define, format, charts and page, is visible to all scripts of the page.
var Scripts = []string{"uplot.js", "format.js", "charts.js", "page.js"}

// sheets are the style sheets, in the order in which they apply.
var sheets = []string{"uplot.css", "page.css"}

// File returns the content of a script.
func File(name string) string {
	data, err := files.ReadFile(name)
	if err != nil {
		panic(err) // the names are those above
	}
	return string(data)
}

// Script returns all scripts as one, with the license of uPlot, for a page in one file.
func Script() string { return "/*\n" + File("UPLOT-LICENSE") + "*/\n" + join(Scripts) }

// Style is the style sheet of all pages: the colors of both themes, the rules of still pictures, and the design.
var Style = sync.OnceValue(func() string {
	light, dark := picture.Properties(picture.Light), picture.Properties(picture.Dark)
	return ":root{color-scheme:light;" + light + "}" +
		"@media(prefers-color-scheme:dark){:root:not([data-theme=light]){color-scheme:dark;" + dark + "}}" +
		":root[data-theme=dark]{color-scheme:dark;" + dark + "}" +
		"@media print{:root:root:root{color-scheme:light;" + light + "}}\n" +
		picture.Rules() + "\n" + join(sheets)
})

func join(names []string) string {
	var b strings.Builder
	for _, n := range names {
		b.WriteString(File(n))
		b.WriteByte('\n')
	}
	return b.String()
}

// Parse parses the markup of a page. It may use the templates of this package: "band" with a Band, and "key"
// with a Key; and the functions "unbroken" and "percentiles": the lines of times, as JSON.
func Parse(markup string) *template.Template {
	t := template.New("page").Funcs(template.FuncMap{"unbroken": Unbroken, "percentiles": percentiles})
	return template.Must(template.Must(t.Parse(File("parts.html"))).Parse(markup))
}

func percentiles() (string, error) {
	b, err := json.Marshal(picture.LinePercentiles)
	return string(b), err
}

// numbers are numbers with a unit after a blank, and compared those after a sign of comparison. The script has the
// same expressions: format.unbroken.
var numbers = regexp.MustCompile(`(\d) ((?:[kMGT]|[numkM]?s|h|B|[KMGT]iB|cores?)\b|%|/s)`)

var compared = regexp.MustCompile(`([<>=≥≤]) (\d)`)

// Unbroken is a text in which no line can end between a number and its unit, or between it and a sign of comparison.
func Unbroken(text string) string {
	return compared.ReplaceAllString(numbers.ReplaceAllString(text, "$1\u00a0$2"), "$1\u00a0$2")
}

// A Band is the band of a report. Of several on a page each has a name and a color.
type Band struct {
	report.Band
	Tone     picture.Tone
	Name, Of string
}

// Blank is the band that a script fills.
func Blank() Band {
	return Band{Band: report.Band{Word: "…", Mark: "open", Facts: make([]report.Fact, report.MostFacts), Notes: make([]report.Note, report.MostNotes)}}
}

// BlankKey is the key that a script fills: it has all shades, of which the script shows some.
func BlankKey() Key { return Key{Hidden: true, Shades: picture.EachMarkKind} }

// A Key explains the marks and shades of all charts of a page, once.
type Key struct {
	Hidden bool // until a script fills it
	Shades []picture.MarkKind
	Marks  []KeyMark
	Rest   []KeyMark // those for which there is little room
}

// A KeyMark is a numbered moment.
type KeyMark struct {
	Number   int
	At, Text string
}

// mostOpen is how many marks a key shows at once.
const mostOpen = 6

// KeyOf is the key of figures, whose times are those of one run.
func KeyOf(figures []picture.Figure) Key {
	var k Key
	for i := range figures {
		f := &figures[i]
		if !f.Shared {
			continue
		}
		k.Shades = f.MarkKinds()
		for n, m := range f.Numbered() {
			one := KeyMark{n + 1, picture.Format(m.From, picture.Seconds), m.Text}
			if n < mostOpen {
				k.Marks = append(k.Marks, one)
			} else {
				k.Rest = append(k.Rest, one)
			}
		}
		break
	}
	return k
}
