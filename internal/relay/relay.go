package relay

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"carronade/internal/system"
)

// Command is the hidden command of this program that is a relay.
const Command = "relay-connections"

// childEnv marks the process of a relay.
const childEnv = "CARRONADE_RELAY_CHILD"

// A Relay is a process through which connections go. It is safe for concurrent use.
type Relay struct {
	child *system.Child
	stdin io.WriteCloser
	addr  string
	token string
	said  chan string   // what the process prints
	ended chan struct{} // closed when the process is gone

	setting sync.Mutex // of a delay
	made    atomic.Int64
}

// answering is how long the process may take to listen, and to take a delay.
const answering = 10 * time.Second

// Start starts a relay without a delay. It ends with this process, in whatever way that ends.
//
// In a test, the running program is the test: its TestMain must call Hook first.
func Start(ctx context.Context) (*Relay, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the running program: %w", err)
	}
	cmd := exec.Command(exe, Command) //nolint:gosec,noctx // our own program; ended by Close
	cmd.Env = append(system.Environ(), childEnv+"=1")
	r := &Relay{token: rand.Text(), said: make(chan string, 1), ended: make(chan struct{})}
	if r.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start a relay: %w", err)
	}
	r.child, err = system.StartChild(cmd, func(line string) {
		select {
		case r.said <- line:
		case <-time.After(answering): // nobody asked
		}
	})
	if err != nil {
		r.stdin.Close()
		return nil, fmt.Errorf("start a relay: %w", err)
	}
	go func() {
		<-r.child.Done()
		close(r.ended)
	}()
	line, err := r.order(ctx, command{Token: r.token})
	addr, ok := strings.CutPrefix(line, listening)
	if err == nil && !ok {
		err = errors.New(line)
	}
	if err != nil {
		r.Close()
		return nil, fmt.Errorf("start a relay: %w", err)
	}
	r.addr = addr
	return r, nil
}

// order sends a command, and returns the answer.
func (r *Relay) order(ctx context.Context, c command) (string, error) {
	r.setting.Lock()
	defer r.setting.Unlock()
	text, err := json.Marshal(c)
	if err != nil {
		return "", err
	}
	if _, err := r.stdin.Write(append(text, '\n')); err != nil {
		return "", fmt.Errorf("the relay has ended: %w", err)
	}
	select {
	case line := <-r.said:
		return line, nil
	case <-r.ended:
		return "", errors.New("the relay has ended")
	case <-time.After(answering):
		return "", fmt.Errorf("the relay did not answer within %v", answering)
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// Delay makes each round trip of all connections take d longer from now on, half of it in each
// direction. 0 ends that; what is on the way arrives when it was due.
func (r *Relay) Delay(ctx context.Context, d time.Duration) error {
	line, err := r.order(ctx, command{Delay: int64(d)})
	if err == nil && line != done {
		err = errors.New(line)
	}
	if err != nil {
		return fmt.Errorf("delay connections: %w", err)
	}
	return nil
}

// Dial connects to HOST:PORT through the relay. The connection is a *net.TCPConn. An error is what
// it would have been without the relay.
func (r *Relay) Dial(ctx context.Context, addr string) (net.Conn, error) {
	if strings.ContainsAny(addr, "\n\r") {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: address("?"), Err: errors.New("the address has a line break")}
	}
	c, err := new(net.Dialer).DialContext(ctx, "tcp", r.addr)
	if err != nil {
		return nil, fmt.Errorf("connect to the relay: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	answer := ""
	_, err = io.WriteString(c, r.token+" "+addr+"\n")
	if err == nil {
		answer, err = readLine(c)
	}
	if !stop() { // the deadline may be set after this
		c.Close()
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: address(addr), Err: context.Cause(ctx)}
	}
	switch {
	case err != nil:
		err = fmt.Errorf("connect through the relay: %w", err)
	case answer != "ok":
		err = dialError(addr, answer)
	default:
		r.made.Add(1)
		return c, nil
	}
	c.Close()
	return nil, err
}

// Connections is how many connections were made so far.
func (r *Relay) Connections() int64 { return r.made.Load() }

// Close ends the relay and its connections. A nil relay does nothing.
func (r *Relay) Close() {
	if r == nil {
		return
	}
	r.stdin.Close()
	select {
	case <-r.ended:
	case <-time.After(answering):
		r.child.Kill()
		<-r.ended
	}
}

// Hook is a relay and exits, in a process that Start started; in any other process it returns at
// once. A test's TestMain calls it first.
func Hook() {
	if os.Getenv(childEnv) != "" && len(os.Args) > 1 && os.Args[1] == Command {
		os.Exit(Main(os.Stdin, os.Stdout, os.Stderr))
	}
}
