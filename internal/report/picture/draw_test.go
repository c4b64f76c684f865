package picture

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"strings"
	"testing"

	"carronade/internal/report"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// hostile is external text that would be harmful if it were not escaped.
const hostile = `</title><script>alert("x")</script><!-- ' & ]]> ` + "\x00\x1b[31m\xff\u202e"

func wellFormed(t *testing.T, name string, b []byte) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(b))
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		assert.OK(t, err, "%s is not XML", name)
		if e, ok := tok.(xml.StartElement); ok && (e.Name.Local == "script" || e.Name.Local == "image" || e.Name.Local == "foreignObject") {
			t.Errorf("%s has an element %s", name, e.Name.Local)
		}
	}
}

func TestSVG(t *testing.T) {
	hostileReport := measured("a", 8, 1)
	hostileReport.Intervals[4].Classes.Add(hostile, 4, 1)
	hostileReport.Gauges[2].Name = hostile
	hostileReport.Gauges[2].Unit = hostile
	other := measured(hostile, 8, 2)
	other.Labels = map[string]string{hostile: hostile}
	for _, c := range []struct {
		name string
		ds   []*report.Document
	}{
		{"one", []*report.Document{measured("a", 200, 1)}},
		{"external text", []*report.Document{hostileReport}},
		{"several with external text", []*report.Document{hostileReport, other}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, f := range Of(c.ds...) {
				for _, theme := range []Theme{Auto, Light, Dark}[:testkit.Cases(3, 1)] {
					var b bytes.Buffer
					assert.OK(t, f.SVG(&b, theme))
					wellFormed(t, f.Name, b.Bytes())
					for _, want := range []string{`role="img"`, "<title id=", "<desc id=", `aria-labelledby="` + f.Name + "-t " + f.Name + `-d"`} {
						assert.True(t, strings.Contains(b.String(), want), "%s: no %s", f.Name, want)
					}
					got := strings.Contains(b.String(), "prefers-color-scheme")
					assert.True(t, got == (theme == Auto), "%s follows the screen's theme: got %v, want %v", f.Name, got, theme == Auto)
				}
				assert.True(t, strings.Trim(f.Name, "abcdefghijklmnopqrstuvwxyz0123456789-") == "",
					"name of a figure: got %q, want letters, digits and dashes", f.Name)
				wellFormed(t, f.Name, []byte(f.Inline("x-"+f.Name, 600)))
				if got := f.Describe(); strings.Contains(got, "NaN") || !strings.Contains(got, " to ") && !strings.Contains(got, "timeout") && !strings.Contains(got, "p50") {
					t.Errorf("description of %s: got %q, want its numbers", f.Name, got)
				}
			}
		})
	}
}

// PNGOf makes a picture of exactly the requested size, and the drawing fits in it.
func TestPNGOf(t *testing.T) {
	testkit.Need(t, "a second")
	for _, size := range []image.Point{{1600, 400}, {600, 900}, {300, 60}} {
		for _, f := range Of(measured("a", 20, 1)) {
			var b bytes.Buffer
			assert.OK(t, f.PNGOf(&b, Light, 1.25, size))
			m := assert.Value(png.Decode(&b))(t, "%s is not a PNG", f.Name)
			assert.Equal(t, m.Bounds().Size(), size, "%s", f.Name)
			if size.Y < 400 {
				continue // too low for all
			}
			d := f.layOut(float64(size.X)/1.25, parts{title: true, legend: true, height: float64(size.Y) / 1.25})
			h := float64(size.Y) / 1.25
			assert.True(t, d.h <= math.Ceil(h), "%s: laid out %v high, want %v", f.Name, d.h, h)
		}
	}
}

func TestPNG(t *testing.T) {
	figures := Of(measured("a", 20, 1))
	for i, f := range figures[:testkit.Cases(len(figures), 3)] {
		for _, c := range []struct {
			theme Theme
			scale float64
			wide  int
		}{{Light, 1, 960}, {Dark, 2, 1920}, {Auto, math.NaN(), 960}} {
			if i > 0 && c.scale != 1 {
				continue
			}
			var b bytes.Buffer
			assert.OK(t, f.PNG(&b, c.theme, c.scale))
			m := assert.Value(png.Decode(&b))(t, "%s is not a PNG", f.Name)
			assert.Equal(t, m.Bounds().Dx(), c.wide, "%s pixels wide", f.Name)
			background := rgba(ColorsOf(c.theme).Background)
			got := m.At(1, 1)
			assert.True(t, got == background, "%s: got %v in the corner, want the background %v", f.Name, got, background)
			// Each line's color appears somewhere.
			seen := map[color.RGBA]bool{}
			switch m := m.(type) {
			case *image.RGBA:
				for i := 0; i < len(m.Pix); i += 4 {
					seen[color.RGBA{m.Pix[i], m.Pix[i+1], m.Pix[i+2], m.Pix[i+3]}] = true
				}
			default:
				t.Fatalf("%s is a %T", f.Name, m)
			}
			for _, s := range f.Series {
				tone := ColorsOf(c.theme).Tones[s.Tone]
				assert.True(t, seen[rgba(tone)], "%s: no pixel of %s, the color of %q", f.Name, tone, s.Name)
			}
			assert.True(t, f.Heat == nil || seen[rgba(ColorsOf(c.theme).Heat[heatLevels-1])], "%s: no pixel of the highest level", f.Name)
		}
	}
}

