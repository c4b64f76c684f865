package cli

import (
	"slices"
	"sync"
	"testing"

	"carronade/test/testkit/assert"
)

// TestEnds: everything that several concurrent runs have started is stopped, in
// any order, and nothing that has already ended.
func TestEnds(t *testing.T) {
	var (
		e     ends
		mu    sync.Mutex
		ended []string
	)
	system := func(name string) func() {
		return func() {
			mu.Lock()
			defer mu.Unlock()
			ended = append(ended, name)
		}
	}
	e.stopAll() // before anything was started
	first, next, third := e.slot(), e.slot(), e.slot()
	first(system("build"))
	next(system("next"))
	first(system("first"))
	third(system("third"))
	third(nil)
	third(nil)
	e.stopAll()
	slices.Sort(ended)
	assert.Same(t, ended, []string{"first", "next"}, "ended")
}
