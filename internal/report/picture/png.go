package picture

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"math"
	"strings"
	"sync"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"
)

// maxScale limits a PNG's size: a scale of 8 is 7,680 pixels wide.
const maxScale = 8

// PNG writes the figure as a PNG with scale pixels per pixel of the SVG: 2 is sharp
// on most screens and on paper. Scales are limited to a valid range.
func (f *Figure) PNG(w io.Writer, t Theme, scale float64) error {
	scale = bounded(scale)
	d := f.layOut(width, parts{title: true, legend: true})
	return f.png(w, t, scale, d, d.pixels(scale))
}

// PNGOf writes the figure as a PNG of exactly this size in pixels, with scale
// pixels per pixel of the SVG: a larger scale makes text larger and leaves less
// room for the rest. Whatever does not fit is cut off.
func (f *Figure) PNGOf(w io.Writer, t Theme, scale float64, size image.Point) error {
	scale = bounded(scale)
	d := f.layOut(float64(size.X)/scale, parts{title: true, legend: true, height: float64(size.Y) / scale})
	return f.png(w, t, scale, d, size)
}

// pixels is the size of a drawing in pixels.
func (d *drawing) pixels(scale float64) image.Point {
	return image.Pt(int(math.Ceil(d.w*scale)), int(math.Ceil(d.h*scale)))
}

func bounded(scale float64) float64 {
	if !(scale >= 0.25) {
		return 1
	}
	return min(scale, maxScale)
}

func (f *Figure) png(w io.Writer, t Theme, scale float64, d *drawing, size image.Point) error {
	c, full := ColorsOf(t), d.pixels(scale)
	r := &raster{scale: scale, c: c, img: image.NewRGBA(image.Rect(0, 0, max(size.X, full.X), max(size.Y, full.Y)))}
	draw.Draw(r.img, r.img.Bounds(), image.NewUniform(rgba(c.Background)), image.Point{}, draw.Src)
	for i := range d.shapes {
		if err := r.shape(&d.shapes[i]); err != nil {
			return fmt.Errorf("draw the picture %s: %w", f.Name, err)
		}
	}
	e := png.Encoder{CompressionLevel: png.BestSpeed}
	if err := e.Encode(w, r.img.SubImage(image.Rectangle{Max: size})); err != nil {
		return fmt.Errorf("write the picture %s: %w", f.Name, err)
	}
	return nil
}

// A raster draws shapes as pixels.
type raster struct {
	img   *image.RGBA
	scale float64
	c     Colors
	v     vector.Rasterizer
	faces map[string]font.Face
}

func (r *raster) shape(s *shape) error {
	switch s.kind {
	case stroke:
		paint, dash := r.c.Axis, []float64(nil)
		if strings.HasPrefix(s.class, "grid") {
			paint = r.c.Grid
		}
		wide := 1.0
		switch s.class {
		case "mark":
			dash = []float64{3, 3}
		case "limit":
			paint, wide, dash = r.c.Ink, 2, []float64{10, 3, 2, 3}
		}
		r.lines(s.paths, wide, dash, rgba(paint))
	case curve:
		r.lines(s.paths, lineWidth, strokes[s.dash%dashes], rgba(r.c.Tones[s.tone%tones]))
	case fill:
		paint := r.c.Tones[s.tone%tones]
		switch s.class {
		case OtherPhase.Class():
			paint = r.c.Band
		case Stall.Class():
			paint = r.c.Stall
		case Freeze.Class():
			paint = r.c.Freeze
		case Fault.Class():
			paint = r.c.Fault
		case "pill":
			paint = r.c.Muted
		}
		if strings.HasPrefix(s.class, "area") {
			paint = mix(r.c.Background, paint, areaOpacity)
		}
		r.rects(s.rects, rgba(paint))
	case cells:
		r.rects(s.rects, rgba(r.c.Heat[s.level]))
	case textShape:
		return r.text(s)
	}
	return nil
}

