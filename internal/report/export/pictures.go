package export

import (
	"cmp"
	"errors"
	"fmt"
	"io"

	"carronade/internal/report"
	"carronade/internal/report/picture"
)

// Pictures returns the names of the available pictures of reports, in reading
// order.
func Pictures(ds []*report.Document) []string {
	figures := picture.Of(ds...)
	names := make([]string, len(figures))
	for i := range figures {
		names[i] = figures[i].Name
	}
	return names
}

func writeHTML(w io.Writer, rs Reports, _ Options) error {
	ds, err := rs.collect()
	if err != nil {
		return err
	}
	return writePage(w, ds...)
}

// defaultScale makes a PNG sharp on most screens.
const defaultScale = 2

func writeSVG(w io.Writer, rs Reports, o Options) error {
	f, theme, err := figure(rs, o)
	if err != nil {
		return err
	}
	return f.SVG(w, theme)
}

func writePNG(w io.Writer, rs Reports, o Options) error {
	f, theme, err := figure(rs, o)
	if err != nil {
		return err
	}
	scale := o.Scale
	scale = cmp.Or(scale, defaultScale)
	return f.PNG(w, theme, scale)
}

// figure finds the requested picture.
func figure(rs Reports, o Options) (*picture.Figure, picture.Theme, error) {
	theme := picture.Auto
	if o.Dark {
		theme = picture.Dark
	}
	if o.Picture == "" {
		return nil, theme, errors.New("it holds one picture: name it")
	}
	ds, err := rs.collect()
	if err != nil {
		return nil, theme, err
	}
	figures := picture.Of(ds...)
	if f, ok := picture.ByName(figures, o.Picture); ok {
		return f, theme, nil
	}
	if len(figures) == 0 {
		return nil, theme, &MissingError{ID: ds[0].ID, What: "there is nothing to draw"}
	}
	return nil, theme, fmt.Errorf("unknown picture %q; the pictures are %s", o.Picture, list(Pictures(ds)))
}
