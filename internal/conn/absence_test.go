package conn

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"carronade/test/testkit/assert"
)

func TestAbsence(t *testing.T) {
	var a ConnectFailures
	if got := a.Warnings(); len(got) != 0 {
		t.Errorf("nothing failed: got %q", got)
	}
	a.Note("b:1", 2*time.Second, "timeout")
	a.Note("a:1", 1960*time.Millisecond, "reset")
	a.Note("a:1", 6900*time.Millisecond, "connection refused")
	want := []string{
		"connecting to a:1 failed 2 times, from 1.96 s to 6.9 s after the start; the last error: connection refused",
		"connecting to b:1 failed 2 s after the start: timeout",
	}
	if got := a.Warnings(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q\nwant %q", got, want)
	}
	for i := range 20 {
		a.Note(fmt.Sprintf("c%02d:1", i), time.Second, "timeout")
	}
	got := a.Warnings()
	assert.True(t, len(got) == mostAbsent+1 && got[mostAbsent] == "connecting to 14 other addresses failed, too", "got %q", got)
}