// Points joined within a column of pixels keep their extremes.
func TestThinKeepsExtremes(t *testing.T) {
	var p []point
	for i := range 10_000 {
		y := 50.0
		switch i {
		case 4321:
			y = 1
		case 8765:
			y = 99
		}
		p = append(p, point{float64(i) / 100, y})
	}
	got := thin([][]point{p}, rect{0, 0, 100, 100}, 1)[0]
	assert.True(t, len(got) <= 4*101, "points: got %d, want at most four per column", len(got))
	lo, hi := 50.0, 50.0
	for _, q := range got {
		lo, hi = min(lo, q.y), max(hi, q.y)
	}
	assert.True(t, lo == 1 && hi == 99, "extremes: got %v and %v, want 1 and 99", lo, hi)
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		name   string
		axis   Axis
		lo, hi float64
		n      int
		want   string
	}{
		{"a rate", Axis{Unit: PerSecond}, 0, 10_500, 6, "0 2 k/s 4 k/s 6 k/s 8 k/s 10 k/s"},
		{"seconds", Axis{Unit: Seconds}, 0, 10, 6, "0 2 s 4 s 6 s 8 s 10 s"},
		{"an hour", Axis{Unit: Seconds}, 0, 3600, 7, "0 10m00s 20m00s 30m00s 40m00s 50m00s 1h00m"},
		{"bytes", Axis{Unit: Bytes}, 0, 100 << 20, 5, "0 32 MiB 64 MiB 96 MiB"},
		{"times over decades", Axis{Unit: Micros, Log: true}, 90, 1.1e6, 6, "100 us 1 ms 10 ms 100 ms 1 s"},
		{"times within one", Axis{Unit: Micros, Log: true}, 100, 900, 6, "100 us 200 us 300 us 500 us 700 us"},
		{"percentiles", Axis{Unit: Percentile, Log: true}, 1, 10_000, 8, "p0 p50 p90 p99 p99.9 p99.99"},
		{"names", Axis{Labels: []string{"a", "b", "c"}}, -0.5, 2.5, 2, "a c"},
		{"nothing", Axis{}, 0, 0, 5, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, k := range ticks(c.axis, c.lo, c.hi, c.n) {
				if k.text != "" {
					got = append(got, k.text)
				}
			}
			assert.Equal(t, strings.Join(got, " "), c.want, "ticks")
		})
	}
}

func TestFormat(t *testing.T) {
	for _, c := range []struct {
		v    float64
		unit Unit
		want string
	}{
		{1234, Micros, "1.23 ms"},
		{0.5, Micros, "500 ns"},
		{0, Micros, "0 s"},
		{90, Seconds, "1m30s"},
		{12_345, PerSecond, "12.3 k/s"},
		{3 << 20, Bytes, "3 MiB"},
		{3 << 20, BytesPerS, "3 MiB/s"},
		{12.345, Share, "12.3%"},
		{1000, Percentile, "p99.9"},
		{1, Percentile, "p0"},
		{0.25, Cores, "0.25 cores"},
		{1e21, Events, "1e+21"},
		{-1500, Plain, "-1.5 k"},
		{math.NaN(), Plain, "-"},
		{math.Inf(1), Micros, "-"},
	} {
		assert.Equal(t, Format(c.v, c.unit), c.want, "%v %s", c.v, c.unit)
	}
}

func TestTable(t *testing.T) {
	figures := Of(measured("a", 100, 1))
	for i := range figures {
		f := &figures[i]
		table := f.Table(40)
		n := len(table.Rows)
		assert.True(t, n != 0 && n <= 75, "%s: got %d rows, want some and not too many", f.Name, n)
		for _, row := range table.Rows {
			assert.Must(t, len(row) == len(table.Head), "%s: got %d cells in a row, want %d", f.Name, len(row), len(table.Head))
		}
	}
	throughput := figure(t, figures, "throughput").Table(10)
	got := throughput.Rows[3][1]
	assert.True(t, got == "1.04 k/s" && throughput.Note != "", "a joined rate: got %q with the note %q, want its mean, and a note", got, throughput.Note)
}
