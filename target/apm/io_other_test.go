//go:build !linux

package apm

import "testing"

// ioMethods are the methods by which answers are read: here, only the runtime's
// poller.
var ioMethods = map[string]func(t testing.TB, s *session){
	"runtime": func(t testing.TB, s *session) {
		t.Cleanup(func() { checkIOMethod(t, s, "runtime") })
	},
}
