package picture

import (
	"fmt"
	"io"
	"strings"

	"carronade/internal/layout"
)

// SVG writes the figure as a self-contained file. It has a title and a description
// for those who cannot see it.
func (f *Figure) SVG(w io.Writer, t Theme) error {
	d := f.layOut(width, parts{title: true, legend: true})
	m := &layout.Markup{}
	f.open(m, d, f.Name, "xmlns", "http://www.w3.org/2000/svg", "width", layout.Number(d.w), "height", layout.Number(d.h))
	m.Open("style")
	m.Raw(styleOf(t))
	m.Close()
	m.Empty("rect", "class", "background", "width", layout.Number(d.w), "height", layout.Number(d.h))
	m.Line()
	d.svg(m)
	m.Close()
	m.Line()
	if _, err := w.Write(m.Bytes()); err != nil {
		return fmt.Errorf("write the picture %s: %w", f.Name, err)
	}
	return nil
}

// inlineGrain is the resolution of a page's static pictures, which a browser shows
// until it has drawn better ones. It is coarse because a page of an hour has forty
// lines.
const inlineGrain = 3

// Inline returns the figure as an element of a page, w pixels wide: without title,
// legend and colors, which the page provides (see Rules). id makes its identifiers
// unique in the page.
func (f *Figure) Inline(id string, w float64) string {
	d := f.layOut(w, parts{grain: inlineGrain})
	m := &layout.Markup{}
	f.open(m, d, id)
	d.svg(m)
	m.Close()
	return m.String()
}

func (f *Figure) open(m *layout.Markup, d *drawing, id string, attributes ...string) {
	attributes = append(attributes, "viewBox", "0 0 "+layout.Number(d.w)+" "+layout.Number(d.h), "role", "img",
		"aria-labelledby", id+"-t "+id+"-d")
	m.Open("svg", attributes...)
	m.Element("title", f.Title, "id", id+"-t")
	m.Element("desc", f.Describe(), "id", id+"-d")
	m.Line()
}

// svg writes the shapes.
func (d *drawing) svg(m *layout.Markup) {
	for i := range d.shapes {
		s := &d.shapes[i]
		switch s.kind {
		case stroke:
			m.Empty("path", "class", s.class, "d", pathText(s.paths))
		case curve:
			m.Empty("path", "class", lineClass(s.tone, s.dash), "d", pathText(s.paths))
		case fill:
			class := s.class
			if class == "bar" {
				class = fmt.Sprintf("bar f%d", s.tone%tones)
			}
			m.Empty("path", "class", class, "d", rectText(s.rects))
		case cells:
			m.Empty("path", "class", fmt.Sprintf("cells h%d", s.level), "d", rectText(s.rects))
		case textShape:
			at := []string{"class", s.class, "x", layout.Number(s.at.x), "y", layout.Number(s.at.y)}
			if s.turn {
				at = append(at, "transform", fmt.Sprintf("rotate(-90 %s %s)", layout.Number(s.at.x), layout.Number(s.at.y)))
			}
			m.Element("text", s.text, at...)
		}
		m.Line()
	}
}

// lineClass is the class of a series' line.
func lineClass(t Tone, d Dash) string { return fmt.Sprintf("line t%d d%d", t%tones, d%dashes) }

// pathText is a path of straight lines. A path of one point is a dot.
func pathText(paths [][]point) string {
	var b []byte
	for _, p := range paths {
		for i, q := range p {
			b = append(b, "ML"[min(i, 1)])
			b = layout.AppendNumber(b, q.x)
			b = append(b, ' ')
			b = layout.AppendNumber(b, q.y)
		}
		if len(p) == 1 {
			b = append(b, "h0"...)
		}
	}
	return string(b)
}

func rectText(rects []rect) string {
	var b []byte
	for _, r := range rects {
		b = append(b, 'M')
		b = layout.AppendNumber(b, r.x)
		b = append(b, ' ')
		b = layout.AppendNumber(b, r.y)
		b = append(b, 'h')
		b = layout.AppendNumber(b, r.w)
		b = append(b, 'v')
		b = layout.AppendNumber(b, r.h)
		b = append(b, 'h')
		b = layout.AppendNumber(b, -r.w)
		b = append(b, 'z')
	}
	return string(b)
}

