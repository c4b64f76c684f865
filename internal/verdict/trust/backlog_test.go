package trust

import (
	"strings"
	"testing"
	"time"

	"carronade/test/testkit/assert"
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
		{"grows", []float64{10, 500, 1100, 1500, 2100, 2600, 3000, 3600}, true, false, "the reader is 2.05 x slower than the writer: the backlog grew from 10 to 3,600 events, by 513/s"},
		{"grows by little", []float64{10, 11, 12, 13, 14, 15, 16, 17}, true, true, ""},
		{"one stall", []float64{10, 12, 9000, 4000, 11, 10, 12, 11}, true, true, ""},
		{"stops near the end", []float64{0, 0, 0, 0, 0, 0, 0, 0, 1000, 2000}, true, false, "the reader is 1.29 x slower than the writer: the backlog grew from 0 to 2,000 events, by 222/s"},
		{"stops after three quarters", append(make([]float64, 45), 1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000, 10000, 11000, 12000, 13000, 14000, 15000), true, false, "grew"},
		{"a late poll at the end", []float64{0, 300, 0, 200, 0, 400, 100, 0, 0, 900}, true, true, ""},
		{"falls", []float64{9000, 8000, 7000, 6000, 5000, 4000, 3000, 2000}, true, true, ""},
	} {
		var b Backlog // of what is written
		for i, x := range c.behind {
			b.Add(time.Duration(i+1)*time.Second, time.Second, x, 1000)
		}
		known, ok, text := b.KeepsUp()
		assert.True(t, known == c.known && ok == c.ok && strings.Contains(text, c.text),
			"%s: known %v, ok %v, %q; want %v, %v, %q", c.name, known, ok, text, c.known, c.ok, c.text)
	}
}

// TestFarBehind: the words of readers that fall far behind.
func TestFarBehind(t *testing.T) {
	for _, c := range []struct {
		name  string
		read  bool
		grows float64 // a second
		moved float64 // a second
		want  string
	}{
		{"a consumer", true, 21_000, 2283, "the reader is 10.2 x slower than the writer: the backlog grew from 21,000 to 210,000 events, by 21 k/s"},
		{"a round trip", false, 21_000, 23_283, "the reader is 10.2 x slower than the writer: the backlog grew from 21,000 to 210,000 events, by 21 k/s"},
		{"nothing is read", true, 21_000, 0, "nothing is read: the backlog grew from 21,000 to 210,000 events, by 21 k/s"},
		{"hardly anything is read", false, 21_000, 21_100, "the reader is 211 x slower than the writer"},
	} {
		b := Backlog{Read: c.read}
		for i := range 10 {
			b.Add(time.Duration(i+1)*time.Second, time.Second, float64(i+1)*c.grows, c.moved)
		}
		if known, ok, got := b.KeepsUp(); !known || ok || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: got %v, %v, %q, want %q", c.name, known, ok, got, c.want)
		}
	}
}
