package fault

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

// RelayCommand is the hidden command of this program that is a relay.
const RelayCommand = "relay-connections"

// childEnv marks the process of a relay.
const childEnv = "CARRONADE_RELAY_CHILD"

// A Relay is a process through which connections go. It is safe for concurrent use.
type Relay struct {
	child *system.Child
	stdin io.WriteCloser
	addr  string
	token string
	said  chan answer   // what the process prints
	ended chan struct{} // closed when the process is gone

	setting sync.Mutex   // of a delay, and of what follows
	asked   int64        // the number of the last command
	closing atomic.Bool  // its end is wanted
	made    atomic.Int64 // connections
	late    atomic.Int64 // ns
}

// answering is how long the process may take to listen, and to take a delay.
const answering = 10 * time.Second

// StartRelay starts a relay without a delay. It ends with this process, in whatever way that ends.
//
// In a test, the running program is the test: its TestMain must call Hook first.
func StartRelay(ctx context.Context) (*Relay, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the running program: %w", err)
	}
	cmd := exec.Command(exe, RelayCommand) //nolint:gosec,noctx // our own program; ended by Close
	cmd.Env = append(system.Environ(), childEnv+"=1")
	r := &Relay{token: rand.Text(), said: make(chan answer, 1), ended: make(chan struct{})}
	if r.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start a relay: %w", err)
	}
	r.child, err = system.StartChild(cmd, func(line string) {
		var a answer
		if json.Unmarshal([]byte(line), &a) != nil {
			a = answer{Error: line} // such as that of the kernel's loader
		}
		select {
		case r.said <- a:
		case <-r.ended:
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
	a, err := r.order(ctx, command{Token: r.token})
	if err != nil {
		r.Close()
		return nil, fmt.Errorf("start a relay: %w", err)
	}
	r.addr = a.Addr
	return r, nil
}

// order sends a command, and returns its answer. After an error the command may take effect all the
// same, before the next one.
func (r *Relay) order(ctx context.Context, c command) (answer, error) {
	r.setting.Lock()
	defer r.setting.Unlock()
	r.asked++
	c.Number = r.asked
	text, err := json.Marshal(c)
	if err != nil {
		return answer{}, err
	}
	if _, err := r.stdin.Write(append(text, '\n')); err != nil {
		return answer{}, errEnded
	}
	timeout := time.After(answering)
	for {
		select {
		case a := <-r.said:
			switch {
			case a.Error != "":
				return a, errors.New(a.Error)
			case a.Number == c.Number:
				return a, nil
			}
			// It is late, and of an earlier command.
		case <-r.ended:
			return answer{}, errEnded
		case <-timeout:
			return answer{}, fmt.Errorf("the relay did not answer within %v", answering)
		case <-ctx.Done():
			return answer{}, context.Cause(ctx)
		}
	}
}

var errEnded = errors.New("the relay has ended")

// Delay makes each round trip of all connections take d longer from now on, half of it in each
// direction. 0 ends that; what is on the way arrives when it was due. After an error the delay may
// change all the same, but not after a later one.
func (r *Relay) Delay(ctx context.Context, d time.Duration) error {
	a, err := r.order(ctx, command{Delay: int64(d)})
	if err != nil {
		return fmt.Errorf("delay connections: %w", err)
	}
	r.late.Store(max(r.late.Load(), a.Late))
	return nil
}

// Late is the most by which a delayed piece was passed on later than it was due, as the relay said
// with its answer to the last Delay. It is time that the relay added. A nil relay adds none.
func (r *Relay) Late() time.Duration {
	if r == nil {
		return 0
	}
	return time.Duration(r.late.Load())
}

// Died is closed when the process has ended. A nil relay never ends.
func (r *Relay) Died() <-chan struct{} {
	if r == nil {
		return nil
	}
	return r.ended
}

// Ended says how the process ended, if it ended before Close; "" otherwise.
func (r *Relay) Ended() string {
	select {
	case <-r.Died():
	default:
		return ""
	}
	if r.closing.Load() {
		return ""
	}
	if err := r.child.Err(); err != nil {
		return err.Error()
	}
	return "exit status 0"
}

// ErrRelay is what an error of Dial is that is not the target's: this machine could not reach the
// relay, or lost it.
var ErrRelay = errors.New("the relay of this machine failed, not the target")

// Dial connects to HOST:PORT through the relay. The connection is a *net.TCPConn. An error is what
// it would have been without the relay, or an ErrRelay.
func (r *Relay) Dial(ctx context.Context, addr string) (net.Conn, error) {
	if strings.ContainsAny(addr, "\n\r") {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: address("?"), Err: errors.New("the address has a line break")}
	}
	c, err := new(net.Dialer).DialContext(ctx, "tcp", r.addr)
	if err != nil {
		if ctx.Err() != nil {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: address(addr), Err: context.Cause(ctx)}
		}
		return nil, &relayError{"connect to the relay", err}
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
		err = &relayError{"connect through the relay", err}
	case answer != "ok":
		err = dialError(addr, answer)
	default:
		r.made.Add(1)
		return c, nil
	}
	c.Close()
	return nil, err
}

// A relayError does not wrap its cause: a refused connection to the relay is not one that the target
// refused.
type relayError struct {
	doing string
	cause error
}

func (e *relayError) Error() string { return fmt.Sprintf("%s: %v: %v", e.doing, ErrRelay, e.cause) }

func (e *relayError) Is(err error) bool { return err == ErrRelay }

// Connections is how many connections were made so far.
func (r *Relay) Connections() int64 { return r.made.Load() }

// Close ends the relay and its connections. A nil relay does nothing.
func (r *Relay) Close() {
	if r == nil {
		return
	}
	r.closing.Store(r.Ended() == "")
	r.stdin.Close()
	select {
	case <-r.ended:
	case <-time.After(answering):
		r.child.Kill()
		<-r.ended
	}
}

// Hook is a relay and exits, in a process that StartRelay started; in any other process it returns at
// once. A test's TestMain calls it first.
func Hook() {
	if os.Getenv(childEnv) != "" && len(os.Args) > 1 && os.Args[1] == RelayCommand {
		os.Exit(RelayMain(os.Stdin, os.Stdout, os.Stderr))
	}
}
