package standin

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"
)

// childEnv marks a process that Spawn started: it ends when its standard input
// does, which is when its parent is gone, however it went.
const childEnv = "CARRONADE_STANDIN_CHILD"

// stopPatience is how long Stop waits between TERM and KILL.
const stopPatience = 5 * time.Second

// A Child is a stand-in that runs as a process of its own.
type Child struct {
	addrs map[string]string // "" is the first one printed
	cmd   *exec.Cmd
	stdin io.Closer
	ended chan struct{} // closed when the process is gone
	err   error         // how it went; read after ended
	words *tail
	stop  func() error
}

// Spawn runs `EXE standin ARGS...` and waits until it listens. An empty exe is
// the running program. The child ends with this process, whatever becomes of
// it, and at the end of ctx.
//
// In a test the running program is the test: its TestMain calls Hook first.
func Spawn(ctx context.Context, exe string, args ...string) (*Child, error) {
	if exe == "" {
		var err error
		if exe, err = os.Executable(); err != nil {
			return nil, fmt.Errorf("finding the running program: %w", err)
		}
	}
	cmd := exec.Command(exe, append([]string{"standin"}, args...)...) //nolint:gosec,noctx // our own program; ended by Stop
	cmd.Env = append(os.Environ(), childEnv+"=1")
	tieToParent(cmd)
	c := &Child{cmd: cmd, ended: make(chan struct{}), words: &tail{}}
	c.stop = sync.OnceValue(c.end)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("starting a stand-in: %w", err)
	}
	c.stdin = stdin
	cmd.Stderr = c.words
	out, in, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("starting a stand-in: %w", err)
	}
	cmd.Stdout = in
	started := make(chan error, 1)
	go func() {
		// On Linux the child dies with the thread that started it, so that
		// thread has to last as long as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		in.Close()
		started <- err
		if err == nil {
			c.err = cmd.Wait()
		}
		close(c.ended)
	}()
	if err := <-started; err != nil {
		out.Close()
		return nil, fmt.Errorf("starting a stand-in: %w", err)
	}
	ready := make(chan string, 1)
	go func() {
		defer out.Close()
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if line, ok := strings.CutPrefix(lines.Text(), "listening on "); ok {
				select {
				case ready <- line:
				default:
				}
			}
		}
		close(ready)
	}()
	select {
	case line, ok := <-ready:
		if !ok {
			_ = c.stop()
			return nil, fmt.Errorf("the stand-in ended before it listened: %s", c.words.last())
		}
		c.addrs = addresses(line)
	case <-ctx.Done():
		_ = c.stop()
		return nil, fmt.Errorf("waiting for the stand-in to listen: %w", ctx.Err())
	}
	go func() {
		select {
		case <-ctx.Done():
			_ = c.stop()
		case <-c.ended:
		}
	}()
	return c, nil
}

// addresses reads "ADDR, NAME ADDR, ...": by their names, the first one's is
// empty.
func addresses(line string) map[string]string {
	m := map[string]string{}
	for i, part := range strings.Split(line, ", ") {
		name, addr, ok := strings.Cut(part, " ")
		if i == 0 || !ok {
			name, addr = "", part
		}
		m[name] = addr
	}
	return m
}

// Addr is the address the child listens on: of several, the first.
func (c *Child) Addr() string { return c.addrs[""] }

// AddrOf is the address the child listens on for what name names, such as udp;
// empty when it does not.
func (c *Child) AddrOf(name string) string { return c.addrs[name] }

// Pid is the child's process id.
func (c *Child) Pid() int { return c.cmd.Process.Pid }

// Ended is closed when the process is gone.
func (c *Child) Ended() <-chan struct{} { return c.ended }

// Words is what the child said on its standard error, the last of it. After
// Stop, that ends with what it took and gave.
func (c *Child) Words() string { return c.words.String() }

// Usage is what the child consumed in its whole life; zero before it ended.
func (c *Child) Usage() (cpu time.Duration) {
	select {
	case <-c.ended:
		if s := c.cmd.ProcessState; s != nil {
			return s.UserTime() + s.SystemTime()
		}
	default:
	}
	return 0
}

// Stop ends the child and waits for it. A child that ended by itself before is
// an error; stopping twice is not.
func (c *Child) Stop() error { return c.stop() }

func (c *Child) end() error {
	select {
	case <-c.ended:
		c.stdin.Close()
		return fmt.Errorf("the stand-in ended by itself: %s", c.words.last())
	default:
	}
	terminate(c.cmd.Process)
	c.stdin.Close()
	select {
	case <-c.ended:
	case <-time.After(stopPatience):
		_ = c.cmd.Process.Kill()
		<-c.ended
		return fmt.Errorf("the stand-in did not end within %v and was killed", stopPatience)
	}
	var exit *exec.ExitError
	if errors.As(c.err, &exit) && !exit.Exited() {
		return nil // ended by the signal itself, before it could mind it
	}
	return c.err
}

// Hook turns the process into the stand-in it was started to be by Spawn; in
// any other process it returns at once. A test's TestMain calls it first.
func Hook() {
	if os.Getenv(childEnv) != "" && len(os.Args) > 1 && os.Args[1] == "standin" {
		os.Exit(Main(os.Args[2:]))
	}
}

// EndWithParent returns a context that ends with ctx, and in a child started by
// Spawn with its parent.
func EndWithParent(ctx context.Context) context.Context {
	if os.Getenv(childEnv) == "" {
		return ctx
	}
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	return ctx
}

// A tail keeps the last of what is written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

const tailBytes = 8 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if n := len(t.buf); n > 2*tailBytes {
		t.buf = append(t.buf[:0], t.buf[n-tailBytes:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf[max(0, len(t.buf)-tailBytes):])
}

// last is what it said, in one line for an error.
func (t *tail) last() string {
	s := strings.TrimSpace(t.String())
	if s == "" {
		return "it said nothing"
	}
	return strings.ReplaceAll(s, "\n", "; ")
}
