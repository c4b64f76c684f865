//go:build linux

package cli_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// startServe starts a server on free ports, and returns the address of its shell and the text that
// it printed.
func startServe(t *testing.T, args ...string) (server *exec.Cmd, text string) {
	t.Helper()
	server = exec.Command(carronade(t), append([]string{"serve", "--text-port", "0", "--http-port", "0"}, args...)...)
	server.Env = append(os.Environ(), "XDG_DATA_HOME="+t.TempDir())
	server.Stderr = os.Stderr
	out := assert.Value(server.StdoutPipe())(t)
	assert.OK(t, server.Start())
	t.Cleanup(func() {
		err := server.Process.Signal(syscall.SIGTERM)
		assert.True(t, err == nil, "%v", err)
		err = server.Wait()
		assert.True(t, err == nil, "%v", err)
	})
	assert.Value(fmt.Fscanf(out, "listening on %s for the shell\n", &text))(t)
	go io.Copy(io.Discard, out)
	return server, text
}

// TestPortTaken: the error names the address and how to choose another.
func TestPortTaken(t *testing.T) {
	t.Parallel()
	l := assert.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	for flag, other := range map[string]string{"--text-port": "--http-port", "--http-port": "--text-port"} {
		cmd := exec.Command(carronade(t), "serve", flag, port, other, "0")
		cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+t.TempDir())
		var said bytes.Buffer
		cmd.Stderr = &said
		_ = cmd.Run()
		want := "error: cannot listen on " + l.Addr().String() + ": address already in use\nhint: does another server use it? " + flag + " 0 picks a free port\n"
		assert.True(t, cmd.ProcessState.ExitCode() == 2 && said.String() == want,
			"exit %d, %q, want %q", cmd.ProcessState.ExitCode(), said.String(), want)
	}
}

var residentLine = regexp.MustCompile(`VmRSS:\s+(\d+) kB`)

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
		conn := assert.Value(net.Dial("tcp", address))(t)
		t.Cleanup(func() { conn.Close() })
		conn.SetDeadline(time.Now().Add(time.Minute))
		var text []byte
		for buf := make([]byte, 1024); !strings.Contains(string(text), ">>> "); {
			n, err := conn.Read(buf)
			text = append(text, buf[:n]...)
			assert.Must(t, err == nil, "%v after %q", err, text)
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

// TestOwnPorts: a job does not connect to the ports of its server, by whatever name: on the text port it would be
// the server's user.
func TestOwnPorts(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	token := exec.Command(carronade(t), "serve", "token", "add", "ann", "--data", data)
	secret := assert.Value(token.Output())(t)
	server := exec.Command(carronade(t), "serve", "--text-port", "0", "--http-port", "0", "--data", data)
	server.Env = append(os.Environ(), "XDG_DATA_HOME="+t.TempDir(), "USER=operator")
	out := assert.Value(server.StdoutPipe())(t)
	assert.OK(t, server.Start())
	t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGTERM)
		_ = server.Wait()
	})
	var text, web string
	_, err := fmt.Fscanf(out, "listening on %s for the shell\nlistening on %s for the page and the API\n", &text, &web)
	assert.OK(t, err)
	go io.Copy(io.Discard, out)
	ask := func(method, path, body string) string {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, "http://"+web+"/api/v1/"+path, strings.NewReader(body))
		assert.OK(t, err)
		r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(secret)))
		r.Header.Set("Content-Type", "application/json")
		a, err := http.DefaultClient.Do(r)
		assert.OK(t, err)
		defer a.Body.Close()
		got := assert.Value(io.ReadAll(a.Body))(t)
		return string(got)
	}
	_, port, _ := net.SplitHostPort(text)
	for k, host := range []string{"127.0.0.1", "localhost"} {
		job := ask("POST", "jobs", `{"args": ["run", "riemann://`+host+`:`+port+`", "--count", "1", "--description", "\nrun null:// --count 1\nquit\n"]}`)
		assert.True(t, strings.Contains(job, `"queued"`), "%s", job)
		output := ask("GET", fmt.Sprintf("jobs/%d/output?follow=1", k+1), "")
		assert.True(t, strings.Contains(output, "does not allow jobs to connect to its own ports"), "%s: %s", host, output)
	}
	jobs := ask("GET", "jobs", "")
	assert.True(t, !strings.Contains(jobs, `"operator"`), "a job of another user: %s", jobs)
}

// TestServeColor: with --color, a session over TCP has colors, as in the shell of hey-apm.
func TestServeColor(t *testing.T) {
	t.Setenv("NO_COLOR", "")
	_, address := startServe(t, "--color")
	nc := assert.Value(net.Dial("tcp", address))(t)
	defer nc.Close()
	assert.OK(t, nc.SetDeadline(time.Now().Add(2*time.Minute)))
	var read strings.Builder
	for buf := make([]byte, 512); !strings.Contains(read.String(), ">>> "); {
		n, err := nc.Read(buf)
		read.Write(buf[:n])
		assert.Must(t, err == nil, "%v after %q", err, read.String())
	}
	assert.True(t, strings.Contains(read.String(), "\x1b[36m>>> "), "%q", read.String())
}

// TestServerKeepsNothing: 20,000 command lines, over HTTP, as commands and on the text port, leave a
// server with the memory that it had.
func TestServerKeepsNothing(t *testing.T) {
	testkit.OnlyConformance(t, "minutes: 20,000 command lines; TestCheckingKeepsNothing has 100")
	server := exec.Command(carronade(t), "serve", "--text-port", "0", "--http-port", "0")
	server.Env = append(os.Environ(), "XDG_DATA_HOME="+t.TempDir())
	out, err := server.StdoutPipe()
	if err == nil {
		err = server.Start()
	}
	assert.OK(t, err)
	t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGTERM)
		_ = server.Wait()
	})
	var text, page string
	lines := bufio.NewScanner(out)
	for page == "" && lines.Scan() {
		if after, ok := strings.CutPrefix(lines.Text(), "listening on "); ok && text == "" {
			text, _, _ = strings.Cut(after, " ")
		}
		if after, ok := strings.CutPrefix(lines.Text(), "page: "); ok {
			page = after
		}
	}
	go io.Copy(io.Discard, out)
	site, token, _ := strings.Cut(page, "/#token=")
	ask := func(path, body string) {
		r := assert.Value(http.NewRequestWithContext(t.Context(), http.MethodPost, site+path, strings.NewReader(body)))(t)
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		a := assert.Value(http.DefaultClient.Do(r))(t)
		io.Copy(io.Discard, a.Body)
		a.Body.Close()
	}
	conn := assert.Value(net.Dial("tcp", text))(t)
	defer conn.Close()
	answers := bufio.NewReader(conn)
	send := func(n int) {
		for k := range n {
			switch {
			case k%40 == 0: // each starts a process
				ask("/api/v1/commands", `{"args": ["version"]}`)
			case k%4 == 0:
				fmt.Fprintf(conn, "nosuch%d --flag\n", k)
				assert.Value(answers.ReadString('\n'))(t)
			default:
				ask("/api/v1/jobs", `{"args": ["nosuch"]}`)
			}
		}
	}
	send(400) // what a server keeps from the start
	before := resident(t, server.Process.Pid)
	send(20_000)
	const most = 20 << 20
	if after := resident(t, server.Process.Pid); after > before+most {
		t.Errorf("%d MiB before, %d MiB after", before>>20, after>>20)
	} else {
		t.Logf("%d KiB before, %d KiB after", before>>10, after>>10)
	}
}
