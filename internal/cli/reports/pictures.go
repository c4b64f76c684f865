package reports

import (
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/judge"
	"carronade/internal/place"
	"carronade/internal/report/picture"
	"carronade/protocol"
)

// drawing holds the flags for pictures.
type drawing struct {
	dir string
	png bool
}

func (d *drawing) bind(fs *pflag.FlagSet, what string) {
	fs.StringVar(&d.dir, "pictures", "", what+" as pictures in the folder `DIR`")
	fs.BoolVar(&d.png, "png", false, "with --pictures: PNG instead of SVG")
}

// write writes each figure to a file, if requested.
func (d *drawing) write(c *cmdutil.Console, figures []picture.Figure) error {
	if d.dir == "" {
		if d.png {
			return &protocol.Error{Err: fmt.Errorf("--png belongs to --pictures"), Hint: "--pictures DIR says where they go"}
		}
		return nil
	}
	fail := func(path string, err error) error {
		return &protocol.Error{Err: fmt.Errorf("--pictures: cannot write %s: %s", path, cmdutil.Reason(err)), Hint: "give a writable folder"}
	}
	if err := place.MkdirAll(d.dir, 0o755); err != nil {
		return fail(d.dir, err)
	}
	for i := range figures {
		f := &figures[i]
		path := filepath.Join(d.dir, f.Name+".svg")
		write := func(w io.Writer) error { return f.SVG(w, picture.Auto) }
		if d.png {
			path = filepath.Join(d.dir, f.Name+".png")
			write = func(w io.Writer) error { return f.PNG(w, picture.Light, 2) }
		}
		if err := cmdutil.WriteFile(path, write); err != nil {
			return fail(path, err)
		}
		c.Note("%s", path)
	}
	return nil
}

// historyFigures draw the history of each judged row, with its steps.
func historyFigures(v *judge.Verification) []picture.Figure {
	var out []picture.Figure
	for i := range v.Groups {
		g := &v.Groups[i]
		for _, r := range g.Rows {
			f := picture.Figure{
				Name:  numbered("history-"+fileName(r.Field), i, len(v.Groups)),
				Title: sentence(r.Title) + " by revision",
				Note:  g.Op + " " + g.Target + ": " + r.Gate + ".",
				X:     picture.Axis{Label: "revision", Labels: []string{}}, Y: axis(r.Title, r.Unit),
			}
			s := picture.Series{Name: "median of its runs", Style: picture.Dots}
			level := picture.Series{Name: "level", Style: picture.Steps, Tone: picture.Grey, Dash: picture.Dashed}
			for k := range g.Revisions {
				l := &g.Revisions[k]
				f.X.Labels = append(f.X.Labels, l.Short())
				y := math.NaN()
				if m := l.Medians[r.Field]; m != nil {
					y = *m * scaleOf(r.Unit)
				}
				s.X, s.Y = append(s.X, float64(k)), append(s.Y, y)
			}
			for _, step := range g.Steps {
				if step.Field != r.Field {
					continue
				}
				if len(level.X) == 0 {
					level.X, level.Y = append(level.X, 0), append(level.Y, step.Before*scaleOf(r.Unit))
				}
				level.X, level.Y = append(level.X, float64(step.Index)-0.5), append(level.Y, step.After*scaleOf(r.Unit))
				f.Marks = append(f.Marks, picture.Mark{From: float64(step.Index) - 0.5, To: float64(step.Index) - 0.5, Text: step.Words()})
			}
			f.Series = append(f.Series, s)
			if n := len(level.X); n > 0 {
				level.X, level.Y = append(level.X, float64(len(g.Revisions)-1)), append(level.Y, level.Y[n-1])
				f.Series = append(f.Series, level)
			}
			out = append(out, f)
		}
	}
	return out
}

