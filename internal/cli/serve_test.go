//go:build linux

package cli_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"carronade/internal/testkit/assert"
)

// startServe starts a server on free ports, and returns the address of its shell and the text that
// it printed.
func startServe(t *testing.T, args ...string) (server *exec.Cmd, text string) {
	t.Helper()
	server = exec.Command(carronade(t), append([]string{"serve", "--text-port", "0", "--http-port", "0"}, args...)...)
	server.Env = append(os.Environ(), "XDG_DATA_HOME="+t.TempDir())
	server.Stderr = os.Stderr
	out, err := server.StdoutPipe()
	assert.OK(t, err)
	assert.OK(t, server.Start())
	t.Cleanup(func() {
		if err := server.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if err := server.Wait(); err != nil {
			t.Error(err)
		}
	})
	if _, err := fmt.Fscanf(out, "listening on %s for the shell\n", &text); err != nil {
		t.Fatal(err)
	}
	go io.Copy(io.Discard, out)
	return server, text
}

// TestPortTaken: the error names the address and how to choose another.
func TestPortTaken(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	assert.OK(t, err)
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	for flag, other := range map[string]string{"--text-port": "--http-port", "--http-port": "--text-port"} {
		cmd := exec.Command(carronade(t), "serve", flag, port, other, "0")
		cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+t.TempDir())
		var said bytes.Buffer
		cmd.Stderr = &said
		_ = cmd.Run()
		want := "error: cannot listen on " + l.Addr().String() + ": address already in use\nhint: does another server use it? " + flag + " 0 picks a free port\n"
		if cmd.ProcessState.ExitCode() != 2 || said.String() != want {
			t.Errorf("exit %d, %q, want %q", cmd.ProcessState.ExitCode(), said.String(), want)
		}
	}
}

var residentLine = regexp.MustCompile(`VmRSS:\s+(\d+) kB`)

// resident is the memory of a process that is in RAM, in bytes.
func resident(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	m := residentLine.FindSubmatch(text)
	assert.Must(t, err == nil && m != nil, "%v: %s", err, text)
	n, _ := strconv.Atoi(string(m[1]))
	return n << 10
}

// TestIdleSessions: 64 sessions that wait for a line take less than 30 MiB.
func TestIdleSessions(t *testing.T) {
	server, address := startServe(t)
	session := func() {
		t.Helper()
		conn, err := net.Dial("tcp", address)
		assert.OK(t, err)
		t.Cleanup(func() { conn.Close() })
		conn.SetDeadline(time.Now().Add(time.Minute))
		var text []byte
		for buf := make([]byte, 1024); !strings.Contains(string(text), ">>> "); {
			n, err := conn.Read(buf)
			if text = append(text, buf[:n]...); err != nil {
				t.Fatalf("%v after %q", err, text)
			}
		}
	}
	session()
	before := resident(t, server.Process.Pid)
	for range 63 {
		session()
	}
	after := resident(t, server.Process.Pid)
	t.Logf("%.1f MiB with one session, %.1f MiB with 64", float64(before)/(1<<20), float64(after)/(1<<20))
	assert.True(t, after-before <= 30<<20, "63 idle sessions take %d KiB", (after-before)>>10)
}
