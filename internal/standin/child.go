package standin

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"carronade/internal/host"
)

// childEnv marks a process that Spawn started. It ends when its standard input
// ends, and that happens whenever its parent ends, in whatever way.
const childEnv = "CARRONADE_STANDIN_CHILD"

// stopTimeout is how long Stop waits between closing the child's input and KILL.
const stopTimeout = 5 * time.Second

// A Child is a stand-in that runs in its own process.
type Child struct {
	addrs  map[string]string // "" is the first one printed
	child  *host.Child
	stdin  io.Closer     // closing it ends the child
	ended  chan struct{} // closed when the process is gone and all its output is read
	output *tail
	stop   func() error
}

// Spawn runs `EXE standin ARGS...` and waits until it listens. An empty exe means
// the running program. The child ends when this process ends, in whatever way,
// and at the end of ctx.
//
// In a test, the running program is the test: its TestMain must call Hook first.
func Spawn(ctx context.Context, exe string, args ...string) (*Child, error) {
	if exe == "" {
		var err error
		if exe, err = os.Executable(); err != nil {
			return nil, fmt.Errorf("finding the running program: %w", err)
		}
	}
	cmd := exec.Command(exe, append([]string{"standin"}, args...)...) //nolint:gosec,noctx // our own program; ended by Stop
	cmd.Env = append(os.Environ(), childEnv+"=1")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("starting a stand-in: %w", err)
	}
	c := &Child{stdin: stdin, ended: make(chan struct{}), output: &tail{}}
	c.stop = sync.OnceValue(c.end)
	ready := make(chan string, 1)
	c.child, err = host.StartChild(cmd, func(line string) {
		if at, ok := strings.CutPrefix(line, listening); ok {
			select {
			case ready <- at:
			default:
			}
			return
		}
		c.output.add(line)
	})
	if err != nil {
		stdin.Close()
		return nil, fmt.Errorf("starting a stand-in: %w", err)
	}
	go func() {
		<-c.child.Done()
		<-c.child.Drained()
		close(c.ended)
	}()
	select {
	case line := <-ready:
		c.addrs = addresses(line)
	case <-c.ended:
		_ = c.stop()
		return nil, fmt.Errorf("the stand-in ended before it listened: %s", c.output.oneLine())
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

// addresses parses "ADDR, NAME ADDR, ..." into addresses by name; the name of the
// first one is empty.
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

// Addr is the address that the child listens on; the first of several.
func (c *Child) Addr() string { return c.addrs[""] }

// AddrOf is the address that the child listens on under a name such as udp; empty
// if there is none.
func (c *Child) AddrOf(name string) string { return c.addrs[name] }

// Pid is the child's process id.
func (c *Child) Pid() int { return c.child.Pid() }

// Ended is closed when the process is gone and Output has all its output.
func (c *Child) Ended() <-chan struct{} { return c.ended }

// Output is the end of what the child printed besides its addresses. After Stop,
// the last line is its counts.
func (c *Child) Output() string { return c.output.String() }

// Usage is the CPU time that the child used; zero until it has ended.
func (c *Child) Usage() (cpu time.Duration) {
	if s := c.child.State(); s != nil {
		return s.UserTime() + s.SystemTime()
	}
	return 0
}

// Stop ends the child and waits for it. It is an error if the child had ended
// already, but not to call Stop twice.
func (c *Child) Stop() error { return c.stop() }

// end closes the child's standard input. That ends it cleanly on every system,
// also on those without signals.
func (c *Child) end() error {
	select {
	case <-c.ended:
		c.stdin.Close()
		return fmt.Errorf("the stand-in exited: %s", c.output.oneLine())
	default:
	}
	c.stdin.Close()
	select {
	case <-c.ended:
		return c.child.Err()
	case <-time.After(stopTimeout):
		c.child.Kill()
		<-c.ended
		return fmt.Errorf("the stand-in did not end within %v and was killed", stopTimeout)
	}
}

// Hook runs one of the kinds and exits, in a process that Spawn started; in any other
// process it returns at once. A test's TestMain calls it first.
func Hook(kinds ...Kind) {
	if os.Getenv(childEnv) != "" && len(os.Args) > 1 && os.Args[1] == "standin" {
		os.Exit(Main(kinds, os.Args[2:]))
	}
}

// EndWithParent returns a context that ends with ctx and, in a child that Spawn
// started, when the parent ends.
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

// A tail keeps the last lines of an output.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

const tailBytes = 8 << 10

func (t *tail) add(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(append(t.buf, line...), '\n')
	if n := len(t.buf); n > 2*tailBytes {
		t.buf = append(t.buf[:0], t.buf[n-tailBytes:]...)
	}
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf[max(0, len(t.buf)-tailBytes):])
}

// oneLine returns the output in one line, for an error.
func (t *tail) oneLine() string {
	s := strings.TrimSpace(t.String())
	if s == "" {
		return "it printed nothing"
	}
	return strings.ReplaceAll(s, "\n", "; ")
}
