package standin

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"carronade/internal/host"
)

// RecordColumns is the first line of a record. Each other line is a request, or a part
// of a request that is answered separately. A value that does not exist is empty.
// Times are nanoseconds of the machine's monotonic clock (CLOCK_MONOTONIC).
const RecordColumns = "connection,sequence,kind,topic,partition,offset,events,arrived_ns,writing_ns,answered_ns\n"

// NoRecord is a number that does not exist or is not known.
const NoRecord = -1

// A RecordedRequest is a request, or a part of one, that has one line in the record.
type RecordedRequest struct {
	Kind      string // produce, fetch, message or request
	Topic     string
	Partition int32 // or NoRecord
	Offset    int64 // of the first event in its log; or NoRecord
	Events    int64 // NoRecord if the server does not read them
	NoAnswer  bool  // the protocol requires no answer
}

// BindRecord adds the flag of a record to fs.
func BindRecord(fs *pflag.FlagSet, path *string) {
	fs.StringVar(path, "record", *path, "for tests of load generators: write when each request came and was answered to this `FILE`")
}

// CheckRecord reports whether a record is possible with these TLS settings: under TLS,
// the sizes of the encrypted answers are not known.
func CheckRecord(path string, tls TLS) error {
	if path != "" && tls.Cert != "" {
		return errors.New("a recording needs unencrypted answers: it cannot be combined with TLS")
	}
	return nil
}

// A Recorder writes a record. A nil one records nothing.
type Recorder struct {
	origin   time.Time // any instant
	originNS int64     // the monotonic clock at that instant

	mu    sync.Mutex
	f     *os.File
	err   error
	conns map[*RecordedConn]struct{}
}

// OpenRecord creates the file, replacing an older one; nil without a path.
func OpenRecord(path string) (*Recorder, error) {
	if path == "" {
		return nil, nil
	}
	r := &Recorder{origin: time.Now(), conns: map[*RecordedConn]struct{}{}}
	var ok bool
	if r.originNS, ok = host.MonotonicOf(r.origin); !ok {
		return nil, errors.New("recording: this system does not expose its monotonic clock; Linux does")
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("recording: %w", err)
	}
	r.f = f
	_, r.err = f.WriteString(RecordColumns)
	return r, nil
}

// Close writes the remaining lines and closes the file.
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
		c.finish()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := errors.Join(r.err, r.f.Close()); err != nil {
		return fmt.Errorf("recording: %w", err)
	}
	return nil
}

func (r *Recorder) now() int64 { return r.originNS + int64(time.Since(r.origin)) }

// write writes complete lines to the file.
func (r *Recorder) write(lines []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		_, r.err = r.f.Write(lines)
	}
}

// WrapInner wraps the listener whose connections are timed: the innermost one,
// below any wrapper that delays answers.
func (r *Recorder) WrapInner(ln net.Listener) net.Listener {
	if r == nil {
		return ln
	}
	return &innerListener{ln, r}
}

type innerListener struct {
	net.Listener
	r *Recorder
}

func (l *innerListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &RecordedConn{Conn: nc, r: l.r, name: nc.RemoteAddr().String()}
	l.r.mu.Lock()
	defer l.r.mu.Unlock()
	if l.r.conns != nil { // nil after Close
		l.r.conns[c] = struct{}{}
	}
	return c, nil
}

// WrapOuter wraps the listener from which a server accepts. The connections between
// it and WrapInner's must have a method NetConn that returns the wrapped one.
func (r *Recorder) WrapOuter(ln net.Listener) net.Listener {
	if r == nil {
		return ln
	}
	return &outerListener{ln}
}

type outerListener struct{ net.Listener }

func (l *outerListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	inner := nc
	for {
		switch c := inner.(type) {
		case *RecordedConn:
			return &outerConn{nc, c}, nil
		case interface{ NetConn() net.Conn }:
			inner = c.NetConn()
		default:
			return nc, nil
		}
	}
}

// An outerConn is a connection as the server sees it: it counts the bytes to be
// written.
type outerConn struct {
	net.Conn
	c *RecordedConn
}

// NetConn is the wrapped connection.
func (t *outerConn) NetConn() net.Conn { return t.Conn }

func (t *outerConn) Write(p []byte) (int, error) {
	t.c.mu.Lock()
	t.c.submitted += int64(len(p))
	t.c.mu.Unlock()
	return t.Conn.Write(p)
}

func (t *outerConn) Close() error {
	t.c.Answered()
	return t.Conn.Close()
}

// RecordedConnOf returns the recorded connection below nc, which a server accepted; nil if
// nothing is recorded.
func RecordedConnOf(nc net.Conn) *RecordedConn {
	if t, ok := nc.(*outerConn); ok {
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
