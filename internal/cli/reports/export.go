package reports

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"carronade/internal/advice"
	"carronade/internal/cli/cmdutil"
	"carronade/internal/layout"
	"carronade/internal/place"
	"carronade/internal/report"
	"carronade/internal/report/export"
	"carronade/internal/store"
	"carronade/protocol"
)

const exportExample = `
  carronade report export last --as markdown
  carronade report export last~1 last --as csv --out series.csv
  carronade report export branch=main --as json --out main.json
  carronade report export last --as percentiles --time service
  carronade report export last --as png --out pictures
  carronade report export last~1 last --as svg --picture throughput \
    --out both.svg`

// exporting holds the flags of export.
type exporting struct {
	as, out string
	options export.Options
}

func (c *commands) export() *cobra.Command {
	var e exporting
	cmd := &cobra.Command{
		Use: "export [REPORT... | FILTER...] --as FORMAT", Short: "write reports in another format",
		Long: "Writes reports (default: the newest) to stdout, or with --out to a file. Formats\nthat hold one report are written to a folder, one file each.\n\n" + exportFormats(), Example: exportExample,
	}
	fs := cmd.Flags()
	fs.StringVar(&e.as, "as", "", "the `FORMAT`: "+strings.Join(exportFormatNames(), ", "))
	fs.StringVarP(&e.out, "out", "o", "", "write to `PATH`: a file, or a folder for several files")
	fs.StringVar(&e.options.Time, "time", "", "the `TIME` of the distribution, such as service (default: response, if there is one)")
	fs.StringVar(&e.options.Picture, "picture", "", "only the picture called `NAME`")
	fs.BoolVar(&e.options.Dark, "dark", false, "pictures on a dark background")
	fs.Float64Var(&e.options.Scale, "scale", 0, "scale of a PNG: `PIXELS` per picture unit, 0.25 to 8 (default: 2)")
	cmdutil.SetChoices(cmd.Flags().Lookup("as"), exportFormatNames())
	c.on(cmd, func(ctx context.Context, s store.Store, args []string) error { return c.doExport(ctx, s, &e, args) })
	return cmd
}

func exportFormatNames() []string {
	names := make([]string, len(export.Formats))
	for i := range export.Formats {
		names[i] = export.Formats[i].Name
	}
	return names
}

// exportFormats lists the formats for help.
func exportFormats() string {
	var b strings.Builder
	for i := range export.Formats {
		fmt.Fprintf(&b, "  %-12s %s\n", export.Formats[i].Name, export.Formats[i].Help)
	}
	return strings.TrimRight(b.String(), "\n")
}

func (c *commands) doExport(ctx context.Context, s store.Store, e *exporting, words []string) error {
	f, err := e.format()
	if err != nil {
		return err
	}
	ids, err := chosen(ctx, s, words)
	if err != nil {
		return err
	}
	e.options.Style = c.Style
	if e.out != "" {
		e.options.Style = layout.Style{}
	}
	switch {
	case f.Picture && e.options.Picture == "":
		return c.exportPictures(ctx, f, s, ids, e)
	case e.out == "" && f.Binary && c.Terminal:
		return &protocol.Error{Err: fmt.Errorf("--as %s is not for a terminal", f.Name), Hint: "write to a file with --out, or pipe it"}
	case len(ids) > 1 && !f.Several:
		return c.exportEach(ctx, f, s, ids, e)
	case e.out == "":
		r := &reader{ctx: ctx, s: s, ids: ids}
		return r.or(export.Write(c.Out, f.Name, r.reports(), e.options))
	}
	path := e.out
	if info, err := place.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, e.fileName(ids, f))
	}
	r := &reader{ctx: ctx, s: s, ids: ids}
	return r.or(e.file(f, r.reports(), path))
}

// A reader reads reports from a store one at a time, since all may not fit into memory.
type reader struct {
	ctx context.Context
	s   store.Store
	ids []string
	err error // of the store
}

