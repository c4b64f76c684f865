package export

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"carronade/internal/layout"
	"carronade/internal/report"
)

// A Format is one form of a report.
type Format struct {
	Name string
	Ext  string // of its files, with the point
	Help string
	// Binary forms are not for a terminal.
	Binary bool
	// Several says that one output may hold several reports; of the others each
	// report is an output of its own.
	Several bool
	// Picture forms hold one picture, which is named in the options; see
	// Pictures.
	Picture bool

	write func(io.Writer, []*report.Document, Options) error
}

// Options say more about a form. The zero Options are the usual ones.
type Options struct {
	// Time names the time whose distribution is wanted, where a form holds
	// only one: response, service, send_delay, gather, held, failed_service or
	// end_to_end. "": the first of response, service and end_to_end that the
	// run has.
	Time string
	// Picture names the picture that is wanted, where a form holds only one.
	Picture string
	Dark    bool    // pictures on a dark ground
	Scale   float64 // pixels of a PNG for each of the picture's; 0: 2
	Style   layout.Style
}

// Formats are all forms, in the order of help.
var Formats = []Format{
	{Name: "text", Ext: ".txt", Help: "the whole report, as --full prints it", Several: true, write: writeText},
	{Name: "markdown", Ext: ".md", Help: "the report for a page or an issue", Several: true, write: writeMarkdown},
	{Name: "json", Ext: ".json", Help: "the whole report (docs/report.md); several are a line each", Several: true, write: writeJSON},
	{Name: "csv", Ext: ".csv", Help: "the series: a row an interval", Several: true, write: writeCSV},
	{Name: "hdr", Ext: ".hlog", Help: "the histograms of each interval, as an HdrHistogram log", write: writeHDR},
	{Name: "percentiles", Ext: ".hgrm", Help: "the distribution of a time, as HdrHistogram prints it", write: writePercentiles},
	{Name: "junit", Ext: ".xml", Help: "checks and trust as test cases, for CI", Several: true, write: writeJUnit},
	{Name: "html", Ext: ".html", Help: "a page with all pictures, in one file that needs nothing else", Several: true, write: writeHTML},
	{Name: "svg", Ext: ".svg", Help: "a picture, as lines; of several reports laid over each other", Several: true, Picture: true, write: writeSVG},
	{Name: "png", Ext: ".png", Help: "a picture, as pixels; likewise", Binary: true, Several: true, Picture: true, write: writePNG},
	{Name: "e2e-csv", Ext: ".csv", Help: "sampled events of a round trip: item, start us, end to end us", write: writeEndToEnd},
}

// Named returns a form by its name.
func Named(name string) (*Format, error) {
	names := make([]string, 0, len(Formats))
	for i := range Formats {
		if Formats[i].Name == name {
			return &Formats[i], nil
		}
		names = append(names, Formats[i].Name)
	}
	return nil, fmt.Errorf("there is no form %q; there are %s", name, strings.Join(names, ", "))
}

// Write writes reports in a form, in the order given. It fails for a form that
// there is not, for several reports where only one fits, for a report that
// lacks what the form is made of (a *Lacking), and with the writer's errors.
func Write(w io.Writer, format string, ds []*report.Document, o Options) error {
	f, err := Named(format)
	if err != nil {
		return err
	}
	if len(ds) == 0 {
		return fmt.Errorf("write %s: there is no report", f.Name)
	}
	if len(ds) > 1 && !f.Several {
		return fmt.Errorf("write %s: it holds one report, and these are %d; write each by itself", f.Name, len(ds))
	}
	b := bufio.NewWriterSize(w, 64<<10)
	if err := f.write(b, ds, o); err != nil {
		return fmt.Errorf("write %s: %w", f.Name, err)
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("write %s: %w", f.Name, err)
	}
	return nil
}

// A Lacking is a report without what a form is made of.
type Lacking struct {
	ID   string // of the report
	What string // is missing, as in "it has no end-to-end times"
}

// Error implements error.
func (e *Lacking) Error() string { return "report " + e.ID + ": " + e.What }

func writeText(w io.Writer, ds []*report.Document, o Options) error {
	for i, d := range ds {
		if i > 0 {
			if _, err := io.WriteString(w, "\n"); err != nil {
				return err
			}
		}
		if err := d.Text(w, o.Style); err != nil {
			return err
		}
	}
	return nil
}
