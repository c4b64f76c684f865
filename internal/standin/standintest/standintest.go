// Package standintest has what the tests of all stand-ins share, and what tests against a
// stand-in in a process of its own need.
package standintest

import (
	"testing"
	"time"

	"carronade/internal/standin"
	"carronade/test/testkit/assert"
)

// Spawn starts a discarding stand-in of a kind in a process of its own, for tests that measure
// the memory or the processor time of this one. It ends with t.
func Spawn(t testing.TB, kind string, args ...string) *standin.Child {
	t.Helper()
	child, err := standin.Spawn(t.Context(), "", append([]string{kind, "--discard", "--listen", "127.0.0.1:0"}, args...)...)
	assert.OK(t, err)
	t.Cleanup(func() { assert.OK(t, child.Stop()) })
	return child
}

// Limited is a server of this many events a second, for which this many may wait.
func Limited(rate float64, queue int64) standin.CapacityOptions {
	return standin.CapacityOptions{Server: standin.CapacitySettings{Rate: rate, Service: standin.Service{Kind: standin.Constant}, Servers: 1, Queue: queue}}
}

// Late checks that clients feel a delay and a stall of a stand-in, against lower bounds only.
// start starts one with these, and returns what makes a request and waits for its answer.
func Late(t *testing.T, start func(t *testing.T, delay time.Duration, stall standin.Stall) (ask func())) {
	t.Run("delay", func(t *testing.T) {
		const delay = 50 * time.Millisecond
		ask := start(t, delay, standin.Stall{})
		ask() // connects
		begin := time.Now()
		ask()
		assert.True(t, time.Since(begin) >= delay, "answered after %v, want %v at least", time.Since(begin), delay)
	})
	t.Run("stall", func(t *testing.T) {
		begin := time.Now()
		ask := start(t, 0, standin.Stall{Every: 400 * time.Millisecond, Length: 300 * time.Millisecond})
		longest := time.Duration(0)
		for longest < 200*time.Millisecond && time.Since(begin) < time.Minute {
			sent := time.Now()
			ask()
			longest = max(longest, time.Since(sent))
		}
		assert.True(t, longest >= 200*time.Millisecond, "the longest answer took %v, want a stall of 300 ms", longest)
	})
}
