//go:build linux

package system

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"carronade/internal/secret"
	"carronade/test/testkit/assert"
)

// An output keeps whole lines of the end, within its limit, and counts the rest.
func TestOutputKeepsTheEnd(t *testing.T) {
	for _, tt := range []struct {
		most, lines int
		want        string
		cut         int64
	}{
		{100, 3, "line 0\nline 1\nline 2\n", 0},
		{14, 3, "line 1\nline 2\n", 7},
		{15, 3, "line 1\nline 2\n", 7},
		{20, 9, "line 7\nline 8\n", 49},
		{6, 2, "", 14}, // a line that is longer than all
		{14, 0, "", 0},
	} {
		o := output{most: tt.most}
		for i := range tt.lines {
			o.add(fmt.Sprint("line ", i))
		}
		assert.True(t, len(o.buf) < 2*tt.most || tt.most <= 6, "%d bytes are kept, with a limit of %d", len(o.buf), tt.most)
		got, cut := o.text(new(secret.Mask))
		assert.True(t, got == tt.want && cut == tt.cut,
			"%d lines in %d bytes: got %q and %d before it, want %q and %d", tt.lines, tt.most, got, cut, tt.want, tt.cut)
	}
}

// What a system printed is kept to its end, without secrets, and shown while it runs.
func TestOutputOfASystem(t *testing.T) {
	addr := free(t)
	spec := specOf(t, "serve", addr, "password="+canary)
	spec.Listen = []string{addr}
	var mu sync.Mutex
	var shown []string
	spec.Output = func(line string) {
		mu.Lock()
		defer mu.Unlock()
		shown = append(shown, line)
	}
	s := start(t, spec)
	assert.OK(t, s.Stop())
	want := "listening on " + addr + " password=***\nbye\n"
	got, cut := s.Output()
	assert.True(t, got == want && cut == 0, "got %q, %d before it, want %q", got, cut, want)
	mu.Lock()
	defer mu.Unlock()
	got = strings.Join(shown, "\n") + "\n"
	assert.True(t, got == want, "got %q while it ran, want %q", got, want)
}

// The last 10 MiB of a log are kept, all of them, without secrets.
func TestLongOutputIsKept(t *testing.T) {
	o := output{most: keptOutput}
	var m secret.Mask
	m.Add("x7-plain")
	line := strings.Repeat("a line of a log, ", 30)
	for i := range 2 * keptOutput / len(line) {
		o.add(fmt.Sprintf("%s%08d password=%s x7-plain", line, i, canary))
	}
	printed := int64(len(o.buf)) + o.cut
	got, cut := o.text(&m)
	lines := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
	last := fmt.Sprintf("%08d password=*** ***", 2*keptOutput/len(line)-1)
	if full := len(line) + len("00000000 password= x7-plain\n") + len(canary); printed-cut > keptOutput || printed-cut < int64(keptOutput-full) || int64(len(lines)*full) != printed-cut {
		t.Errorf("%d lines are kept after %d of %d bytes", len(lines), cut, printed)
	}
	if strings.Contains(got, canary) || strings.Contains(got, "x7-plain") || !strings.HasSuffix(lines[len(lines)-1], last) || strings.Count(got, line) != len(lines) {
		t.Errorf("the first and the last of %d lines: %q, %q", len(lines), lines[0], lines[len(lines)-1])
	}
}

// A secret below its name is masked together with it, wherever the output is divided.
func TestOutputIsDividedBetweenEntries(t *testing.T) {
	for _, before := range []int{0, 10, 20, 30, 40} {
		o := output{most: keptOutput}
		o.add(strings.Repeat("a", before))
		for range 4000 {
			o.add("settings:")
			o.add("  password: |")
			o.add("    " + canary)
		}
		var m secret.Mask
		if got, _ := o.text(&m); strings.Contains(got, canary) || !strings.Contains(got, "settings:") {
			t.Errorf("after %d bytes: got %.200q", before, got)
		}
	}
	// The name may be among the lines that are not kept.
	o := output{most: 40}
	for _, line := range []string{strings.Repeat("a", 60), "password: |", "  " + canary, "a line", "and the last one"} {
		o.add(line)
	}
	o.shorten()
	var m secret.Mask
	got, _ := o.text(&m)
	assert.Equal(t, got, "a line\nand the last one\n")
}
