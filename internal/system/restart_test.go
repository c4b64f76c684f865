//go:build linux

package system

import (
	"context"
	"errors"
	"testing"
	"time"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// A system that is restarted has not ended, all its processes are others, and Stop ends the new ones.
func TestRestart(t *testing.T) {
	testkit.Program(t, "sh")
	s := assert.Value(Start(t.Context(), Spec{Command: "sh -c 'sleep 1000 & sleep 1000; true'"}))(t)
	before := s.Members()
	gone := 0
	err := s.Restart(t.Context(), 10*time.Millisecond, func() {
		gone = len(s.Members())
	})
	assert.OK(t, err)
	assert.True(t, gone == 0 && len(before) != 0, "%d processes before, %d after they were killed", len(before), gone)
	after := s.Members()
	for end := time.Now().Add(time.Minute); len(after) == 0; after = s.Members() { // one that executes a program is found by the next look
		assert.Must(t, !time.Now().After(end), "no process after it")
		<-time.After(time.Millisecond)
	}
	for _, a := range after {
		for _, b := range before {
			assert.True(t, a != b, "process %d is still there", a)
		}
	}
	select {
	case <-s.Died():
		t.Error("it counts as dead")
	default:
	}
	assert.OK(t, s.Stop())
	assert.True(t, s.Exit().Status != "", "it has no end")
}

// TestRestartIsCanceled: a run that ends meanwhile leaves nothing running, and Stop does not wait.
func TestRestartIsCanceled(t *testing.T) {
	testkit.Program(t, "sh")
	s := assert.Value(Start(t.Context(), Spec{Command: "sleep 1000"}))(t)
	ctx, cancel := context.WithCancel(t.Context())
	err := s.Restart(ctx, time.Hour, cancel)
	assert.True(t, errors.Is(err, context.Canceled), "got %v", err)
	assert.OK(t, s.Stop())
	found := assert.Value(Start(t.Context(), Spec{Vars: "http://127.0.0.1:1/"}))(t)
	assert.True(t, found.Restart(t.Context(), 0, func() {}) != nil, "a system that was not started here is restarted")
	_ = found.Stop()
}
