package scenario

import (
	"testing"
	"time"

	"carronade/test/testkit/assert"
)

// The parent ends a child whose memory grows outside of its runtime.
func TestResident(t *testing.T) {
	reason, fault := runChild(t, "fills", time.Minute)
	assert.True(t, reason == ByFault && fault != nil && fault.Text == tooMuch(32<<20) && fault.Hint == tooMuchHint, "got %s, %+v", reason, fault)
}
