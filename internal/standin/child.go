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

	"carronade/internal/system"
)

// childEnv marks a process that Spawn started: it ends when its standard input
// does, which is when its parent is gone, however it went.
const childEnv = "CARRONADE_STANDIN_CHILD"

// stopPatience is how long Stop waits between closing its input and KILL.
const stopPatience = 5 * time.Second

// A Child is a stand-in that runs as a process of its own.
type Child struct {
	addrs map[string]string // "" is the first one printed
	child *system.Child
	stdin io.Closer     // its end is the child's
	ended chan struct{} // closed when the process is gone and all its words are heard
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
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("starting a stand-in: %w", err)
	}
	c := &Child{stdin: stdin, ended: make(chan struct{}), words: &tail{}}
	c.stop = sync.OnceValue(c.end)
	ready := make(chan string, 1)
	c.child, err = system.StartChild(cmd, func(line string) {
		if at, ok := strings.CutPrefix(line, listening); ok {
			select {
			case ready <- at:
			default:
			}
			return
		}
		c.words.add(line)
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
		return nil, fmt.Errorf("the stand-in ended before it listened: %s", c.words.last())
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
func (c *Child) Pid() int { return c.child.Pid() }

// Ended is closed when the process is gone and its last words are in Words.
func (c *Child) Ended() <-chan struct{} { return c.ended }

// Words is what the child said besides its addresses, the last of it. After
// Stop, that ends with what it took and gave.
func (c *Child) Words() string { return c.words.String() }

// Usage is what the child consumed in its whole life; zero before it ended.
func (c *Child) Usage() (cpu time.Duration) {
	if s := c.child.State(); s != nil {
		return s.UserTime() + s.SystemTime()
	}
	return 0
}

// Stop ends the child and waits for it. A child that ended by itself before is
// an error; stopping twice is not.
func (c *Child) Stop() error { return c.stop() }

// end closes the child's standard input, which ends it on every system, and
// with a goodbye where there are no signals either.
func (c *Child) end() error {
	select {
	case <-c.ended:
		c.stdin.Close()
		return fmt.Errorf("the stand-in exited: %s", c.words.last())
	default:
	}
	c.stdin.Close()
	select {
	case <-c.ended:
		return c.child.Err()
	case <-time.After(stopPatience):
		c.child.Kill()
		<-c.ended
		return fmt.Errorf("the stand-in did not end within %v and was killed", stopPatience)
	}
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

// A tail keeps the last lines of what is said.
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

// last is what it said, in one line for an error.
func (t *tail) last() string {
	s := strings.TrimSpace(t.String())
	if s == "" {
		return "it printed nothing"
	}
	return strings.ReplaceAll(s, "\n", "; ")
}
