package host

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// roleEnv makes the test binary run as a process of a tree.
const roleEnv = "SYSTEM_TEST_ROLE"

func TestMain(m *testing.M) {
	role, rest, _ := strings.Cut(os.Getenv(roleEnv), " ")
	switch role {
	case "":
		os.Setenv("GORACE", "atexit_sleep_ms=0") // children built to find races wait a second at their end
		os.Exit(m.Run())
	case "burn": // uses processor time, then ends
		d, _ := time.ParseDuration(rest)
		burn(d)
	case "spent": // uses processor time and memory, frees it, then waits
		b, err := syscall.Mmap(-1, 0, 64<<20, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		_ = syscall.Munmap(b)
		burn(300 * time.Millisecond)
		fmt.Println("ready")
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "wait": // until its input ends
		fmt.Println("ready")
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "parent": // the rest of the roles as children, one after the other, until its input ends
		in := bufio.NewScanner(os.Stdin)
		fmt.Println("ready")
		for in.Scan() {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), roleEnv+"="+in.Text())
			if err := cmd.Run(); err != nil {
				fmt.Println(err)
			}
			fmt.Println("done")
		}
	case "family": // with that many children, until its input ends
		n, _ := strconv.Atoi(rest)
		for range n {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), roleEnv+"=wait")
			cmd.Stdin = os.Stdin
			out, err := cmd.StdoutPipe()
			if err == nil {
				err = cmd.Start()
			}
			if err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
			_, _ = bufio.NewReader(out).ReadString('\n')
		}
		fmt.Println("ready")
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "forker": // leaves a child behind and ends
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), roleEnv+"=wait")
		cmd.Stdin = os.Stdin
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(cmd.Process.Pid)
	}
}

func burn(d time.Duration) {
	var r syscall.Rusage
	for {
		if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil || time.Duration(r.Utime.Nano()+r.Stime.Nano()) >= d {
			return
		}
		x := 1
		for range 100_000 {
			x = x*31 + 7
		}
		sink = append(sink[:0], byte(x))
	}
}

// A roleProcess is a process in a role.
type roleProcess struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startRole(t testing.TB, role, tag string) *roleProcess {
	t.Helper()
	p := &roleProcess{cmd: exec.Command(os.Args[0])}
	p.cmd.Env = append(os.Environ(), roleEnv+"="+role)
	if tag != "" {
		p.cmd.Env = append(p.cmd.Env, TagEnv+"="+tag)
	}
	p.in = assert.Value(p.cmd.StdinPipe())(t)
	out := assert.Value(p.cmd.StdoutPipe())(t)
	p.out = bufio.NewReader(out)
	assert.OK(t, p.cmd.Start())
	t.Cleanup(func() { p.in.Close(); _ = p.cmd.Wait() })
	return p
}

func (p *roleProcess) line(t testing.TB) string {
	t.Helper()
	s := assert.Value(p.out.ReadString('\n'))(t)
	return strings.TrimSpace(s)
}

func openTree(t testing.TB, pid int, tag string) *Tree {
	t.Helper()
	tree := assert.Value(OpenTree(pid, tag))(t)
	t.Cleanup(tree.Close)
	return tree
}

func TestTree(t *testing.T) {
	p := startRole(t, "family 3", "")
	p.line(t)
	tree := openTree(t, p.cmd.Process.Pid, "")
	l := tree.Look()
	assert.True(t, l.Processes == 4 && l.Threads >= 4 && l.Files >= 4*3,
		"got %d processes, %d threads, %d files, want 4 processes with at least a thread and 3 files each",
		l.Processes, l.Threads, l.Files)
	assert.True(t, l.RSS >= 4<<20 && l.PSS > 0 && l.PSS <= l.RSS*11/10 && l.Peak >= l.RSS,
		"got RSS %d, PSS %d, peak %d: want some MiB, less of what is shared, and a peak no lower", l.RSS, l.PSS, l.Peak)
	assert.Equal(t, len(tree.Members()), 4, "members")
	assert.True(t, tree.Alive() && tree.known[tree.root], "the tree is not alive")
	p.in.Close()
	_ = p.cmd.Wait()
	testkit.Until(t, "none is alive", func() bool { tree.Look(); return !tree.Alive() })
	l = tree.Look()
	assert.True(t, l.Processes == 0 && l.RSS == 0 && l.Peak != 0 && !tree.known[tree.root], "got %+v when all ended, want nothing but the peak", l)
}

