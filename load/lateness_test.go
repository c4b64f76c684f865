package load

import (
	"context"
	"slices"
	"testing"
	"time"

	"carronade/test/testkit/assert"
)

// A wait is never too short, and the number of waits follows from the times.
func TestLateness(t *testing.T) {
	const wait, span = time.Millisecond, 20 * time.Millisecond
	late := Lateness(t.Context(), wait, span)
	assert.True(t, len(late) != 0 && len(late) <= int(span/wait) && late[0] >= 0 && slices.IsSorted(late), "got %v", late)
	ended, end := context.WithCancel(t.Context())
	end()
	got := Lateness(ended, wait, span)
	assert.True(t, len(got) == 0, "an ended context: got %v", got)
}
