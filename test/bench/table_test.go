package bench

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carronade/test/testkit/assert"
)

func TestSpread(t *testing.T) {
	tests := []struct {
		name string
		in   []float64
		want spread
	}{
		{"one", []float64{3}, spread{3, 3, 3, 1}},
		{"odd", []float64{5, 1, 3}, spread{3, 1, 5, 3}},
		{"even", []float64{4, 1, 3, 2}, spread{2.5, 1, 4, 4}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			assert.Same(t, spreadOf(tt.in), tt.want, "spread")
		})
	}
	got := spreadOf(nil)
	assert.True(t, got.N == 0 && math.IsNaN(got.Median), "without numbers: got %v, want NaN", got)
}

// one is the spread of a single run.
func one(v float64) spread { return spreadOf([]float64{v}) }

func TestVerdict(t *testing.T) {
	tests := []struct {
		name string
		line line
		want string
	}{
		{"above both", line{Carronade: one(30), Peer: "p", Theirs: one(2), Must: atLeast(10), Aim: atLeast(14)}, "yes, and the aim"},
		{"above the first", line{Carronade: one(24), Peer: "p", Theirs: one(2), Must: atLeast(10), Aim: atLeast(14)}, "yes"},
		{"below", line{Carronade: one(18), Peer: "p", Theirs: one(2), Must: atLeast(10), Aim: atLeast(14)}, "**no**"},
		{"cheap", line{Carronade: one(1), Peer: "p", Theirs: one(13), Must: atMost(1.0 / 12)}, "yes"},
		{"expensive", line{Carronade: one(1), Peer: "p", Theirs: one(11), Must: atMost(1.0 / 12)}, "**no**"},
		{"no bound", line{Carronade: one(1), Peer: "p", Theirs: one(11)}, ""},
		{"only an aim", line{Carronade: one(31e6), Aim: atLeast(30e6)}, "yes, and the aim"},
		{"only an aim, missed", line{Carronade: one(29e6), Aim: atLeast(30e6)}, "aim missed"},
		{"median", line{Carronade: spreadOf([]float64{1, 2, 9}), Must: atMost(5)}, "yes"},
		{"worst", line{Carronade: spreadOf([]float64{1, 2, 9}), Must: atMost(5), Worst: true}, "**no**"},
		{"worst of a lower bound", line{Carronade: spreadOf([]float64{1, 2, 9}), Must: atLeast(2), Worst: true}, "**no**"},
		{"no numbers of ours", line{Carronade: spreadOf(nil), Must: atMost(5)}, "not measured"},
		{"no numbers of theirs", line{Carronade: one(1), Peer: "p", Theirs: spreadOf(nil), Must: atLeast(5)}, "not measured"},
		{"a fault", line{Carronade: one(1), Must: atMost(5), Fault: "it broke"}, "not measured"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, tt.line.verdict(), tt.want)
		})
	}
}

func TestTable(t *testing.T) {
	got := Table([]line{
		{Work: "produce", Metric: eventsPerS, Carronade: spreadOf([]float64{38.56e6, 30e6, 40e6}), Peer: "java", Theirs: spreadOf([]float64{1.5e6, 1.4e6, 1.6e6}), Must: atLeast(10), Aim: atLeast(14)},
		{Work: "produce", Metric: eventsPerS, Carronade: spreadOf([]float64{38.56e6, 30e6, 40e6}), Peer: "kcat", Theirs: spreadOf([]float64{4e6, 0.9e6, 4e6}), Must: atLeast(10)},
		{Work: "produce", Metric: cpuPerEvent, Carronade: one(0.02), Peer: "java", Theirs: one(1), Must: atMost(1.0 / 12)},
		{Work: "memory", Metric: maxRSS, Carronade: one(34.9 * (1 << 20)), Must: atMost(150 << 20), Worst: true},
		{Work: "open", Metric: deviation, Carronade: spreadOf([]float64{0, 0, 0}), Must: atMost(0.001)},
		{Work: "consume", Metric: eventsPerS, Fault: "java: a|b"},
		{Work: "null", Metric: eventsPerS, Carronade: one(5e6), Aim: atLeast(9e6)},
	})
	want := `| work | measure | carronade | peer | ratio | must reach |
|---|---|---|---|---|---|
| produce | events/s | 38.6 M/s (30.0..40.0) | java: 1.50 M/s (1.40..1.60) | 25.7 x | at least 10.0 x, aim 14.0 x |
| | | | kcat: 4.00 M/s (900 k/s..4.00 M/s) | 9.64 x | at least 10.0 x: **no** |
| | CPU an event | 0.0200 us | java: 1.00 us | 1/50.0 | at most 1/12.0 |
| memory | max RSS, worst run | 34.9 MiB | | | at most 150 MiB |
| open | sent, off by | 0 % | | | at most 0.100 % |
| consume | events/s | java: a/b | | | not measured |
| null | events/s | 5.00 M/s | | | aim 9.00 M/s: missed |
`
	assert.Same(t, got, want, "table")
}