// shapeRules are the style rules of shapes in both themes.
func shapeRules() string {
	var b strings.Builder
	b.WriteString("text{font:" + layout.Number(fontSize) + "px system-ui,-apple-system,'Segoe UI',Roboto,sans-serif}")
	b.WriteString(".title{font-size:" + layout.Number(titleSize) + "px;font-weight:600}")
	b.WriteString(".middle{text-anchor:middle}.end{text-anchor:end}")
	b.WriteString(".line,.grid,.axis,.mark,.limit{fill:none}.grid,.axis,.mark{stroke-width:1;shape-rendering:crispEdges}.mark{stroke-dasharray:3 3}.limit{stroke-width:2;stroke-dasharray:10 3 2 3}.area{shape-rendering:crispEdges;fill-opacity:" + layout.Number(areaOpacity) + "}")
	b.WriteString(".line{stroke-width:" + layout.Number(lineWidth) + ";stroke-linejoin:round;stroke-linecap:round}.cells{shape-rendering:crispEdges}")
	for d := range dashes {
		if a := DashArray(d); a != "" {
			fmt.Fprintf(&b, ".d%d{stroke-dasharray:%s;stroke-linecap:butt}", d, a)
		}
	}
	return b.String()
}

// colorRules are the color rules of shapes, with literal colors, which every SVG
// viewer supports.
func colorRules(c Colors) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".background{fill:%s}.title,.label{fill:%s}.note{fill:%s}.grid{stroke:%s}.axis,.mark{stroke:%s}.limit{stroke:%s}.pill{fill:%s}.inverse{fill:%s}.band{fill:%s}.stall{fill:%s}.freeze{fill:%s}.fault{fill:%s}",
		c.Background, c.Ink, c.Muted, c.Grid, c.Axis, c.Ink, c.Muted, c.Background, c.Band, c.Stall, c.Freeze, c.Fault)
	for i, tone := range c.Tones {
		fmt.Fprintf(&b, ".t%d{stroke:%s}.f%d{fill:%s}", i, tone, i, tone)
	}
	for i, level := range c.Heat {
		fmt.Fprintf(&b, ".h%d{fill:%s}", i, level)
	}
	return b.String()
}

func styleOf(t Theme) string {
	s := shapeRules() + colorRules(ColorsOf(t))
	if t == Auto {
		s += "@media(prefers-color-scheme:dark){" + colorRules(dark) + "}"
	}
	return s
}

// Rules are a page's style rules for the figures of Inline, with the theme's colors
// as custom properties: --background, --ink, --muted, --grid, --axis, --band,
// --stall, --freeze, --fault, --good, --bad, --caution, --live, --t0 and so on, --h0 and so on.
func Rules() string {
	return shapeRules() + colorRules(eachColor(func(name string) string { return "var(--" + name + ")" }))
}

// Properties are the custom properties that Rules uses, for a theme.
func Properties(t Theme) string {
	var b strings.Builder
	c := ColorsOf(t)
	for _, p := range []struct{ name, value string }{
		{"background", c.Background},
		{"ink", c.Ink},
		{"muted", c.Muted},
		{"grid", c.Grid},
		{"axis", c.Axis},
		{"band", c.Band},
		{"stall", c.Stall},
		{"freeze", c.Freeze},
		{"fault", c.Fault},
		{"good", c.Good},
		{"bad", c.Bad},
		{"caution", c.Caution},
		{"live", c.Live},
	} {
		fmt.Fprintf(&b, "--%s:%s;", p.name, p.value)
	}
	for i, v := range c.Tones {
		fmt.Fprintf(&b, "--t%d:%s;", i, v)
	}
	for i, v := range c.Heat {
		fmt.Fprintf(&b, "--h%d:%s;", i, v)
	}
	return b.String()
}

func eachColor(of func(name string) string) (c Colors) {
	c.Background, c.Ink, c.Muted, c.Grid, c.Axis, c.Band = of("background"), of("ink"), of("muted"), of("grid"), of("axis"), of("band")
	c.Stall, c.Freeze, c.Fault = of("stall"), of("freeze"), of("fault")
	c.Good, c.Bad, c.Caution, c.Live = of("good"), of("bad"), of("caution"), of("live")
	for i := range c.Tones {
		c.Tones[i] = of(fmt.Sprintf("t%d", i))
	}
	for i := range c.Heat {
		c.Heat[i] = of(fmt.Sprintf("h%d", i))
	}
	return c
}
