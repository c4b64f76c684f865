package apm

import (
	"errors"
	"runtime"
	"syscall"
	"testing"

	"carronade/internal/socket"
)

// ioMethods are the methods by which a sending thread may read answers. Each
// function prepares a session for its method.
var ioMethods = map[string]func(t testing.TB, s *session){
	"io_uring": func(t testing.TB, s *session) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		r, err := socket.NewRing(1, 1, 0)
		if errors.Is(err, syscall.ENOSYS) || errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EINVAL) {
			t.Skip("no io_uring here: ", err)
		}
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		s.noRing = false // as in a run without a schedule
		t.Cleanup(func() { checkIOMethod(t, s, "io_uring") })
	},
	"epoll": func(t testing.TB, s *session) {
		s.noRing = true
		t.Cleanup(func() { checkIOMethod(t, s, "epoll") })
	},
}
