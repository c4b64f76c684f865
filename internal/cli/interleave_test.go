package cli

import (
	"strings"
	"testing"
)

// What drifts hits both workloads alike: each comes first as often.
func TestInTurns(t *testing.T) {
	var tasks []task
	for _, name := range []string{"a", "b"} {
		for i := range 4 {
			tasks = append(tasks, task{file: name, i: i})
		}
	}
	var got []string
	for _, k := range inTurns(tasks, 4) {
		got = append(got, k.file+string(rune('0'+k.i)))
	}
	if want := "a0 b0 b1 a1 a2 b2 b3 a3"; strings.Join(got, " ") != want {
		t.Errorf("got %s, want %s", strings.Join(got, " "), want)
	}
}
