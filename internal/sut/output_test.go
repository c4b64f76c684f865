//go:build linux

package sut

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"carronade/internal/secret"
	"carronade/internal/testkit/assert"
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
		got, cut, _ := o.text(func(s string) string { return s }, time.Hour)
		if got != tt.want || cut != tt.cut {
			t.Errorf("%d lines in %d bytes: got %q and %d before it, want %q and %d", tt.lines, tt.most, got, cut, tt.want, tt.cut)
		}
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
	if got, cut, _ := s.Output(); got != want || cut != 0 {
		t.Errorf("got %q, %d before it, want %q", got, cut, want)
	}
	mu.Lock()
	defer mu.Unlock()
	assert.Equal(t, strings.Join(shown, "\n")+"\n", want, "while it ran")
}

// Masking a long output ends in time: its last lines are kept, all of them masked,
// and what would have taken longer is counted as cut.
func TestOutputIsMaskedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := output{most: keptOutput}
		line := strings.Repeat("x", 1023)
		for range 4 << 10 {
			o.add(line)
		}
		start := time.Now()
		got, cut, late := o.text(func(s string) string {
			<-time.After(100 * time.Millisecond)
			return strings.ReplaceAll(s, "x", "y")
		}, 2*time.Second)
		if took := time.Since(start); took > 3*time.Second {
			t.Errorf("it took %v", took)
		}
		if !late || got == "" || strings.Contains(got, "x") || int64(len(got))+cut != 4<<20 || len(got)%1024 != 0 {
			t.Errorf("got %d bytes after %d, late: %v", len(got), cut, late)
		}
	})
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
		if got, _, _ := o.text(m.Log, time.Hour); strings.Contains(got, canary) || !strings.Contains(got, "settings:") {
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
	if got, _, _ := o.text(m.Log, time.Hour); got != "a line\nand the last one\n" {
		t.Errorf("got %q", got)
	}
}