// Children start and end, some seen alive and some not; their use is counted once.
func TestTreeCounts(t *testing.T) {
	testkit.Need(t, "some seconds")
	for _, tag := range []string{"", "counts"} {
		t.Run("tag "+tag, func(t *testing.T) {
			p := startRole(t, "parent", tag)
			p.line(t)
			tree := openTree(t, p.cmd.Process.Pid, tag)
			before := tree.Look()
			done := make(chan struct{})
			go func() {
				defer close(done)
				for range 3 {
					fmt.Fprintln(p.in, "burn 150ms")
					got, err := p.out.ReadString('\n')
					assert.True(t, got == "done\n", "got %q, %v, want done", got, err)
				}
			}()
			for looking := true; looking; {
				select {
				case <-done:
					looking = false
				default:
					tree.Look()
				}
			}
			l := tree.Look()
			got := l.CPU - before.CPU
			assert.True(t, got >= 400*time.Millisecond && got <= 850*time.Millisecond,
				"got %v of processor time, want the children's 450ms and not much more", got) // counted twice it would be 900ms
			fmt.Fprintln(p.in, "burn 150ms")
			if got := p.line(t); got != "done" {
				t.Fatal(got)
			}
			more := tree.Look().CPU - l.CPU
			assert.True(t, more >= 130*time.Millisecond && more <= 400*time.Millisecond,
				"got %v for a child that was never seen, want its 150ms and not much more", more)
		})
	}
}

// TestTreeBegins watches a process that used resources before: this counts if
// it was started for the tree, and not if it was already running.
func TestTreeBegins(t *testing.T) {
	p := startRole(t, "spent", "begins")
	p.line(t)
	found := openTree(t, p.cmd.Process.Pid, "").Final()
	assert.True(t, found.CPU <= 200*time.Millisecond && found.Peak <= 60<<20,
		"got %v and a peak of %d for a running process, want only its use from now on", found.CPU, found.Peak)
	started := openTree(t, p.cmd.Process.Pid, "begins").Final()
	assert.True(t, started.CPU >= 280*time.Millisecond && started.Peak >= 64<<20,
		"got %v and a peak of %d for a started process, want its 300ms and 64 MiB", started.CPU, started.Peak)
}

func TestTreeFollowsADaemon(t *testing.T) {
	const tag = "daemon-tag"
	p := startRole(t, "forker", tag)
	tree, err := OpenTree(p.cmd.Process.Pid, tag)
	pid, _ := strconv.Atoi(p.line(t))
	_ = p.cmd.Process.Release() // not waited for yet: the root is a zombie
	if err != nil {
		t.Skip("it ended before it could be watched")
	}
	defer tree.Close()
	testkit.Until(t, "only the daemon is a member", func() bool { tree.Look(); return !tree.known[tree.root] && tree.Alive() })
	got := tree.Members()
	assert.True(t, len(got) == 1 && got[0] == pid, "got members %v, want only the daemon %d", got, pid)
}

func TestOpenTreeFails(t *testing.T) {
	p := startRole(t, "burn 0s", "")
	_ = p.cmd.Wait()
	_, err := OpenTree(p.cmd.Process.Pid, "")
	assert.True(t, errors.Is(err, ErrGone), "got %v, want ErrGone", err)
}

// TestTreeNoticesReuse gives a member's number to another process: the tree
// must see the member's end, and not the new process's numbers.
func TestTreeNoticesReuse(t *testing.T) {
	p := startRole(t, "wait", "")
	p.line(t)
	tree := openTree(t, p.cmd.Process.Pid, "")
	p.in.Close()
	_ = p.cmd.Wait()
	if err := os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(p.cmd.Process.Pid-1)), 0o644); err != nil {
		t.Skip("process ids cannot be chosen here:", err)
	}
	q := startRole(t, "wait", "")
	q.line(t)
	if q.cmd.Process.Pid != p.cmd.Process.Pid {
		t.Skip("another process got the id")
	}
	l := tree.Look()
	assert.True(t, l.Processes == 0 && !tree.Alive(), "got %+v, want nothing: the id belongs to another process", l)
}

func TestTreeAllocates(t *testing.T) {
	p := startRole(t, "family 3", "")
	p.line(t)
	tree := openTree(t, p.cmd.Process.Pid, "")
	// A look at a process that another test has just started allocates more.
	least := math.Inf(1)
	for range 25 {
		least = min(least, testing.AllocsPerRun(2, func() { tree.Look() }))
	}
	assert.True(t, least <= 1, "a look allocates %v times, want at most once", least)
}

func TestLookFigures(t *testing.T) {
	at := time.Unix(1000, 0)
	before := Look{At: at, CPU: time.Second, DiskRead: 1000}
	l := Look{At: at.Add(2 * time.Second), RSS: 10, PSS: 5, Processes: 2, Threads: 3, Files: 4, CPU: 4 * time.Second, DiskRead: 5000, OwnNetwork: true, Received: 8, Faults: 6}
	got := make(map[string]float64)
	for _, f := range l.Figures(&before) {
		got[f.Name+" "+f.Unit] = f.Value
	}
	want := map[string]float64{
		"RSS bytes": 10, "PSS bytes": 5, "processes ": 2, "threads ": 3, "open files ": 4, "CPU cores": 1.5,
		"disk read bytes/s": 2000, "disk written bytes/s": 0, "read bytes/s": 0, "written bytes/s": 0, "received bytes/s": 4, "sent bytes/s": 0, "page faults 1/s": 3,
	}
	assert.Equal(t, fmt.Sprint(got), fmt.Sprint(want))
	assert.Equal(t, len(l.Figures(&Look{})), 5, "figures without a look before")
}

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
