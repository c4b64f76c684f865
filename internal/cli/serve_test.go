//go:build linux

package cli_test

import (
	"bufio"
	"bytes"
	"encoding/json"
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

	"carronade/internal/sandbox"
	"carronade/internal/serve"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// A serving is a carronade serve on free ports, with an own folder and store.
type serving struct {
	*exec.Cmd
	t                 *testing.T
	text, site, token string // token is that of its own user
}

// serveFor starts a server with some variables and flags, until the end of the test.
func serveFor(t *testing.T, env []string, args ...string) *serving {
	t.Helper()
	s := &serving{t: t, Cmd: exec.Command(carronade(t), append([]string{"serve", "--text-port", "0", "--http-port", "0"}, args...)...)}
	s.Env, s.Stderr = append(append(os.Environ(), "XDG_DATA_HOME="+t.TempDir()), env...), os.Stderr
	out := assert.Value(s.StdoutPipe())(t)
	assert.OK(t, s.Start())
	t.Cleanup(func() {
		err := s.Process.Signal(syscall.SIGTERM)
		assert.True(t, err == nil, "%v", err)
		err = s.Wait()
		assert.True(t, err == nil, "%v", err)
	})
	var page string
	assert.Value(fmt.Fscanf(out, "listening on %s for the shell\nlistening on %s for the page and the API\npage: %s\n", &s.text, &s.site, &page))(t)
	s.site = "http://" + s.site
	_, s.token, _ = strings.Cut(page, "/#token=")
	go io.Copy(io.Discard, out)
	return s
}

// ask sends a request to the API, and returns the text of the answer.
func (s *serving) ask(method, path, body string) string {
	s.t.Helper()
	r := assert.Value(http.NewRequestWithContext(s.t.Context(), method, s.site+"/api/v1/"+path, strings.NewReader(body)))(s.t)
	r.Header.Set("Authorization", "Bearer "+s.token)
	r.Header.Set("Content-Type", "application/json")
	a := assert.Value(http.DefaultClient.Do(r))(s.t) //nolint:bodyclose // it is closed below
	defer a.Body.Close()
	return string(assert.Value(io.ReadAll(a.Body))(s.t))
}

// job runs a job to its end. It must be the server's job number id.
func (s *serving) job(id int, args ...string) (j serve.JobView, output string) {
	s.t.Helper()
	line := assert.Value(json.Marshal(args))(s.t)
	said := s.ask("POST", "jobs", `{"args": `+string(line)+`}`)
	assert.True(s.t, strings.Contains(said, `"queued"`), "%s", said)
	output = s.ask("GET", fmt.Sprintf("jobs/%d/output?follow=1", id), "")
	for j.Ended == nil {
		assert.OK(s.t, json.Unmarshal([]byte(s.ask("GET", fmt.Sprintf("jobs/%d", id), "")), &j))
	}
	return j, output
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
	server := serveFor(t, nil)
	session := func() {
		t.Helper()
		conn := assert.Value(net.Dial("tcp", server.text))(t)
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
	secret := assert.Value(exec.Command(carronade(t), "serve", "token", "add", "ann", "--data", data).Output())(t)
	s := serveFor(t, []string{"USER=operator"}, "--data", data)
	s.token = strings.TrimSpace(string(secret))
	_, port, _ := net.SplitHostPort(s.text)
	for k, host := range []string{"127.0.0.1", "localhost"} {
		_, output := s.job(k+1, "run", "riemann://"+host+":"+port, "--count", "1", "--description", "\nrun null:// --count 1\nquit\n")
		assert.True(t, strings.Contains(output, "does not allow jobs to connect to its own ports"), "%s: %s", host, output)
	}
	jobs := s.ask("GET", "jobs", "")
	assert.True(t, !strings.Contains(jobs, `"operator"`), "a job of another user: %s", jobs)
}

// TestJobsAtTheWalls: a job that takes more memory or space than it may have ends with an error that names the limit
// and what to do, however fast it takes it, and the server runs the next one.
func TestJobsAtTheWalls(t *testing.T) {
	if here := sandbox.Here(); !here.Files {
		t.Skip("this system confines no process")
	}
	t.Parallel()
	testkit.Need(t, "some seconds, and 600 MiB of memory")
	s := serveFor(t, nil, "--job-memory", "64MiB", "--job-disk", "1MiB")
	s.ask("PUT", "files/large", strings.Repeat("x", 1_000_000))
	s.ask("PUT", "files/s.js", `import { run } from "carronade"; await run("null://", { count: 10 }); console.log("ran");`)
	for k, tt := range []struct {
		line, state, reason, output string
	}{
		{"run null:// --for 1h --label hog=64", "failed", "64 MiB (--job-memory)", "hint: ask for less, or ask the operator of the server for more"},
		{"run null:// --for 1h --rate 10/s --label hog=1", "failed", "64 MiB (--job-memory)", "hint: ask for less, or ask the operator of the server for more"},
		{"run null:// --for 1h --trace t.parquet --trace-events 100%", "failed", "more than the 1 MiB that this server allows (--job-disk)", "problem"},
		{"scenario s.js", "done", "", "ran\n"}, // it starts a process
	} {
		if k == 3 {
			s.ask("DELETE", "files/t.parquet", "")
		}
		j, output := s.job(k+1, strings.Fields(tt.line)...)
		assert.True(t, string(j.State) == tt.state && strings.Contains(j.Reason, tt.reason) && strings.Contains(output, tt.output) && !strings.Contains(output, "goroutine "),
			"%s: %s, %s\n%s", tt.line, j.State, j.Reason, output)
		t.Logf("%s: %s", tt.line, j.Reason)
	}
	answer := s.ask("POST", "commands", `{"args": ["report", "list", "--columns", "hog=64"]}`)
	assert.True(t, strings.Contains(answer, "(--job-memory)") && !strings.Contains(answer, "goroutine "), "a command: %s", answer)
}

// TestServerKeepsNothing: 20,000 command lines, over HTTP, as commands and on the text port, leave a
// server with the memory that it had.
func TestServerKeepsNothing(t *testing.T) {
	testkit.OnlyConformance(t, "minutes: 20,000 command lines; TestCheckingKeepsNothing has 100")
	server := serveFor(t, nil)
	conn := assert.Value(net.Dial("tcp", server.text))(t)
	defer conn.Close()
	answers := bufio.NewReader(conn)
	send := func(n int) {
		for k := range n {
			switch {
			case k%40 == 0: // each starts a process
				server.ask("POST", "commands", `{"args": ["version"]}`)
			case k%4 == 0:
				fmt.Fprintf(conn, "nosuch%d --flag\n", k)
				assert.Value(answers.ReadString('\n'))(t)
			default:
				server.ask("POST", "jobs", `{"args": ["nosuch"]}`)
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

// TestServeColor: with --color, a session over TCP has colors, as in the shell of hey-apm.
func TestServeColor(t *testing.T) {
	t.Setenv("NO_COLOR", "")
	address := serveFor(t, nil, "--color").text
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
