//go:build !linux

package apm

import "testing"

// roads are the ways on which answers are read: here, the runtime's.
var roads = map[string]func(t testing.TB, s *session){
	"runtime": func(t testing.TB, s *session) {
		t.Cleanup(func() { rode(t, s, "runtime") })
	},
}
