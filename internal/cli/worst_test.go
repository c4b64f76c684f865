package cli

import (
	"errors"
	"testing"

	"carronade/internal/command"
)

// TestWorst joins what repetitions came to, in either order.
func TestWorst(t *testing.T) {
	code := func(c int) error { return exitCode{Code: c} }
	ascending := []error{
		nil, code(command.CannotTell), code(command.Untrusted), code(command.Broken), code(command.Failed), code(command.Interrupted),
	}
	for i, a := range ascending {
		for k, b := range ascending {
			if got, want := worst(a, b), ascending[max(i, k)]; !errors.Is(got, want) {
				t.Errorf("of %v and %v: got %v, want %v", a, b, got, want)
			}
		}
	}
}
