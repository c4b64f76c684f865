package picture

import (
	"math"
	"testing"

	"carronade/test/testkit/assert"
)

// contrast is WCAG's contrast ratio of two colors.
func contrast(a, b string) float64 {
	l := func(hex string) float64 {
		c := rgb(hex)
		return 0.2126*linear(c[0]) + 0.7152*linear(c[1]) + 0.0722*linear(c[2])
	}
	x, y := l(a), l(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// blindness simulates color vision that lacks a kind of cones (Machado, Oliveira
// and Fernandes, 2009, severity 1), on linear colors.
var blindness = map[string][9]float64{
	"full vision":   {1, 0, 0, 0, 1, 0, 0, 0, 1},
	"without red":   {0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998},
	"without green": {0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.011820, 0.042940, 0.968881},
	"without blue":  {1.255528, -0.076749, -0.178779, -0.078411, 0.930809, 0.147602, 0.004733, 0.691367, 0.303900},
	"without color": {0.2126, 0.7152, 0.0722, 0.2126, 0.7152, 0.0722, 0.2126, 0.7152, 0.0722},
}

func seenBy(m [9]float64, hex string) [3]float64 {
	c := rgb(hex)
	in := [3]float64{linear(c[0]), linear(c[1]), linear(c[2])}
	var out [3]float64
	for i := range out {
		v := m[3*i]*in[0] + m[3*i+1]*in[1] + m[3*i+2]*in[2]
		out[i] = curved(min(max(v, 0), 1))
	}
	return lab(out)
}

func distance(a, b [3]float64) float64 {
	return math.Sqrt((a[0]-b[0])*(a[0]-b[0]) + (a[1]-b[1])*(a[1]-b[1]) + (a[2]-b[2])*(a[2]-b[2]))
}

func TestContrast(t *testing.T) {
	for name, c := range map[string]Colors{"light": light, "dark": dark} {
		for _, x := range []struct {
			what, color string
			least       float64
		}{{"ink", c.Ink, 7}, {"muted", c.Muted, 4.5}, {"axis", c.Axis, 2.9}, {"good", c.Good, 5}, {"bad", c.Bad, 5}, {"caution", c.Caution, 5}, {"live", c.Live, 5}} {
			got := contrast(x.color, c.Background)
			assert.True(t, got >= x.least, "%s %s: got a contrast of %.2f, want %.1f", name, x.what, got, x.least)
		}
		for i, tone := range c.Tones {
			for _, back := range []string{c.Background, c.Band, c.Stall, c.Freeze} {
				got := contrast(tone, back)
				assert.True(t, got >= 3, "%s tone %d on %s: got a contrast of %.2f, want 3", name, i, back, got)
			}
		}
	}
}

// The first five colors, which most pictures use, are pairwise distinguishable with
// each kind of color vision. Dashes distinguish lines without color.
func TestColorsForTheColorBlind(t *testing.T) {
	for name, c := range map[string]Colors{"light": light, "dark": dark} {
		for who, m := range blindness {
			if who == "without color" {
				continue
			}
			for i := range Red + 1 {
				for k := range i {
					got := distance(seenBy(m, c.Tones[i]), seenBy(m, c.Tones[k]))
					assert.True(t, got >= 0.06, "%s, %s: tones %d and %d are %.3f apart, want 0.06", name, who, i, k, got)
				}
			}
		}
	}
	seen := map[string]bool{}
	for d := range dashes {
		if a := DashArray(d); seen[a] {
			t.Errorf("two dashes are %q", a)
		} else {
			seen[a] = true
		}
	}
}

// Higher levels are darker on white and lighter on black, step by step, even
// without color, and the lowest level is visible.
func TestHeatIsOrdered(t *testing.T) {
	for name, c := range map[string]Colors{"light": light, "dark": dark} {
		for who, m := range blindness {
			last := math.NaN()
			for i, h := range c.Heat {
				l := seenBy(m, h)[0]
				assert.True(t, !(i > 0 && math.Abs(l-last) < 0.02 || i > 0 && (l < last) != (name == "light")),
					"%s, %s: level %d has a lightness of %.3f after %.3f", name, who, i, l, last)
				last = l
			}
		}
		got := contrast(c.Heat[0], c.Background)
		assert.True(t, got >= 1.35, "%s: the lowest level has a contrast of %.2f, want 1.35", name, got)
	}
	r := ramp("#000000", "#ffffff")
	assert.True(t, r[0] == "#000000" && r[heatLevels-1] == "#ffffff", "ends of a ramp: got %v", r)
}