// comparisonFigures overlays the distributions of both sides.
func comparisonFigures(c *judge.Comparison) []picture.Figure {
	var out []picture.Figure
	for i := range c.Pairs {
		p := &c.Pairs[i]
		for k, first := range p.Distribution {
			if k > 0 && p.Distribution[k-1].Time == first.Time {
				continue
			}
			title := strings.ReplaceAll(first.Time, "_", " ") + " time"
			f := picture.Figure{
				Name: numbered("compare-"+fileName(first.Time), i, len(c.Pairs)), Title: sentence(title) + " by percentile",
				Note: "Each point is the median over the runs of a side.",
				X:    picture.Axis{Label: "percentile", Unit: picture.Percentile, Log: true}, Y: picture.Axis{Label: title, Unit: picture.Micros, Log: true},
			}
			base := picture.Series{Name: c.Base.Name, Tone: picture.Blue}
			candidate := picture.Series{Name: c.Candidate.Name, Tone: picture.Orange, Dash: picture.Dashed}
			for _, q := range p.Distribution[k:] {
				if q.Time != first.Time {
					break
				}
				x, ok := q.Share()
				if !ok || q.Base == nil || q.Candidate == nil {
					continue
				}
				base.X, base.Y, base.AtLeast = append(base.X, 1/(1-x)), append(base.Y, *q.Base*1e6), append(base.AtLeast, q.BaseAtLeast)
				candidate.X, candidate.Y, candidate.AtLeast = append(candidate.X, 1/(1-x)), append(candidate.Y, *q.Candidate*1e6), append(candidate.AtLeast, q.CandidateAtLeast)
			}
			for _, r := range p.Rows {
				if r.Primary && strings.HasPrefix(r.Field, first.Time+"_p") {
					f.Note += " " + sentence(r.Title) + ": " + r.Words() + "."
				}
			}
			if slices.Contains(base.AtLeast, true) || slices.Contains(candidate.AtLeast, true) {
				f.Note += " Some are lower bounds: events were never answered."
			}
			f.Series = []picture.Series{base, candidate}
			out = append(out, f)
		}
	}
	return out
}

// collationFigures draw the rows of each group by the numbers that matter most.
func collationFigures(c *judge.Collation) []picture.Figure {
	var out []picture.Figure
	for i := range c.Groups {
		for _, n := range c.Drawn(i) {
			var (
				dots  []dot
				bound bool
				unit  string
			)
			for k := range c.Groups[i].Rows {
				l := &c.Groups[i].Rows[k]
				cell, ok := l.Cells[n.Field]
				if !ok {
					continue
				}
				by := scaleOf(cell.Unit)
				one := dot{name: l.Name(), x: cell.Median * by, lo: cell.Median * by, hi: cell.Median * by}
				if one.certain = cell.Lo != nil && cell.Hi != nil; one.certain {
					one.lo, one.hi = *cell.Lo*by, *cell.Hi*by
				}
				dots = append(dots, one)
				bound, unit = bound || cell.AtLeast, cell.Unit
			}
			f := dotPlot(dots, "median, on its 95% interval", "median of too few runs for an interval")
			f.Name = numbered("collate-"+fileName(n.Field), i, len(c.Groups))
			f.Title = sentence(n.Title) + " by " + c.Variable
			f.Note = sentence(n.Better) + " is better."
			if text := c.Apart(i); text != "" {
				f.Note += " With " + text + "."
			}
			if bound {
				f.Note += " Some are lower bounds: events were never answered."
			}
			f.X = axis(n.Title, unit)
			out = append(out, f)
		}
	}
	return out
}

// A dot is a named number on its interval.
type dot struct {
	name      string
	x, lo, hi float64
	certain   bool
}

// dotPlot draws dots below each other, those that are certain and the others as two series.
func dotPlot(dots []dot, certain, others string) picture.Figure {
	f := picture.Figure{Y: picture.Axis{Labels: []string{}}}
	series := [2]picture.Series{
		{Name: certain, Style: picture.Intervals, Tone: picture.Blue},
		{Name: others, Style: picture.Intervals, Tone: picture.Grey},
	}
	for _, d := range slices.Backward(dots) { // the first one is at the top
		s := &series[1]
		if d.certain {
			s = &series[0]
		}
		s.X, s.Y = append(s.X, d.x), append(s.Y, float64(len(f.Y.Labels)))
		s.Lo, s.Hi = append(s.Lo, d.lo), append(s.Hi, d.hi)
		f.Y.Labels = append(f.Y.Labels, d.name)
	}
	for _, s := range series {
		if len(s.X) > 0 {
			f.Series = append(f.Series, s)
		}
	}
	return f
}

// numbered adds a number to a name if there are several.
func numbered(name string, i, of int) string {
	if of == 1 {
		return name
	}
	return fmt.Sprintf("%s-%d", name, i+1)
}

func fileName(field string) string { return strings.ReplaceAll(field, "_", "-") }

func sentence(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// axis returns the axis for a unit of package judge.
func axis(title, unit string) picture.Axis {
	a := picture.Axis{Label: title, Unit: picture.Unit(unit)}
	if unit == "s" {
		a.Unit = picture.Micros
	}
	return a
}

// scaleOf is the factor from a unit to that of its axis.
func scaleOf(unit string) float64 {
	if unit == "s" {
		return 1e6
	}
	return 1
}