// rects fills rectangles aligned to pixels, so that no seam shows between
// neighbours.
func (r *raster) rects(rects []rect, c color.RGBA) {
	u := image.NewUniform(c)
	for _, q := range rects {
		box := image.Rect(r.px(q.x), r.px(q.y), r.px(q.x+q.w), r.px(q.y+q.h))
		if box.Empty() {
			box.Max = box.Min.Add(image.Pt(max(box.Dx(), 1), max(box.Dy(), 1)))
		}
		draw.Draw(r.img, box, u, image.Point{}, draw.Src)
	}
}

func (r *raster) px(v float64) int { return int(math.Round(v * r.scale)) }

// lines draws paths as polygons: a rectangle for each straight part and a round
// joint at each bend. All have the same orientation, because the rasteriser
// subtracts polygons of the opposite orientation.
func (r *raster) lines(paths [][]point, w float64, dash []float64, c color.RGBA) {
	box, ok := bounds(paths, w)
	if !ok {
		return
	}
	x0, y0 := int(math.Floor(box.x*r.scale)), int(math.Floor(box.y*r.scale))
	area := image.Rect(x0, y0, int(math.Ceil((box.x+box.w)*r.scale)), int(math.Ceil((box.y+box.h)*r.scale)))
	r.v.Reset(area.Dx(), area.Dy())
	half := w / 2 * r.scale
	for _, p := range paths {
		for _, part := range dashed(p, dash) {
			for i := range part {
				part[i] = point{part[i].x*r.scale - float64(x0), part[i].y*r.scale - float64(y0)}
			}
			r.polyline(part, half, dash == nil)
		}
	}
	r.v.Draw(r.img, area, image.NewUniform(c), image.Point{})
}

func (r *raster) polyline(p []point, half float64, round bool) {
	for i := range p {
		if i > 0 {
			r.segment(p[i-1], p[i], half)
		}
		if inner := i > 0 && i < len(p)-1; (inner || round) && half > 0.6 {
			r.dot(p[i], half)
		}
	}
}

func (r *raster) segment(a, b point, half float64) {
	dx, dy := b.x-a.x, b.y-a.y
	l := math.Hypot(dx, dy)
	if l == 0 {
		return
	}
	nx, ny := -dy/l*half, dx/l*half
	r.polygon(point{a.x + nx, a.y + ny}, point{b.x + nx, b.y + ny}, point{b.x - nx, b.y - ny}, point{a.x - nx, a.y - ny})
}

func (r *raster) dot(at point, half float64) {
	var corners [8]point
	for i := range corners {
		s, c := math.Sincos(-float64(i) * math.Pi / 4)
		corners[i] = point{at.x + half*c, at.y + half*s}
	}
	r.polygon(corners[:]...)
}

func (r *raster) polygon(p ...point) {
	r.v.MoveTo(float32(p[0].x), float32(p[0].y))
	for _, q := range p[1:] {
		r.v.LineTo(float32(q.x), float32(q.y))
	}
	r.v.ClosePath()
}

// bounds is the rectangle around paths of width w.
func bounds(paths [][]point, w float64) (rect, bool) {
	x0, y0, x1, y1 := math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)
	for _, p := range paths {
		for _, q := range p {
			x0, y0, x1, y1 = min(x0, q.x), min(y0, q.y), max(x1, q.x), max(y1, q.y)
		}
	}
	return rect{x0 - w, y0 - w, x1 - x0 + 2*w, y1 - y0 + 2*w}, x1 >= x0
}

// dashed cuts a path into its dashes. It always returns copies.
func dashed(p []point, dash []float64) [][]point {
	if len(dash) == 0 {
		return [][]point{append([]point(nil), p...)}
	}
	var out [][]point
	k, left, on := 0, dash[0], true
	part := []point{p[0]}
	for i := 1; i < len(p); i++ {
		a, b := p[i-1], p[i]
		l := math.Hypot(b.x-a.x, b.y-a.y)
		for at := 0.0; at < l; {
			step := min(left, l-at)
			at += step
			left -= step
			q := point{a.x + (b.x-a.x)*at/l, a.y + (b.y-a.y)*at/l}
			if on {
				part = append(part, q)
			}
			if left <= 1e-9 {
				if on {
					out = append(out, part)
				}
				k = (k + 1) % len(dash)
				left, on = dash[k], !on
				part = []point{q}
			}
		}
	}
	if on && len(part) > 1 {
		out = append(out, part)
	}
	return out
}

