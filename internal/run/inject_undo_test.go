package run

import (
	"errors"
	"strings"
	"testing"
)

// TestUndoneLater: what could not be undone stays known, is tried again, and the report says what
// became of it, with the command that does it by hand.
func TestUndoneLater(t *testing.T) {
	failure := errors.New("no lock")
	for _, tt := range []struct {
		name     string
		failures int
		exit     bool // the program exits without waiting
		left     bool
		want     string
	}{
		{"at the end", 1, false, false, "--fault net-loss was undone only when the run had ended: no lock"},
		{"never", 9, false, true, "--fault net-loss was not undone: no lock; by hand: iptables -D"},
		{"at an exit", 2, true, false, ""},
		{"not at an exit", 9, true, true, "--fault net-loss was not undone: no lock; by hand: iptables -D"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			printed := ""
			e := &execution{Job: Job{Logf: func(_ string, args ...any) { printed, _ = args[0].(string) }}}
			m := &Marker{e: e, ended: true}
			left := tt.failures
			u := &undoing{fault: "net-loss", byHand: func() string { return "iptables -D" }, undo: func() error {
				if left == 0 {
					return nil
				}
				left--
				return failure
			}}
			j := &injector{e: e, mark: m, lasting: map[*undoing]bool{u: true}}
			if err := j.undo(u); !errors.Is(err, failure) || !j.lasting[u] {
				t.Fatalf("got %v, and it is known: %v", err, j.lasting[u])
			}
			if tt.exit {
				j.release()
			} else {
				j.undoRest()
				printed = strings.Join(j.problems, "; ")
			}
			if printed != tt.want {
				t.Errorf("got %q, want %q", printed, tt.want)
			}
			if j.lasting[u] != tt.left {
				t.Errorf("it is among those that are not undone: %v, want %v", j.lasting[u], tt.left)
			}
		})
	}
}