func (r *reader) reports() export.Reports {
	return export.Reports{N: len(r.ids), All: func(yield func(*report.Document, error) bool) {
		for _, id := range r.ids {
			d, err := r.s.Get(r.ctx, id)
			if r.err = err; !yield(d, err) || err != nil {
				return
			}
		}
	}}
}

// or returns the error of the store, if there was one, instead of its consequence.
func (r *reader) or(err error) error { return cmp.Or(r.err, err) }

// format returns the format of --as, or the one of the file's extension.
func (e *exporting) format() (*export.Format, error) {
	if e.as == "" {
		for i := range export.Formats {
			if f := &export.Formats[i]; e.out != "" && filepath.Ext(e.out) == f.Ext {
				return f, nil
			}
		}
		return nil, &protocol.Error{Err: errors.New("--as is missing: give the format"), Hint: "one of " + strings.Join(exportFormatNames(), ", ")}
	}
	f, err := export.Named(e.as)
	if err != nil {
		return nil, &protocol.Error{
			Err:  fmt.Errorf("--as: %w", err),
			Hint: advice.DidYouMean(e.as, exportFormatNames(), "--as %s", "carronade report export --help describes each"),
		}
	}
	return f, nil
}

// exportEach writes one file per report.
func (c *commands) exportEach(ctx context.Context, f *export.Format, s store.Store, ids []string, e *exporting) error {
	if e.out == "" {
		return &protocol.Error{
			Err:  fmt.Errorf("--as %s holds one report, but there are %d", f.Name, len(ids)),
			Hint: "give a folder with --out, for a file each, or name one report",
		}
	}
	if err := place.MkdirAll(e.out, 0o755); err != nil {
		return cannotWrite(e.out, err)
	}
	for i, id := range ids {
		d, err := s.Get(ctx, id)
		if err != nil {
			return err
		}
		if err := e.file(f, export.Of(d), filepath.Join(e.out, e.fileName(ids[i:i+1], f))); err != nil {
			return err
		}
	}
	return nil
}

// exportPictures writes one file per picture into a folder. Each picture shows all reports.
func (c *commands) exportPictures(ctx context.Context, f *export.Format, s store.Store, ids []string, e *exporting) error {
	ds, err := documents(ctx, s, ids)
	if err != nil {
		return err
	}
	names := export.Pictures(ds)
	switch {
	case len(names) == 0:
		return &export.MissingError{ID: ds[0].ID, What: "there is nothing to draw"}
	case e.out == "":
		return &protocol.Error{
			Err:  fmt.Errorf("--as %s holds one picture, but there are %d: %s", f.Name, len(names), strings.Join(names, ", ")),
			Hint: "give a folder with --out, for a file each, or name one with --picture",
		}
	}
	if err := place.MkdirAll(e.out, 0o755); err != nil {
		return cannotWrite(e.out, err)
	}
	each := *e
	for _, name := range names {
		each.options.Picture = name
		if err := each.file(f, export.Of(ds...), filepath.Join(e.out, each.fileName(ids, f))); err != nil {
			return err
		}
	}
	return nil
}

// fileName is the name of a file of reports or of a picture.
func (e *exporting) fileName(ids []string, f *export.Format) string {
	if f.Picture {
		return e.options.Picture + f.Ext
	}
	if len(ids) > 1 {
		return "reports" + f.Ext
	}
	return ids[0] + f.Ext
}

// file writes a whole file, so that readers never see a partial one.
func (e *exporting) file(f *export.Format, rs export.Reports, path string) error {
	err := cmdutil.WriteFile(path, func(w io.Writer) error { return export.Write(w, f.Name, rs, e.options) })
	var lacking *export.MissingError
	if err == nil || errors.As(err, &lacking) {
		return err
	}
	return cannotWrite(path, err)
}

func cannotWrite(path string, err error) error {
	return &protocol.Error{
		Err:  fmt.Errorf("--out: cannot write %s: %s", path, cmdutil.Reason(err)),
		Hint: "give a path in a writable folder",
	}
}
