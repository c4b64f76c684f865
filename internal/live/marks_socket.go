package live

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"carronade/internal/host"
)

// A socketRequest asks for a mark.
type socketRequest struct {
	Kind string `json:"kind"` // fault, heal or note
	Name string `json:"name"`
	// Waited is how long ago what the mark stands for was done, at the earliest: when the asking
	// program began.
	Waited time.Duration `json:"waited_ns"`
}

// A socketReply is the mark as it was taken, or why it was not.
type socketReply struct {
	AtS    float64 `json:"at_s"`
	BoundS float64 `json:"bound_s"`
	Error  string  `json:"error,omitempty"`
}

// Bounds of an exchange over a socket.
const (
	mostRequest  = 4 << 10 // bytes of its line
	answerWithin = 5 * time.Second
	mostOpen     = 16 // connections at once; more are closed

	socketSuffix = ".sock"
	tagged       = "~" // between the id of a run and the tag of its owner
)

// tag keeps the runs of an owner apart in names of files; a path of a socket must be short.
func tag(owner string) string {
	sum := sha256.Sum256([]byte(owner))
	return hex.EncodeToString(sum[:6])
}

// idOf returns the id of the run that has a socket, false if it is not one of the owner's. Without
// an owner all runs are.
func idOf(file, owner string) (id string, ok bool) {
	name, ok := strings.CutSuffix(file, socketSuffix)
	if !ok {
		return "", false
	}
	id, of, _ := strings.Cut(name, tagged)
	return id, owner == "" || of == tag(owner)
}

// MarkFolder is where the sockets are: the user's runtime folder, which only the user can enter, or
// the data folder.
func MarkFolder() (string, error) {
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) && runtime.GOOS != "windows" { // others are ignored, as the specification says
		return filepath.Join(dir, "carronade"), nil
	}
	dir, err := host.DataDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "carronade", "run"), nil
}

// A MarkSocket takes marks for one run.
type MarkSocket struct {
	ln    net.Listener
	path  string
	mark  MarkFunc
	slots chan struct{}
	done  sync.WaitGroup
	mu    sync.Mutex
	open  map[net.Conn]bool // nil after Close
}

// ListenForMarks begins to take marks for the run with this id, of an owner if a server has several; "":
// none. mark is called with each request, concurrently: what it stands for was done between the start of
// the asking program and the arrival of the request.
func ListenForMarks(owner, id string, mark MarkFunc) (*MarkSocket, error) {
	dir, err := MarkFolder()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	sweepSockets(dir)
	name := id
	if owner != "" {
		name += tagged + tag(owner)
	}
	s := &MarkSocket{path: filepath.Join(dir, name+socketSuffix), mark: mark, slots: make(chan struct{}, mostOpen), open: map[net.Conn]bool{}}
	if s.ln, err = host.ListenOwn(s.path); err != nil {
		return nil, err
	}
	s.done.Go(s.accept)
	return s, nil
}

// abandoned is the age from which on a socket that refuses connections is that of a run that was
// killed: a new one refuses them, too, until its program listens.
const abandoned = time.Minute

// sweepSockets removes the sockets of runs that were killed.
func sweepSockets(dir string) {
	for _, path := range sockets(dir) {
		info, err := os.Lstat(path)
		if err != nil || info.Mode()&os.ModeSocket == 0 || time.Since(info.ModTime()) < abandoned {
			continue
		}
		c, err := net.DialTimeout("unix", path, answerWithin)
		if err == nil {
			c.Close()
		} else if host.IsRefused(err) {
			_ = os.Remove(path)
		}
	}
}

func (s *MarkSocket) accept() {
	for {
		c, err := s.ln.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) || !s.track(nil, true) {
				return
			}
			time.Sleep(10 * time.Millisecond) // no more files: try again
			continue
		}
		select {
		case s.slots <- struct{}{}:
		default:
			c.Close()
			continue
		}
		if !s.track(c, true) {
			c.Close()
			return
		}
		s.done.Go(func() {
			defer func() { s.track(c, false); c.Close(); <-s.slots }()
			s.answer(c)
		})
	}
}

// track notes an open connection; false after Close.
func (s *MarkSocket) track(c net.Conn, open bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		return false
	}
	if c != nil {
		if s.open[c] = true; !open {
			delete(s.open, c)
		}
	}
	return true
}

