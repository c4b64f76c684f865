package judging

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"carronade/internal/command"
	"carronade/internal/digest"
	"carronade/internal/judge"
	"carronade/internal/picture"
	"carronade/internal/store"
	"carronade/internal/vary"
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
			return &command.Words{Err: fmt.Errorf("--%s belongs to --vary", f.name), Hint: "carronade report export writes a report in other forms, and as pictures"}
		}
	}
	if v.draw.png && v.draw.dir == "" {
		return &command.Words{Err: errors.New("--png belongs to --pictures"), Hint: "--pictures DIR says where they go"}
	}
	if v.as != "" && !slices.Contains(variationForms, v.as) {
		return &command.Words{Err: fmt.Errorf("--as %s: must be one of %s", v.as, strings.Join(variationForms, ", ")), Hint: "without --as it is text"}
	}
	return nil
}

// JSON makes JSON the form, as --json does.
func (v *Variation) JSON() error {
	if v.as != "" && v.as != "json" {
		return &command.Words{Err: fmt.Errorf("--json and --as %s cannot be combined", v.as), Hint: "give one of them"}
	}
	v.as = "json"
	return nil
}

// RowsWithLabel returns these fields of the reports with a label, such as those of a series.
func RowsWithLabel(ctx context.Context, s store.Store, label, value string, fields ...string) ([]digest.Row, error) {
	return s.Rows(ctx, store.Query{Filters: equal("label."+label, value), Fields: fields})
}

// Write analyses the series and prints the result.
func (v *Variation) Write(ctx context.Context, c *command.Console, s store.Store, series string, d *vary.Design, rounds int) error {
	rows, err := RowsWithLabel(ctx, s, judge.SeriesLabel, series, judge.VaryFields()...)
	if err != nil {
		return err
	}
	found, err := judge.Vary(rows, judge.VaryOptions{Series: series, Design: d, Rounds: rounds})
	if err != nil {
		return err
	}
	switch v.as {
	case "json":
		err = command.WriteJSON(c.Out, found)
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
		f := picture.Figure{
			Name: "vary-" + fileName(n.Field), Title: "What the settings change: " + n.Title,
			Note: "Each dot is an effect, on its 95% interval; " + n.Better + " is better.",
			X:    picture.Axis{Label: "change of " + n.Title, Unit: picture.Share, Zero: true}, Y: picture.Axis{Labels: []string{}},
			Marks: []picture.Mark{{}}, // no change
		}
		certain := picture.Series{Name: "effect", Style: picture.Intervals, Tone: picture.Blue}
		others := picture.Series{Name: "not certain, or no effect found", Style: picture.Intervals, Tone: picture.Grey}
		for k := range slices.Backward(n.Effects) { // the first one is at the top
			e := &n.Effects[k]
			s := &others
			if e.Verdict == vary.Found {
				s = &certain
			}
			s.X, s.Y = append(s.X, 100*e.Effect), append(s.Y, float64(len(f.Y.Labels)))
			s.Lo, s.Hi = append(s.Lo, 100*e.Lo), append(s.Hi, 100*e.Hi)
			f.Y.Labels = append(f.Y.Labels, v.Label(e))
		}
		for _, s := range []picture.Series{certain, others} {
			if len(s.X) > 0 {
				f.Series = append(f.Series, s)
			}
		}
		out = append(out, f)
	}
	return out
}
