package reports

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/judge"
	"carronade/internal/report/picture"
	"carronade/internal/store"
	"carronade/internal/verdict/stats"
	"carronade/protocol"
)

// Variation has the flags that say how to print what several settings change.
type Variation struct {
	as   string
	draw drawing
}

// variationForms are the values of --as.
var variationForms = []string{"text", "json", "markdown", "csv"}

// Bind adds the flags.
func (v *Variation) Bind(fs *pflag.FlagSet) {
	fs.StringVar(&v.as, "as", "", "with --vary: the result as `FORM`: "+strings.Join(variationForms, ", "))
	v.draw.bind(fs, "with --vary: the effects")
}

// Check checks the flags. vary is whether settings are varied, without which the flags have no
// meaning.
func (v *Variation) Check(vary bool) error {
	for _, f := range []struct {
		name  string
		given bool
	}{{"as", v.as != ""}, {"pictures", v.draw.dir != ""}, {"png", v.draw.png}} {
		if f.given && !vary {
			return &protocol.Error{Err: fmt.Errorf("--%s belongs to --vary", f.name), Hint: "carronade report export writes a report in other forms, and as pictures"}
		}
	}
	if v.draw.png && v.draw.dir == "" {
		return &protocol.Error{Err: errors.New("--png belongs to --pictures"), Hint: "--pictures DIR says where they go"}
	}
	if v.as != "" && !slices.Contains(variationForms, v.as) {
		return &protocol.Error{Err: fmt.Errorf("--as %s: must be one of %s", v.as, strings.Join(variationForms, ", ")), Hint: "without --as it is text"}
	}
	return nil
}

// JSON makes JSON the form, as --json does.
func (v *Variation) JSON() error {
	if v.as != "" && v.as != "json" {
		return &protocol.Error{Err: fmt.Errorf("--json and --as %s cannot be combined", v.as), Hint: "give one of them"}
	}
	v.as = "json"
	return nil
}

// RowsWithLabel returns these fields of the reports with a label, such as those of a series.
func RowsWithLabel(ctx context.Context, s store.Store, label, value string, fields ...string) ([]store.Row, error) {
	rows, err := s.Rows(ctx, store.Query{Filters: equal("label."+label, value), Fields: fields})
	if errors.Is(err, store.ErrNoField) { // no report has the label
		return nil, nil
	}
	return rows, err
}

// Write analyses the series and prints the result.
func (v *Variation) Write(ctx context.Context, c *cmdutil.Console, s store.Store, o judge.VaryOptions) error {
	rows, err := RowsWithLabel(ctx, s, judge.SeriesLabel, o.Series, judge.VaryFields()...)
	if err != nil {
		return err
	}
	found, err := judge.Vary(rows, o)
	if err != nil {
		return err
	}
	switch v.as {
	case "json":
		err = cmdutil.WriteJSON(c.Out, found)
	case "markdown":
		err = found.Markdown(c.Out)
	case "csv":
		err = found.CSV(c.Out)
	default:
		err = found.Text(c.Out, c.Style)
	}
	if err != nil {
		return err
	}
	return v.draw.write(c, variationFigures(found))
}

// variationFigures draw the effects on each number, the largest first.
func variationFigures(v *judge.Variation) []picture.Figure {
	var out []picture.Figure
	for i := range v.Numbers {
		n := &v.Numbers[i]
		if len(n.Effects) == 0 {
			continue
		}
		var dots []dot
		for k := range n.Effects {
			e := &n.Effects[k]
			dots = append(dots, dot{v.Label(e), 100 * e.Effect, 100 * e.Lo, 100 * e.Hi, e.Verdict == stats.EffectFound})
		}
		f := dotPlot(dots, "effect", "not certain, or no effect found")
		f.Name, f.Title = "vary-"+fileName(n.Field), "What the settings change: "+n.Title
		f.Note = "Each dot is an effect, on its 95% interval; " + n.Better + " is better."
		f.X = picture.Axis{Label: "change of " + n.Title, Unit: picture.Share, Zero: true}
		f.Marks = []picture.Mark{{}} // no change
		out = append(out, f)
	}
	return out
}