func (s *MarkSocket) answer(c net.Conn) {
	_ = c.SetDeadline(time.Now().Add(answerWithin))
	line, err := readLine(c)
	at := time.Now()
	if err != nil {
		return
	}
	var q socketRequest
	reply := socketReply{}
	switch err := json.Unmarshal(line, &q); {
	case err != nil:
		reply.Error = "the request is not JSON"
	case q.Name == "" || len(q.Name) > MostMarkName || q.Waited < 0:
		reply.Error = fmt.Sprintf("a mark has a name of at most %d bytes", MostMarkName)
	default:
		if reply.AtS, reply.BoundS, err = s.mark(q.Kind, q.Name, at.Add(-q.Waited), at); err != nil {
			reply = socketReply{Error: err.Error()}
		}
	}
	text, err := json.Marshal(reply)
	if err != nil {
		return
	}
	_, _ = c.Write(append(text, '\n'))
}

// readLine reads one line, without buffering what follows it.
func readLine(r io.Reader) ([]byte, error) {
	line, err := bufio.NewReader(io.LimitReader(r, mostRequest)).ReadBytes('\n')
	if err != nil {
		return nil, fmt.Errorf("read a line: %w", cmp.Or(err, io.ErrUnexpectedEOF))
	}
	return line, nil
}

// Close ends it and removes the socket. A nil socket does nothing.
func (s *MarkSocket) Close() {
	if s == nil {
		return
	}
	s.ln.Close()
	s.mu.Lock()
	for c := range s.open {
		c.Close()
	}
	s.open = nil
	s.mu.Unlock()
	s.done.Wait()
	_ = os.Remove(s.path)
}

// ErrNoRun is the error of a run that is not in progress, or takes no marks.
var ErrNoRun = errors.New("no run in progress with this id takes marks")

// sockets lists the paths of the sockets in a folder, in order.
func sockets(dir string) (out []string) {
	all, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, f := range all {
		if strings.HasSuffix(f.Name(), socketSuffix) {
			out = append(out, filepath.Join(dir, f.Name()))
		}
	}
	return out
}

// MarkedRuns lists the ids of the runs of this user that take marks; with an owner, only those of that
// one. Sockets of runs that were killed are among them.
func MarkedRuns(owner string) (out []string) {
	dir, err := MarkFolder()
	if err != nil {
		return nil
	}
	for _, path := range sockets(dir) {
		if id, ok := idOf(filepath.Base(path), owner); ok {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

// Alive lists the runs of MarkedRuns that answer.
func Alive(owner string) (out []string) {
	for _, id := range MarkedRuns(owner) {
		if c, err := dialSocket(owner, id); err == nil {
			c.Close()
			out = append(out, id)
		}
	}
	return out
}

func dialSocket(owner, id string) (net.Conn, error) {
	dir, err := MarkFolder()
	if err != nil {
		return nil, err
	}
	for _, path := range sockets(dir) {
		if of, ok := idOf(filepath.Base(path), owner); !ok || of != id {
			continue
		}
		c, err := net.DialTimeout("unix", path, answerWithin)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNoRun, err)
		}
		return c, nil
	}
	return nil, ErrNoRun
}

// SendMark asks a run for a mark; with an owner, only one of that one. began is when the asking program began, with a monotonic reading.
// It returns when the mark is, in seconds from the start of the run, and to what that is exact. An error
// wraps ErrNoRun if the run does not answer.
func SendMark(owner, id, kind, name string, began time.Time) (atS, boundS float64, err error) {
	c, err := dialSocket(owner, id)
	if err != nil {
		return 0, 0, err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(answerWithin))
	text, err := json.Marshal(socketRequest{Kind: kind, Name: name, Waited: time.Since(began)})
	if err != nil {
		return 0, 0, err
	}
	if _, err := c.Write(append(text, '\n')); err != nil {
		return 0, 0, fmt.Errorf("ask run %s: %w", id, err)
	}
	line, err := readLine(c)
	if err != nil {
		return 0, 0, fmt.Errorf("the run %s did not answer: %w", id, err)
	}
	var reply socketReply
	if err := json.Unmarshal(line, &reply); err != nil {
		return 0, 0, fmt.Errorf("the run %s answered with something else: %w", id, err)
	}
	if reply.Error != "" {
		return 0, 0, errors.New(reply.Error)
	}
	return reply.AtS, reply.BoundS, nil
}
