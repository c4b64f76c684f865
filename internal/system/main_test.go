//go:build linux

package system

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"carronade/internal/host"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/kafkatest"
)

// roleEnv makes the test binary run as a system under test.
const roleEnv = "SUT_TEST_ROLE"

func TestMain(m *testing.M) {
	if name := filepath.Base(os.Args[0]); name == "docker" || name == "podman" {
		engine(os.Args[1:])
		return
	}
	role := os.Getenv(roleEnv)
	if role == "" {
		os.Setenv("GORACE", "atexit_sleep_ms=0") // children built to find races wait a second at their end
		os.Exit(m.Run())
	}
	args := os.Args[1:]
	switch role {
	case "serve": // ADDR [WORDS]: until TERM
		serve(args)
	case "stubborn": // ADDR: ignores TERM
		signal.Ignore(syscall.SIGTERM)
		serve(args)
	case "exit": // CODE WORDS
		code, _ := strconv.Atoi(args[0])
		fmt.Fprintln(os.Stderr, strings.Join(args[1:], " "))
		os.Exit(code)
	case "silent":
		<-time.After(time.Hour) // the runtime reports an empty select as a deadlock
	case "fork": // ADDR: a server in the background, then an end
		cmd := exec.Command(os.Args[0], args...)
		cmd.Env = append(os.Environ(), roleEnv+"=serve")
		cmd.SysProcAttr = detached()
		if err := cmd.Start(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	case "family": // ADDR: a server with a stubborn child
		cmd := exec.Command(os.Args[0], "127.0.0.1:0")
		cmd.Env = append(os.Environ(), roleEnv+"=stubborn")
		cmd.SysProcAttr = detached()
		if err := cmd.Start(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("child", cmd.Process.Pid)
		serve(args)
	case "environment":
		fmt.Println("saw", os.Getenv("SUT_PLAIN"), os.Getenv("SUT_SECRET"), strings.Join(args, " "))
		wd, _ := os.Getwd()
		fmt.Println("in", wd)
		<-time.After(time.Hour) // the runtime reports an empty select as a deadlock
	}
}

// detached puts a child into its own session, like a daemon.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

var ballast []byte

func serve(args []string) {
	c := make(chan os.Signal, 1)
	if os.Getenv(roleEnv) != "stubborn" {
		signal.Notify(c, syscall.SIGTERM) // before it accepts connections, which makes it ready
	}
	l, err := net.Listen("tcp", args[0])
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	status := http.StatusOK
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/hold": // that many MiB resident
			n, _ := strconv.Atoi(r.FormValue("mib"))
			ballast = make([]byte, n<<20)
			for i := range ballast {
				ballast[i] = 1
			}
		case "/spike": // that many MiB resident, and freed
			n, _ := strconv.Atoi(r.FormValue("mib"))
			b, err := syscall.Mmap(-1, 0, n<<20, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
			if err != nil {
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
			for i := 0; i < len(b); i += 4096 {
				b[i] = 1
			}
			_ = syscall.Munmap(b)
		case "/status":
			status, _ = strconv.Atoi(r.FormValue("code"))
		case "/debug/vars":
			fmt.Fprint(w, `{"queue":{"active":3},"other":1}`)
		case "/metrics":
			fmt.Fprint(w, "# TYPE active gauge\nactive 5\n")
		case "/exit":
			fmt.Println("last words, password=" + canary)
			os.Exit(3)
		default:
			w.WriteHeader(status)
		}
	})
	go func() { _ = http.Serve(l, nil) }()
	fmt.Println("listening on", l.Addr(), strings.Join(args[1:], " "))
	if os.Getenv(roleEnv) == "stubborn" {
		<-time.After(time.Hour) // the runtime reports an empty select as a deadlock
	}
	<-c
	fmt.Println("bye")
}

// free returns an address at which nothing listens, and which the kernel does not give to others.
func free(t testing.TB) string {
	t.Helper()
	return "127.0.0.1:" + kafkatest.FreePort(t)
}

// specOf returns a spec that runs this binary in a role.
func specOf(t testing.TB, role string, args ...string) Spec {
	t.Helper()
	return Spec{
		Command: "'" + os.Args[0] + "' " + strings.Join(args, " "), Env: []string{roleEnv + "=" + role},
		ReadyWithin: time.Minute, Logf: t.Logf,
	}
}

func start(t testing.TB, spec Spec) *System {
	t.Helper()
	s := assert.Value(Start(t.Context(), spec))(t)
	t.Cleanup(func() { _ = s.Stop() })
	return s
}

// get sends a request to the system.
func get(t testing.TB, addr, path string) {
	t.Helper()
	res := assert.Value(http.Get("http://" + addr + path))(t) //nolint:bodyclose // it is closed below
	res.Body.Close()
}

func getQuietly(addr, path string) {
	if res, err := http.Get("http://" + addr + path); err == nil {
		res.Body.Close()
	}
}

// alive reports whether a process is running, and not a zombie.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	tree, err := host.OpenTree(pid, "")
	if errors.Is(err, host.ErrGone) {
		return false
	}
	if err == nil {
		tree.Close()
	}
	return true
}

