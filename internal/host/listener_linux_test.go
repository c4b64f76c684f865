package host

import (
	"net"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
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
		pid, err := ListenerOf(ips, at.Port)
		assert.True(t, err == nil && pid == os.Getpid(), "%s: got %d, %v, want this process", addr, pid, err)
		l.Close()
		pid, err = ListenerOf(ips, at.Port)
		assert.True(t, err != nil, "%s: %d listens at a closed port", addr, pid)
	}
}

// TestListenerOfAddress: servers at the same port of different addresses, as those of a cluster on
// one machine often are, are not taken for each other.
func TestListenerOfAddress(t *testing.T) {
	l := assert.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	pid, err := ListenerOf([]net.IP{net.IPv4(127, 0, 0, 2)}, port)
	assert.True(t, err != nil, "process %d listens at 127.0.0.2:%d, where nothing does", pid, port)
	other, err := net.Listen("tcp", net.JoinHostPort("127.0.0.2", strconv.Itoa(port)))
	if err != nil {
		t.Skip(err)
	}
	defer other.Close()
	pid, err = ListenerOf([]net.IP{net.IPv4(127, 0, 0, 2)}, port)
	assert.True(t, err == nil && pid == os.Getpid(), "got %d, %v, want this process", pid, err)
}

func TestMaySignal(t *testing.T) {
	child := exec.Command(testkit.Program(t, "sleep"), "60")
	assert.OK(t, child.Start())
	defer func() { _ = child.Process.Kill(); _ = child.Wait() }()
	assert.OK(t, MaySignal(child.Process.Pid))
	for _, pid := range []int{-1, 0, 1, 1<<22 + 1, os.Getpid()} {
		assert.True(t, MaySignal(pid) != nil, "process %d may be signalled", pid)
	}
}
