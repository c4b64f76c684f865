package system

import (
	"net"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"carronade/internal/testkit"
	"carronade/internal/testkit/assert"
)

func TestListenerOf(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:0", "[::1]:0", "0.0.0.0:0"} {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			continue // without IPv6
		}
		at := l.Addr().(*net.TCPAddr)
		ips := []net.IP{at.IP}
		if at.IP.IsUnspecified() {
			ips = []net.IP{net.IPv4(127, 0, 0, 1)}
		}
		if pid, err := ListenerOf(ips, at.Port); err != nil || pid != os.Getpid() {
			t.Errorf("%s: got %d, %v, want this process", addr, pid, err)
		}
		l.Close()
		if pid, err := ListenerOf(ips, at.Port); err == nil {
			t.Errorf("%s: %d listens at a closed port", addr, pid)
		}
	}
}

// TestListenerOfAddress: servers at the same port of different addresses, as those of a cluster on
// one machine often are, are not taken for each other.
func TestListenerOfAddress(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	assert.OK(t, err)
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	if pid, err := ListenerOf([]net.IP{net.IPv4(127, 0, 0, 2)}, port); err == nil {
		t.Errorf("process %d listens at 127.0.0.2:%d, where nothing does", pid, port)
	}
	other, err := net.Listen("tcp", net.JoinHostPort("127.0.0.2", strconv.Itoa(port)))
	if err != nil {
		t.Skip(err)
	}
	defer other.Close()
	if pid, err := ListenerOf([]net.IP{net.IPv4(127, 0, 0, 2)}, port); err != nil || pid != os.Getpid() {
		t.Errorf("got %d, %v, want this process", pid, err)
	}
}

func TestMaySignal(t *testing.T) {
	child := exec.Command(testkit.Program(t, "sleep"), "60")
	assert.OK(t, child.Start())
	defer func() { _ = child.Process.Kill(); _ = child.Wait() }()
	if err := MaySignal(child.Process.Pid); err != nil {
		t.Error(err)
	}
	for _, pid := range []int{-1, 0, 1, 1<<22 + 1, os.Getpid()} {
		if err := MaySignal(pid); err == nil {
			t.Errorf("process %d may be signalled", pid)
		}
	}
}
