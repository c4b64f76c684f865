package cli

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"carronade/internal/host"
	"carronade/test/testkit/assert"
)

// A step that could not run did so also while it is stopped.
func TestWithoutReport(t *testing.T) {
	broken, canceled := errors.New("it is broken"), fmt.Errorf("open: %w", context.Canceled)
	for _, tt := range []struct {
		name                 string
		err                  error
		stopped, interrupted bool
		code                 int
		text                 string
	}{
		{"failed", broken, false, false, host.ExitFailed, "it is broken"},
		{"failed while it is stopped", broken, true, false, host.ExitFailed, "it is broken"},
		{"failed while it is interrupted", broken, true, true, host.ExitFailed, "it is broken"},
		{"stopped", canceled, true, false, host.ExitOK, "it was stopped before it began to measure"},
		{"interrupted", canceled, true, true, host.ExitInterrupted, "it was stopped before it began to measure"},
		{"canceled by itself", canceled, false, false, host.ExitFailed, "open: context canceled"},
	} {
		code, err := withoutReport(tt.err, tt.stopped, tt.interrupted)
		assert.True(t, code == tt.code && err.Error() == tt.text, "%s: got %d, %v", tt.name, code, err)
	}
}
