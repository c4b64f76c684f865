package scenario

import (
	"testing"
	"time"
)

// The parent ends a child whose memory grows outside of its runtime.
func TestResident(t *testing.T) {
	t.Parallel()
	if reason, fault := runChild(t, "fills", time.Minute); reason != ByFault || fault == nil || fault.Text != tooMuch(32<<20) || fault.Hint != tooMuchHint {
		t.Errorf("got %s, %+v", reason, fault)
	}
}