func TestShow(t *testing.T) {
	tests := []struct {
		name string
		m    metric
		v    float64
		want string
	}{
		{"millions", eventsPerS, 57_412_345, "57.4 M/s"},
		{"nearly a million", eventsPerS, 999_900, "1.00 M/s"},
		{"few", eventsPerS, 12, "12.0 /s"},
		{"bytes", bytesPerS, 4.243e9, "4.24 GB/s"},
		{"a share", cpuShare, 0.0953, "9.53 %"},
		{"a time", sendDelayP50, 56, "56.0 us"},
		{"shrunk", growth, -(1 << 19), "-0.500 MiB"},
		{"nothing", growth, 0, "0 MiB"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, tt.m.show(tt.v), tt.want)
		})
	}
}

func TestBest(t *testing.T) {
	r := &results{
		samples: map[string][]sample{"a": {{eventsPerS: 1}}, "b": {{eventsPerS: 3}}, "c": {{eventsPerS: 2}}},
		faults:  map[string]error{"d": errors.New("it\nbroke")},
	}
	assert.Equal(t, r.best(eventsPerS, "d", "a", "b", "c"), "b", "as the best")
	assert.Equal(t, r.best(eventsPerS, "d"), "d")
	assert.Equal(t, r.fault("a", "d"), "d: it; broke", "the fault")
}

// TestGroups checks that groups have different names and measure something.
func TestGroups(t *testing.T) {
	seen := map[string]bool{}
	for _, g := range groups {
		assert.True(t, !seen[g.name] && g.measure != nil && strings.TrimSpace(g.name) != "",
			"group %q exists twice, or does nothing", g.name)
		seen[g.name] = true
	}
	assert.True(t, len(seen) != 0, "no groups")
}

func TestPublish(t *testing.T) {
	page := "# Speed\n\n" + tableBegins + "old\n" + tableEnds + "\nmore\n"
	tests := []struct {
		name, before, want string
		bad                bool
	}{
		{"a page", page, "# Speed\n\n" + tableBegins + "\nnew\n\n" + tableEnds + "\nmore\n", false},
		{"another file", "old\n", "new\n", false},
		{"no end", "# Speed\n" + tableBegins + "old\n", "# Speed\n" + tableBegins + "old\n", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "page.md")
			assert.OK(t, os.WriteFile(path, []byte(tt.before), 0o644))
			if err := Publish(path, "new\n"); (err != nil) != tt.bad {
				t.Errorf("got error %v, want one: %v", err, tt.bad)
			}
			got := assert.Value(os.ReadFile(path))(t)
			assert.Same(t, string(got), tt.want, "page")
		})
	}
	fresh := filepath.Join(t.TempDir(), "new.md")
	assert.Equal(t, Publish(fresh, "new\n"), nil)
	// The page that make bench updates has a place for the table.
	doc := assert.Value(os.ReadFile("../../docs/performance.md"))(t)
	assert.True(t, strings.Contains(string(doc), tableBegins) && strings.Contains(string(doc), tableEnds),
		"docs/performance.md has no place for the table")
}

func TestMain(m *testing.M) {
	Hook()
	os.Exit(m.Run())
}

// BenchmarkSpeed makes the table. It fails if a line misses its bound or could not be measured.
func BenchmarkSpeed(b *testing.B) {
	s := assert.Value(FromEnv())(b)
	u := NewSuite(b, s)
	u.Measure(b)
	text := u.Document(b)
	fmt.Print("\n", text, "\n", u.Commands(), "\n")
	if s.Out != "" {
		assert.OK(b, Publish(s.Out, text))
	}
	for _, f := range u.Failed() {
		b.Error(f)
	}
}
