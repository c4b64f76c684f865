package cli

import (
	"errors"
	"strings"
	"testing"

	"carronade/internal/host"
	"carronade/test/testkit/assert"
)

// TestWorst combines the outcomes of repetitions, in either order.
func TestWorst(t *testing.T) {
	code := func(c int) error { return exitCode{Code: c} }
	ascending := []error{
		nil, code(host.ExitCannotTell), code(host.ExitUntrusted), code(host.ExitBroken), code(host.ExitFailed), code(host.ExitInterrupted),
	}
	for i, a := range ascending {
		for k, b := range ascending {
			got, want := worst(a, b), ascending[max(i, k)]
			assert.True(t, errors.Is(got, want), "%v and %v: got %v, want %v", a, b, got, want)
		}
	}
}

// TestExitText: the text has the findings of --verify under the right code.
func TestExitText(t *testing.T) {
	said := map[string]string{}
	code := ""
	for line := range strings.Lines(exitText) {
		if strings.TrimSpace(line) == "" {
			break
		}
		if line[2] != ' ' {
			code = strings.Fields(line)[0]
		}
		said[code] += strings.Join(strings.Fields(line), " ") + " "
	}
	for code, want := range map[string]string{
		"1": "events were lost or corrupted, or a consumer read aborted ones",
		"4": "events were removed before they were read, or the reading did not reach them",
	} {
		assert.True(t, strings.Contains(said[code], want), "code %s: got %q, want %q in it", code, said[code], want)
	}
}