// engine imitates docker: its containers are processes of this machine, with a file each in the folder FAKE_ENGINE.
func engine(args []string) {
	dir := os.Getenv("FAKE_ENGINE")
	fail := func(text string) { fmt.Fprintln(os.Stderr, "Error: "+text); os.Exit(1) }
	log, err := os.OpenFile(filepath.Join(dir, "calls"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		fail(err.Error())
	}
	fmt.Fprintln(log, strings.Join(args, " "))
	file := func(name string) string { return filepath.Join(dir, "box-"+name) }
	read := func(name string) (c inspected) {
		data, err := os.ReadFile(file(name))
		if err != nil || json.Unmarshal(data, &c) != nil {
			fail("no such container: " + name)
		}
		return c
	}
	write := func(name string, c inspected) {
		data, _ := json.Marshal(c)
		_ = os.WriteFile(file(name)+".new", data, 0o644)
		_ = os.Rename(file(name)+".new", file(name))
	}
	last := args[len(args)-1]
	switch args[0] {
	case "info":
		if os.Getenv("FAKE_BROKEN") != "" {
			fail("Cannot connect to the daemon")
		}
	case "image":
		if last != "server:1" {
			fail("no such image: " + last)
		}
	case "inspect":
		data, _ := json.Marshal([]inspected{read(last)})
		fmt.Println(string(data))
	case "run":
		var c inspected
		name := ""
		i := 1
		for ; i < len(args) && strings.HasPrefix(args[i], "--"); i++ {
			if k, _, ok := strings.Cut(args[i], "="); ok && k != "" {
				continue
			}
			switch args[i] {
			case "--name":
				name = args[i+1]
			case "--memory":
				c.HostConfig.Memory, _ = strconv.ParseInt(args[i+1], 10, 64)
			case "--cpus":
				f, _ := strconv.ParseFloat(args[i+1], 64)
				c.HostConfig.NanoCpus = int64(f * 1e9)
			}
			i++
		}
		c.ID, c.Image, c.Config.Image = "0123abcd", "sha256:feed", args[i]
		cmd := exec.Command(os.Args[0], args[i+1:]...)
		cmd.Path, _ = os.Executable()
		cmd.Args[0] = "server"
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Start(); err != nil {
			fail(err.Error())
		}
		c.State.Running, c.State.Pid = true, cmd.Process.Pid
		write(name, c)
		_ = cmd.Wait()
		c.State.Running, c.State.Pid = false, 0
		c.State.ExitCode = cmd.ProcessState.ExitCode()
		if c.State.ExitCode < 0 {
			c.State.ExitCode, c.State.OOMKilled = 137, os.Getenv("FAKE_OOM") != ""
		}
		write(name, c)
		os.Exit(c.State.ExitCode)
	case "stop", "kill":
		sig := map[string]syscall.Signal{"stop": syscall.SIGTERM, "kill": syscall.SIGKILL}[args[0]]
		if pid := read(last).State.Pid; pid > 0 {
			_ = syscall.Kill(pid, sig)
		}
	case "pause", "unpause":
		sig := map[string]syscall.Signal{"pause": syscall.SIGSTOP, "unpause": syscall.SIGCONT}[args[0]]
		if pid := read(last).State.Pid; pid > 0 {
			_ = syscall.Kill(pid, sig)
		}
	case "logs":
		fmt.Println("logged: ready to serve")
	case "rm":
		_ = os.Remove(file(last))
	default:
		fail("unknown: " + args[0])
	}
}
