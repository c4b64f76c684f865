package record

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"carronade/internal/standin/setting"
	"carronade/internal/system"
)

// Columns is the first line of a record. Each other line is a request, or a part
// of one that is answered by itself; what does not exist is empty. Times are
// nanoseconds of the machine's monotonic clock (CLOCK_MONOTONIC).
const Columns = "connection,sequence,kind,topic,partition,offset,events,arrived_ns,writing_ns,answered_ns\n"

// None is a number that does not exist, or is not known.
const None = -1

// A Request is what a server took in one piece.
type Request struct {
	Kind      string // produce, fetch, message or request
	Topic     string
	Partition int32 // None where there is none
	Offset    int64 // of the first event in its log; None where there is none
	Events    int64 // None where the server does not look at them
	Silent    bool  // no answer is due
}

// Bind adds the flag of a record to fs.
func Bind(fs *pflag.FlagSet, path *string) {
	fs.StringVar(path, "record", *path, "for tests of load generators: write when each request came and was answered to this `FILE`")
}

// Check tells whether there can be a record at path of a server that speaks TLS
// so: how an answer is wrapped there nobody says.
func Check(path string, tls setting.TLS) error {
	if path != "" && tls.Cert != "" {
		return errors.New("a recording needs unencrypted answers: it cannot be combined with TLS")
	}
	return nil
}

// A Recorder is a record in the making. A nil one records nothing.
type Recorder struct {
	clock time.Time // any instant
	at    int64     // what the monotonic clock showed then

	mu    sync.Mutex
	f     *os.File
	err   error
	conns map[*Conn]struct{}
}

// Open makes the file, which replaces an older one; nil without a path.
func Open(path string) (*Recorder, error) {
	if path == "" {
		return nil, nil
	}
	r := &Recorder{clock: time.Now(), conns: map[*Conn]struct{}{}}
	var ok bool
	if r.at, ok = system.MonotonicOf(r.clock); !ok {
		return nil, errors.New("recording: this system does not expose its monotonic clock; Linux does")
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("recording: %w", err)
	}
	r.f = f
	_, r.err = f.WriteString(Columns)
	return r, nil
}

// Close writes what is left.
func (r *Recorder) Close() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	left := r.conns
	r.conns = nil
	r.mu.Unlock()
	for c := range left {
		_ = c.Conn.Close()
		c.end()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := errors.Join(r.err, r.f.Close()); err != nil {
		return fmt.Errorf("recording: %w", err)
	}
	return nil
}

func (r *Recorder) now() int64 { return r.at + int64(time.Since(r.clock)) }

// write takes whole lines.
func (r *Recorder) write(lines []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		_, r.err = r.f.Write(lines)
	}
}

// Under wraps the listener whose connections are timed: the one below whatever
// delays answers.
func (r *Recorder) Under(ln net.Listener) net.Listener {
	if r == nil {
		return ln
	}
	return &under{ln, r}
}

type under struct {
	net.Listener
	r *Recorder
}

func (l *under) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &Conn{Conn: nc, r: l.r, name: nc.RemoteAddr().String()}
	l.r.mu.Lock()
	defer l.r.mu.Unlock()
	if l.r.conns != nil { // else it is over
		l.r.conns[c] = struct{}{}
	}
	return c, nil
}

// Over wraps the listener that a server accepts from. What is between it and
// Under's tells what it wraps by NetConn.
func (r *Recorder) Over(ln net.Listener) net.Listener {
	if r == nil {
		return ln
	}
	return &over{ln}
}

type over struct{ net.Listener }

func (l *over) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	inner := nc
	for {
		switch c := inner.(type) {
		case *Conn:
			return &top{nc, c}, nil
		case interface{ NetConn() net.Conn }:
			inner = c.NetConn()
		default:
			return nc, nil
		}
	}
}

// A top is a connection as the server has it: it counts what is to be written.
type top struct {
	net.Conn
	c *Conn
}

func (t *top) Write(p []byte) (int, error) {
	t.c.mu.Lock()
	t.c.given += int64(len(p))
	t.c.mu.Unlock()
	return t.Conn.Write(p)
}

func (t *top) Close() error {
	t.c.Answered()
	return t.Conn.Close()
}

// Of is the recorded connection below nc, one that a server accepted; nil where
// nothing is recorded.
func Of(nc net.Conn) *Conn {
	if t, ok := nc.(*top); ok {
		return t.c
	}
	return nil
}

func appendNumber(line []byte, n int64) []byte {
	if line = append(line, ','); n < 0 {
		return line
	}
	return strconv.AppendInt(line, n, 10)
}
