package picture

import (
	"image/color"
	"math"
	"strconv"
)

// A Theme selects the colors of a picture.
type Theme uint8

// The themes. Auto is the setting of the viewer's screen; a PNG is then light.
const (
	Auto Theme = iota
	Light
	Dark
)

// Colors are the colors of a theme, as #rrggbb.
type Colors struct {
	Background, Ink, Muted, Grid, Axis, Band string
	Stall, Freeze, Fault                     string // behind the series, as Band is
	Good, Bad, Caution, Live                 string // of text about a result

	Tones [tones]string
	Heat  [heatLevels]string // few to many
}

// The tones have a contrast of at least three to one against their background (WCAG
// 2.2, 1.4.11), and differ sufficiently also for people who lack one of the three
// kinds of cones; tests measure both. They are derived from those of M. Okabe and
// K. Ito, whose light tones are hardly visible on white and whose dark tones are
// hardly visible on black.
var (
	light = Colors{
		Background: "#ffffff", Ink: "#1b1f23", Muted: "#57606a", Grid: "#e4e7eb", Axis: "#8c959f", Band: "#f2f4f6", Stall: "#e8f2fd", Freeze: "#fff0d0", Fault: "#fde8ea", Good: "#00704f", Bad: "#b3202b", Caution: "#8a5300", Live: "#0060a8",
		Tones: [tones]string{
			Blue: "#0060a8", Orange: "#cb7400", Green: "#009270", Purple: "#8f2d7a", Red: "#d1242f",
			Sky: "#3f8fd6", Olive: "#6b6100", Grey: "#6e7781",
		},
		Heat: ramp("#bfe3d6", "#4fb0ae", "#2a6a9e", "#2b1650"),
	}
	dark = Colors{
		Background: "#12161b", Ink: "#e6e9ec", Muted: "#a2abb5", Grid: "#272d34", Axis: "#69727d", Band: "#1b2128", Stall: "#10294a", Freeze: "#3d2a0a", Fault: "#40181b", Good: "#2fd1a2", Bad: "#ff8a82", Caution: "#f2a03d", Live: "#6cb6ff",
		Tones: [tones]string{
			Blue: "#4a9dff", Orange: "#f2a03d", Green: "#2fd1a2", Purple: "#d47ad1", Red: "#ff6b63",
			Sky: "#a5d8ff", Olive: "#d3cb4f", Grey: "#9aa4ae",
		},
		Heat: ramp("#33406f", "#2b7f9e", "#58c98c", "#fdf5a8"),
	}
)

// ColorsOf returns the colors of a theme; Auto's are the light ones.
func ColorsOf(t Theme) Colors {
	if t == Dark {
		return dark
	}
	return light
}

// strokes are the lengths of dashes and gaps, in pixels.
var strokes = [dashes][]float64{
	Solid: nil, Dashed: {6, 4}, Dotted: {2, 3}, DashDot: {8, 3, 2, 3}, LongDash: {12, 4},
}

// DashArray is a dash in SVG's form; "" for a solid line.
func DashArray(d Dash) string {
	out := ""
	for i, v := range strokes[d%dashes] {
		if i > 0 {
			out += " "
		}
		out += strconv.FormatFloat(v, 'f', -1, 64)
	}
	return out
}

// ramp makes the colors of a heat map, evenly along the given ones in OKLab
// (B. Ottosson, 2020), in which equal steps look equal.
func ramp(stops ...string) (out [heatLevels]string) {
	for i := range out {
		at := float64(i) / float64(heatLevels-1) * float64(len(stops)-1)
		k := min(int(at), len(stops)-2)
		a, b, f := lab(rgb(stops[k])), lab(rgb(stops[k+1])), at-float64(k)
		for c := range a {
			a[c] += (b[c] - a[c]) * f
		}
		out[i] = hex(unlab(a))
	}
	return out
}

// areaOpacity is that of the area below a line.
const areaOpacity = 0.2

// mix puts a color with an opacity on another one.
func mix(below, above string, opacity float64) string {
	a, b := rgb(below), rgb(above)
	for i := range a {
		a[i] += (b[i] - a[i]) * opacity
	}
	return hex(a)
}

// rgb parses #rrggbb into components from 0 to 1.
func rgb(hex string) (c [3]float64) {
	n, _ := strconv.ParseUint(hex[1:], 16, 32)
	for i := range c {
		c[i] = float64(n>>(16-8*i)&255) / 255
	}
	return c
}

func hex(c [3]float64) string {
	n := uint64(1)
	for _, v := range c {
		n = n<<8 | uint64(math.Round(min(max(v, 0), 1)*255))
	}
	return "#" + strconv.FormatUint(n, 16)[1:]
}

func rgba(hex string) color.RGBA {
	c := rgb(hex)
	return color.RGBA{R: uint8(c[0]*255 + .5), G: uint8(c[1]*255 + .5), B: uint8(c[2]*255 + .5), A: 255}
}

// linear reverses sRGB's transfer function.
func linear(v float64) float64 {
	if v <= 0.04045 {
		return v / 12.92
	}
	return math.Pow((v+0.055)/1.055, 2.4)
}

func curved(v float64) float64 {
	if v <= 0.0031308 {
		return v * 12.92
	}
	return 1.055*math.Pow(v, 1/2.4) - 0.055
}

func lab(c [3]float64) [3]float64 {
	r, g, b := linear(c[0]), linear(c[1]), linear(c[2])
	l := math.Cbrt(0.4122214708*r + 0.5363325363*g + 0.0514459929*b)
	m := math.Cbrt(0.2119034982*r + 0.6806995451*g + 0.1073969566*b)
	s := math.Cbrt(0.0883024619*r + 0.2817188376*g + 0.6299787005*b)
	return [3]float64{
		0.2104542553*l + 0.7936177850*m - 0.0040720468*s,
		1.9779984951*l - 2.4285922050*m + 0.4505937099*s,
		0.0259040371*l + 0.7827717662*m - 0.8086757660*s,
	}
}

func unlab(c [3]float64) [3]float64 {
	cube := func(v float64) float64 { return v * v * v }
	l := cube(c[0] + 0.3963377774*c[1] + 0.2158037573*c[2])
	m := cube(c[0] - 0.1055613458*c[1] - 0.0638541728*c[2])
	s := cube(c[0] - 0.0894841775*c[1] - 1.2914855480*c[2])
	return [3]float64{
		curved(4.0767416621*l - 3.3077115913*m + 0.2309699292*s),
		curved(-1.2684380046*l + 2.6097574011*m - 0.3413193965*s),
		curved(-0.0041960863*l - 0.7034186147*m + 1.7076147010*s),
	}
}