var fonts = struct {
	regular, bold func() (*sfnt.Font, error)
}{
	sync.OnceValues(func() (*sfnt.Font, error) { return opentype.Parse(goregular.TTF) }),
	sync.OnceValues(func() (*sfnt.Font, error) { return opentype.Parse(gobold.TTF) }),
}

// face returns the font of a class in its size. Faces are not safe for concurrent
// use, so each picture has separate ones.
func (r *raster) face(class string) (font.Face, error) {
	name, size, parse := "label", fontSize, fonts.regular
	if strings.HasPrefix(class, "title") {
		name, size, parse = "title", titleSize, fonts.bold
	}
	if f, ok := r.faces[name]; ok {
		return f, nil
	}
	parsed, err := parse()
	if err != nil {
		return nil, err
	}
	f, err := opentype.NewFace(parsed, &opentype.FaceOptions{Size: size * r.scale, DPI: 72, Hinting: font.HintingNone})
	if err != nil {
		return nil, err
	}
	if r.faces == nil {
		r.faces = map[string]font.Face{}
	}
	r.faces[name] = f
	return f, nil
}

func (r *raster) text(s *shape) error {
	face, err := r.face(s.class)
	if err != nil {
		return err
	}
	paint := r.c.Ink
	switch {
	case strings.HasPrefix(s.class, "note"):
		paint = r.c.Muted
	case strings.HasPrefix(s.class, "inverse"):
		paint = r.c.Background
	}
	long := float64(font.MeasureString(face, s.text)) / 64
	back := 0.0
	switch {
	case strings.HasSuffix(s.class, atMiddle):
		back = long / 2
	case strings.HasSuffix(s.class, atEnd):
		back = long
	}
	if s.turn {
		return r.turned(face, s, long, back, rgba(paint))
	}
	d := font.Drawer{
		Dst: r.img, Src: image.NewUniform(rgba(paint)), Face: face,
		Dot: fixed.Point26_6{X: toFixed(s.at.x*r.scale - back), Y: toFixed(s.at.y * r.scale)},
	}
	d.DrawString(s.text)
	return nil
}

// turned draws text upwards: it draws a horizontal mask and rotates it.
func (r *raster) turned(face font.Face, s *shape, long, back float64, c color.RGBA) error {
	m := face.Metrics()
	up, down := m.Ascent.Ceil(), m.Descent.Ceil()
	w := int(math.Ceil(long)) + 2
	flat := image.NewAlpha(image.Rect(0, 0, w, up+down))
	d := font.Drawer{Dst: flat, Src: image.Opaque, Face: face, Dot: fixed.P(1, up)}
	d.DrawString(s.text)
	upright := image.NewAlpha(image.Rect(0, 0, up+down, w))
	for y := range up + down {
		for x := range w {
			upright.SetAlpha(y, w-1-x, flat.AlphaAt(x, y))
		}
	}
	left := int(math.Round(s.at.x*r.scale)) - up
	top := int(math.Round(s.at.y*r.scale+back)) - w
	draw.DrawMask(r.img, image.Rect(left, top, left+up+down, top+w), image.NewUniform(c), image.Point{}, upright, image.Point{}, draw.Over)
	return nil
}

func toFixed(v float64) fixed.Int26_6 { return fixed.Int26_6(math.Round(v * 64)) }

// widths are the widths of characters as fractions of the font size.
var widths = sync.OnceValue(func() (out [128]float64) {
	f, err := fonts.regular()
	for i := range out {
		out[i] = 0.6
		if err != nil {
			continue // keep the estimate; does not happen, as the font is embedded
		}
		var b sfnt.Buffer
		g, err := f.GlyphIndex(&b, rune(i))
		if err != nil {
			continue
		}
		if a, err := f.GlyphAdvance(&b, g, fixed.I(1000), font.HintingNone); err == nil {
			out[i] = float64(a) / 64 / 1000
		}
	}
	return out
})

// measureText estimates the width of text. SVG viewers have other fonts of similar
// width.
func measureText(s string, size float64) float64 {
	w := widths()
	sum := 0.0
	for _, r := range s {
		if r < 128 {
			sum += w[r]
		} else {
			sum += 0.7
		}
	}
	return sum * size
}
