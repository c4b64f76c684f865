//go:build !linux

package apm

import "testing"

// ioMethods are the ways in which answers are read: here, the runtime's.
var ioMethods = map[string]func(t testing.TB, s *session){
	"runtime": func(t testing.TB, s *session) {
		t.Cleanup(func() { rode(t, s, "runtime") })
	},
}
