package system

import (
	"net"
	"os"
	"testing"
)

func TestListenerOf(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:0", "[::1]:0"} {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			continue // without IPv6
		}
		port := l.Addr().(*net.TCPAddr).Port
		if pid, err := ListenerOf(port); err != nil || pid != os.Getpid() {
			t.Errorf("%s: got %d, %v, want this process", addr, pid, err)
		}
		l.Close()
		if pid, err := ListenerOf(port); err == nil {
			t.Errorf("%s: %d listens at a closed port", addr, pid)
		}
	}
}

func TestMaySignal(t *testing.T) {
	if err := MaySignal(os.Getpid()); err != nil {
		t.Error(err)
	}
	for _, pid := range []int{-1, 0, 1, 1<<22 + 1} {
		if err := MaySignal(pid); err == nil {
			t.Errorf("process %d may be signalled", pid)
		}
	}
}
