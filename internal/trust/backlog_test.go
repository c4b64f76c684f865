package trust

import (
	"strings"
	"testing"
	"time"
)

func TestBacklog(t *testing.T) {
	for _, c := range []struct {
		name      string
		behind    []float64
		known, ok bool
		text      string
	}{
		{"too short", []float64{1, 2, 3, 4}, false, false, "too short"},
		{"none", []float64{0, 0, 0, 0, 0, 0, 0, 0}, true, true, "0 events at the start"},
		{"level", []float64{900, 700, 950, 800, 720, 890, 760, 900}, true, true, "at the end"},
		{"grows", []float64{10, 500, 1100, 1500, 2100, 2600, 3000, 3600}, true, false, "grew from 10 to 3,600"},
		{"grows by little", []float64{10, 11, 12, 13, 14, 15, 16, 17}, true, true, ""},
		{"one stall", []float64{10, 12, 9000, 4000, 11, 10, 12, 11}, true, true, ""},
		{"stops near the end", []float64{0, 0, 0, 0, 0, 0, 0, 0, 1000, 2000}, true, false, "grew from 0 to 2,000"},
		{"stops after three quarters", append(make([]float64, 45), 1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000, 10000, 11000, 12000, 13000, 14000, 15000), true, false, "grew"},
		{"a late poll at the end", []float64{0, 300, 0, 200, 0, 400, 100, 0, 0, 900}, true, true, ""},
		{"falls", []float64{9000, 8000, 7000, 6000, 5000, 4000, 3000, 2000}, true, true, ""},
	} {
		var b Backlog
		for i, x := range c.behind {
			b.Add(time.Duration(i+1)*time.Second, time.Second, x, 1000)
		}
		known, ok, text := b.KeepsUp()
		if known != c.known || ok != c.ok || !strings.Contains(text, c.text) {
			t.Errorf("%s: known %v, ok %v, %q; want %v, %v, %q", c.name, known, ok, text, c.known, c.ok, c.text)
		}
	}
}
