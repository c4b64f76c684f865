package export

import (
	"bufio"
	"fmt"
	"io"
	"iter"
	"strings"

	"carronade/internal/layout"
	"carronade/internal/report"
)

// A Format is one format of a report.
type Format struct {
	Name string
	Ext  string // of its files, with the dot
	Help string
	// Binary formats are not for a terminal.
	Binary bool
	// Several means that one output may contain several reports; with other
	// formats each report needs a separate output.
	Several bool
	// Picture formats contain one picture, which is named in the options; see
	// Pictures.
	Picture bool

	write func(io.Writer, Reports, Options) error
}

// Reports are the reports to write, in their order. They may be read lazily:
// formats that write one report after the other keep none of them. The sequence
// ends with its first error.
type Reports struct {
	N   int
	All iter.Seq2[*report.Document, error]
}

// Of are reports in memory.
func Of(ds ...*report.Document) Reports {
	return Reports{N: len(ds), All: func(yield func(*report.Document, error) bool) {
		for _, d := range ds {
			if !yield(d, nil) {
				return
			}
		}
	}}
}

// each calls f for each report, with its index.
func (r Reports) each(f func(i int, d *report.Document) error) error {
	i := 0
	for d, err := range r.All {
		if err != nil {
			return err
		}
		if err := f(i, d); err != nil {
			return err
		}
		i++
	}
	return nil
}

// peek returns the first report, nil if it cannot be read, and the reports with it.
func (r Reports) peek() (*report.Document, Reports) {
	next, stop := iter.Pull2(r.All)
	first, err, ok := next()
	return first, Reports{N: r.N, All: func(yield func(*report.Document, error) bool) {
		defer stop()
		for ; ok && yield(first, err); first, err, ok = next() {
		}
	}}
}

// collect reads all reports, for formats that show them together.
func (r Reports) collect() ([]*report.Document, error) {
	ds := make([]*report.Document, 0, r.N)
	err := r.each(func(_ int, d *report.Document) error {
		ds = append(ds, d)
		return nil
	})
	return ds, err
}

// Options control a format. The zero Options are the defaults.
type Options struct {
	// Time names the time whose distribution is written, for formats with only
	// one: response, service, send_delay, batching, queueing, failed_service or
	// end_to_end. "": the first of response, service and end_to_end that the
	// run has.
	Time string
	// Picture names the picture, for formats with only one.
	Picture string
	Dark    bool    // pictures on a dark background
	Scale   float64 // pixels of a PNG per pixel of the picture; 0: 2
	Style   layout.Style
}

// Formats are all formats, in the order of help.
var Formats = []Format{
	{Name: "text", Ext: ".txt", Help: "the whole report, as --full prints it", Several: true, write: writeText},
	{Name: "markdown", Ext: ".md", Help: "the report for a page or an issue; also called md", Several: true, write: writeMarkdown},
	{Name: "json", Ext: ".json", Help: "the whole report (docs/report.md); several as one line each", Several: true, write: writeJSON},
	{Name: "csv", Ext: ".csv", Help: "a row per interval; of searches their trials, of scenarios steps", Several: true, write: writeCSV},
	{Name: "hdr", Ext: ".hlog", Help: "the histograms of each interval, as an HdrHistogram log", write: single(writeHDR)},
	{Name: "percentiles", Ext: ".hgrm", Help: "the distribution of a time, as HdrHistogram prints it", write: single(writePercentiles)},
	{Name: "junit", Ext: ".xml", Help: "checks and trust as test cases, for CI", Several: true, write: writeJUnit},
	{Name: "html", Ext: ".html", Help: "a self-contained page with all pictures", Several: true, write: writeHTML},
	{Name: "svg", Ext: ".svg", Help: "a picture, as vector graphics; several reports are overlaid", Several: true, Picture: true, write: writeSVG},
	{Name: "png", Ext: ".png", Help: "a picture, as pixels; several reports are overlaid", Binary: true, Several: true, Picture: true, write: writePNG},
	{Name: "groups-csv", Ext: ".csv", Help: "a row per interval and consumer group of a round trip", Several: true, write: writeGroups},
	{Name: "e2e-csv", Ext: ".csv", Help: "sampled events of a round trip: item, start us, end to end us", write: single(writeEndToEnd)},
}

// Canonical is the name of a format as Formats has it: md is markdown.
func Canonical(name string) string {
	if name == "md" {
		return "markdown"
	}
	return name
}

// Named returns a format by its name or its other name.
func Named(name string) (*Format, error) {
	name = Canonical(name)
	names := make([]string, 0, len(Formats))
	for i := range Formats {
		if Formats[i].Name == name {
			return &Formats[i], nil
		}
		names = append(names, Formats[i].Name)
	}
	return nil, fmt.Errorf("unknown format %q; the formats are %s", name, strings.Join(names, ", "))
}

// Write writes reports in a format, in the given order. It fails for an unknown
// format, for several reports if the format takes only one, for a report
// without the data of the format (a *MissingError), and with the errors of the
// reports and of the writer.
func Write(w io.Writer, format string, rs Reports, o Options) error {
	f, err := Named(format)
	if err != nil {
		return err
	}
	if rs.N == 0 {
		return fmt.Errorf("write %s: no report was given", f.Name)
	}
	if rs.N > 1 && !f.Several {
		return fmt.Errorf("write %s: it holds one report, but there are %d; write each separately", f.Name, rs.N)
	}
	b := bufio.NewWriterSize(w, 64<<10)
	if err := f.write(b, rs, o); err != nil {
		return fmt.Errorf("write %s: %w", f.Name, err)
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("write %s: %w", f.Name, err)
	}
	return nil
}

// A MissingError is the error for a report without the data that a format
// needs.
type MissingError struct {
	ID   string // of the report
	What string // what is missing, as in "it has no end-to-end times"
}

// Error implements error.
func (e *MissingError) Error() string { return "report " + e.ID + ": " + e.What }

func writeText(w io.Writer, rs Reports, o Options) error {
	return rs.each(func(i int, d *report.Document) error {
		if i > 0 {
			if _, err := io.WriteString(w, "\n"); err != nil {
				return err
			}
		}
		return d.Text(w, o.Style)
	})
}

// single makes a format for one report.
func single(write func(io.Writer, *report.Document, Options) error) func(io.Writer, Reports, Options) error {
	return func(w io.Writer, rs Reports, o Options) error {
		return rs.each(func(_ int, d *report.Document) error { return write(w, d, o) })
	}
}
