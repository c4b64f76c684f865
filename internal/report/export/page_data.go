package export

import (
	"encoding/json"
	"math"
	"strconv"

	"carronade/internal/report/picture"
)

// encode returns the figures as JSON for the script: numbers with four significant digits,
// more than a picture shows; abscissas once for all lines that share them; rows of a heat map
// by their distance from the row before. encoding/json escapes everything that could end the
// script element.
func encode(figures []picture.Figure) []byte {
	e := &encoder{}
	e.b = append(e.b, `{"figures":[`...)
	for i := range figures {
		if i > 0 {
			e.b = append(e.b, ',')
		}
		e.figure(&figures[i])
	}
	e.b = append(e.b, `],"xs":[`...)
	for i, xs := range e.xs {
		if i > 0 {
			e.b = append(e.b, ',')
		}
		e.abscissas(xs)
	}
	e.b = append(e.b, "]}"...)
	return e.b
}

type encoder struct {
	b  []byte
	xs [][]float64
}

func (e *encoder) raw(s string) { e.b = append(e.b, s...) }

func (e *encoder) text(s string) {
	b, err := json.Marshal(s)
	if err != nil {
		b = []byte(`""`) // a string always encodes
	}
	e.b = append(e.b, b...)
}

func (e *encoder) number(v float64, digits int) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		e.raw("null")
		return
	}
	e.b = strconv.AppendFloat(e.b, v, 'g', digits, 64)
}

// instant is a time since the start: to the millisecond.
func (e *encoder) instant(v float64) {
	e.b = strconv.AppendFloat(e.b, math.Round(v*1000)/1000, 'f', -1, 64)
}

func (e *encoder) figure(f *picture.Figure) {
	e.raw(`{"name":`)
	e.text(f.Name)
	e.raw(`,"title":`)
	e.text(f.Title)
	e.raw(`,"shared":` + strconv.FormatBool(f.Shared))
	e.raw(`,"middles":` + strconv.FormatBool(f.Middles))
	e.raw(`,"x":`)
	e.axis(&f.X)
	e.raw(`,"y":`)
	e.axis(&f.Y)
	e.raw(`,"marks":[`)
	for i, m := range f.Marks {
		if i > 0 {
			e.raw(",")
		}
		e.raw("[")
		e.instant(m.From)
		e.raw(",")
		e.instant(m.To)
		e.raw(",")
		e.text(m.Text)
		e.raw("," + strconv.Itoa(int(m.Kind)) + "]")
	}
	e.raw(`],"limits":[`)
	for i, l := range f.Limits {
		if i > 0 {
			e.raw(",")
		}
		e.raw(`{"value":`)
		e.number(l.Value, 6)
		e.raw(`,"text":`)
		e.text(l.Text)
		e.raw(`,"x":` + strconv.FormatBool(l.OnX) + "}")
	}
	e.raw(`],"series":[`)
	for i := range f.Series {
		if i > 0 {
			e.raw(",")
		}
		e.series(&f.Series[i])
	}
	e.raw("]")
	if f.Heat != nil {
		e.raw(`,"heat":`)
		e.heat(f.Heat)
	}
	e.raw("}")
}

func (e *encoder) axis(a *picture.Axis) {
	e.raw(`{"label":`)
	e.text(a.Label)
	e.raw(`,"unit":`)
	e.text(string(a.Unit))
	e.raw(`,"log":` + strconv.FormatBool(a.Log) + `,"zero":` + strconv.FormatBool(a.Zero))
	if a.Max > a.Min {
		e.raw(`,"min":`)
		e.number(a.Min, 6)
		e.raw(`,"max":`)
		e.number(a.Max, 6)
	}
	if a.Labels != nil {
		e.raw(`,"labels":[`)
		for i, l := range a.Labels {
			if i > 0 {
				e.raw(",")
			}
			e.text(l)
		}
		e.raw("]")
	}
	e.raw("}")
}

func (e *encoder) series(s *picture.Series) {
	e.raw(`{"name":`)
	e.text(s.Name)
	e.raw(`,"tone":` + strconv.Itoa(int(s.Tone)) + `,"dash":` + strconv.Itoa(int(s.Dash)) + `,"style":` + strconv.Itoa(int(s.Style)))
	e.raw(`,"x":` + strconv.Itoa(e.share(s.X)))
	e.numbers("y", s.Y)
	if s.Filled {
		e.raw(`,"filled":true`)
	}
	if s.Style == picture.Ranges {
		path, filled := s.Symbol.Sample()
		e.raw(`,"filled":` + strconv.FormatBool(filled) + `,"symbol":`)
		e.text(path)
		e.numbers("lo", s.Lo)
		e.numbers("hi", s.Hi)
	}
	if s.AtLeast != nil {
		e.raw(`,"least":[`)
		first := true
		for i, l := range s.AtLeast {
			if l {
				if !first {
					e.raw(",")
				}
				first = false
				e.b = strconv.AppendInt(e.b, int64(i), 10)
			}
		}
		e.raw("]")
	}
	e.raw("}")
}

// numbers is a list of values.
func (e *encoder) numbers(name string, of []float64) {
	e.raw(`,"` + name + `":[`)
	for i, v := range of {
		if i > 0 {
			e.raw(",")
		}
		e.number(v, 4)
	}
	e.raw("]")
}

// share returns the index of a list of abscissas; most lines share one.
func (e *encoder) share(xs []float64) int {
	for i, have := range e.xs {
		if len(have) != len(xs) {
			continue
		}
		same := true
		for k := range xs {
			if xs[k] != have[k] {
				same = false
				break
			}
		}
		if same {
			return i
		}
	}
	e.xs = append(e.xs, xs)
	return len(e.xs) - 1
}

func (e *encoder) abscissas(xs []float64) {
	e.raw("[")
	for i, x := range xs {
		if i > 0 {
			e.raw(",")
		}
		e.number(x, 7)
	}
	e.raw("]")
}

func (e *encoder) heat(h *picture.Heat) {
	n := len(h.Edges)
	e.raw(`{"low":`)
	e.number(h.Edges[0], 6)
	e.raw(`,"high":`)
	e.number(h.Edges[n-1], 6)
	e.raw(`,"rows":` + strconv.Itoa(n-1) + `,"columns":[`)
	for i := range h.Columns {
		if i > 0 {
			e.raw(",")
		}
		c := &h.Columns[i]
		e.raw("[")
		e.instant(c.From)
		e.raw(",")
		e.instant(c.To)
		last := 0
		for k, r := range c.Rows {
			e.raw(",")
			e.b = strconv.AppendInt(e.b, int64(r-last), 10)
			e.raw(",")
			e.b = strconv.AppendUint(e.b, c.Counts[k], 10)
			last = r
		}
		e.raw("]")
	}
	e.raw("]}")
}
