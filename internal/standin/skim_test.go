package standin

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"carronade/test/testkit/assert"
)

// A letters is a Skimmer with requests of one byte, and one of more:
//
//	a            is answered "A"
//	l            is answered by largeAnswer bytes, which must be written before the next request
//	d, 4 bytes   and as many bytes as these say: is answered "D"
//	q            is answered "Q", and the connection ends
//	another byte is answered "X", and refused
type letters struct {
	part  []byte // d and its length
	left  int64
	out   []byte
	large atomic.Int64 // requests l
}

const largeAnswer = 64 << 10

var errRefused = errors.New("not a letter")

func (k *letters) Take(p []byte) (int, error) {
	for i := 0; i < len(p); {
		if k.left > 0 {
			n := min(k.left, int64(len(p)-i))
			i += int(n)
			_ = k.Skip(n)
			continue
		}
		c := p[i]
		i++
		if len(k.part) > 0 || c == 'd' {
			if k.part = append(k.part, c); len(k.part) == 5 {
				k.left = int64(binary.BigEndian.Uint32(k.part[1:]))
				k.part = nil
			}
			continue
		}
		switch c {
		case 'a':
			k.out = append(k.out, 'A')
		case 'l':
			k.large.Add(1)
			k.out = append(k.out, bytes.Repeat([]byte("L"), largeAnswer)...)
			return i, nil
		case 'q':
			k.out = append(k.out, 'Q')
			return i, io.EOF
		default:
			k.out = append(k.out, 'X')
			return i, errRefused
		}
	}
	return len(p), nil
}

func (k *letters) Skippable() int64 { return k.left }

func (k *letters) Skip(n int64) error {
	if k.left -= n; k.left == 0 {
		k.out = append(k.out, 'D')
	}
	return nil
}

func (k *letters) End() error {
	if k.left > 0 || len(k.part) > 0 {
		return io.ErrUnexpectedEOF
	}
	return io.EOF
}

func (k *letters) Answers() []byte {
	p := k.out
	k.out = k.out[:0]
	return p
}

func dropped(n int) string {
	return "d" + string(binary.BigEndian.AppendUint32(nil, uint32(n))) + strings.Repeat("a", n)
}

// A lettersServer serves connections with threads, or with a goroutine each if it has none.
type lettersServer struct {
	t       *testing.T
	ln      net.Listener
	threads *Threads
}

// connect returns a client's end of a connection, its protocol at the server, and where the
// server reports its end. The client sends first before the server begins to serve it.
func (s *lettersServer) connect(first ...func(*net.TCPConn)) (*net.TCPConn, *letters, chan error) {
	s.t.Helper()
	c, err := net.Dial("tcp", s.ln.Addr().String()) //nolint:noctx // a test
	assert.OK(s.t, err)
	s.t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	for _, send := range first {
		send(c.(*net.TCPConn))
	}
	nc := assert.Value(s.ln.Accept())(s.t)
	k, ended := new(letters), make(chan error, 1)
	s.threads.Serve(nc, k, 32<<10, func(err error) { ended <- err; nc.Close() })
	assert.Must(s.t, s.threads == nil || nc.SetDeadline(time.Time{}) != nil, "the connection is not adopted")
	return c.(*net.TCPConn), k, ended
}

// skimBothWays runs a test on threads for many connections, if the system supports them, and without.
func skimBothWays(t *testing.T, test func(t *testing.T, s *lettersServer)) {
	t.Helper()
	for _, way := range []string{"threads", "goroutines"} {
		t.Run(way, func(t *testing.T) {
			ln, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a test
			assert.OK(t, err)
			t.Cleanup(func() { ln.Close() })
			s := &lettersServer{t: t, ln: ln}
			if way == "threads" {
				if s.threads = NewThreads(); s.threads == nil {
					t.Skip("no pollers here")
				}
				t.Cleanup(s.threads.Close)
			}
			test(t, s)
		})
	}
}

func write(t *testing.T, c net.Conn, text string) {
	t.Helper()
	assert.Value(io.WriteString(c, text))(t)
}

func wantAnswers(t *testing.T, c net.Conn, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if n, err := io.ReadFull(c, got); err != nil || string(got) != want {
		t.Fatalf("got %.40q, %v; want %.40q", got[:n], err, want)
	}
}

// Requests may be split at every byte. The answer to the request before a piece shows that the server has taken the piece.
func TestSkimSplit(t *testing.T) {
	t.Parallel()
	skimBothWays(t, func(t *testing.T, s *lettersServer) {
		c, _, _ := s.connect()
		all := "a" + dropped(3) + "aa" + dropped(minDrop+10) + dropped(1) + "la"
		large := strings.Repeat("L", largeAnswer)
		for cut := range len(all) + 1 {
			if cut > 20 && cut < minDrop-10 {
				continue // as those before and after
			}
			write(t, c, "a"+all[:cut])
			wantAnswers(t, c, "A")
			write(t, c, all[cut:])
			wantAnswers(t, c, "ADAADD"+large+"A")
		}
	})
}

// Bytes are dropped by their number, in whatever pieces they arrive, and not one more.
func TestSkimDrops(t *testing.T) {
	t.Parallel()
	skimBothWays(t, func(t *testing.T, s *lettersServer) {
		c, _, _ := s.connect()
		wrote := make(chan error, 1)
		text := strings.Repeat("a"+dropped(3_000_000)+"a"+dropped(100_000), 5)
		go func() { _, err := io.WriteString(c, text); wrote <- err }()
		wantAnswers(t, c, strings.Repeat("ADAD", 5))
		err := <-wrote
		assert.True(t, err == nil, "%v", err)
	})
}

// A connection ends with the error of its protocol, after the answers before it.
func TestSkimEnds(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, send, answers string
		half                bool // the client then says that it sends nothing more
		want                error
	}{
		{"a request that is refused", "aa?", "AAX", false, errRefused},
		{"after a large answer", "al?", "A" + strings.Repeat("L", largeAnswer) + "X", false, errRefused},
		{"the last request", "aq", "AQ", false, io.EOF},
		{"the end after a request", "aaa", "AAA", true, io.EOF},
		{"the end after large answers", strings.Repeat("l", 200), strings.Repeat("L", 200*largeAnswer), true, io.EOF},
		{"the end after a dropped request", dropped(100_000), "D", true, io.EOF},
		{"the end without a request", "", "", true, io.EOF},
		{"the end within a request", "ad\x00\x00", "A", true, io.ErrUnexpectedEOF},
		{"the end within dropped bytes", "ad\x00\x01\x00\x00aaaaa", "A", true, io.ErrUnexpectedEOF},
	} {
		t.Run(test.name, func(t *testing.T) {
			skimBothWays(t, func(t *testing.T, s *lettersServer) {
				c, _, ended := s.connect()
				write(t, c, test.send)
				if test.half {
					assert.OK(t, c.CloseWrite())
				}
				if got, err := io.ReadAll(c); err != nil || string(got) != test.answers {
					t.Errorf("got %d bytes, %.40q, %v; want %d, and the end", len(got), got, err, len(test.answers))
				}
				err := <-ended
				assert.True(t, errors.Is(err, test.want), "it ended with %v, want %v", err, test.want)
			})
		})
	}
}

// The server makes no more answers for a client that does not read than fit into the buffers of the connection.
func TestSkimSlowReader(t *testing.T) {
	t.Parallel()
	skimBothWays(t, func(t *testing.T, s *lettersServer) {
		c, k, _ := s.connect()
		_ = c.SetReadBuffer(64 << 10)
		const n, buffered = 1000, 500
		write(t, c, strings.Repeat("l", n))
		for i := range n {
			wantAnswers(t, c, strings.Repeat("L", largeAnswer))
			made := int(k.large.Load())
			assert.Must(t, made <= i+buffered, "%d answers were made when %d were read", made, i+1)
		}
	})
}

// A reset ends a connection, also one that waits for its client to read, and the others are served.
func TestSkimReset(t *testing.T) {
	t.Parallel()
	skimBothWays(t, func(t *testing.T, s *lettersServer) {
		other, _, _ := s.connect()
		for _, send := range []string{"a", strings.Repeat("l", 1000)} {
			c, _, ended := s.connect()
			write(t, c, send)
			assert.Value(io.ReadFull(c, make([]byte, 1)))(t)
			_ = c.SetLinger(0)
			c.Close()
			err := <-ended
			assert.True(t, Disconnected(err), "it ended with %v, want a reset", err)
			write(t, other, "a")
			wantAnswers(t, other, "A")
		}
	})
}

// Close ends all connections, whatever they wait for. More are opened in all than are open at a time.
func TestThreadsClose(t *testing.T) {
	t.Parallel()
	skimBothWays(t, func(t *testing.T, s *lettersServer) {
		if s.threads == nil {
			t.Skip("only of threads")
		}
		var open []chan error
		for i := range 100 {
			c, _, ended := s.connect()
			switch i % 4 {
			case 0:
				write(t, c, "aq") // the next connection gets its place
				wantAnswers(t, c, "AQ")
				<-ended
				continue
			case 1: // idle
			case 2:
				write(t, c, "ad\x00\x01\x00\x00aaaaa")
				wantAnswers(t, c, "A")
			case 3: // unread answers
				write(t, c, "a"+strings.Repeat("l", 500))
				wantAnswers(t, c, "A")
			}
			open = append(open, ended)
		}
		var both sync.WaitGroup
		both.Go(s.threads.Close)
		s.threads.Close()
		for i, ended := range open {
			select {
			case err := <-ended:
				assert.True(t, err != nil, "connection %d ended without an error", i)
			default:
				t.Errorf("connection %d has not ended", i)
			}
		}
		both.Wait()
		c, err := net.Dial("tcp", s.ln.Addr().String()) //nolint:noctx // a test
		assert.OK(t, err)
		defer c.Close()
		late := assert.Value(s.ln.Accept())(t)
		assert.True(t, !s.threads.adopt(late, new(letters), func(error) { t.Error("ended was called") }),
			"a connection was adopted after Close")
		n, err := late.Read(make([]byte, 1))
		assert.True(t, n == 0 && errors.Is(err, net.ErrClosed), "read %d, %v; want a closed connection", n, err)
	})
}

// Connections other than plain TCP are not adopted, and stay usable.
func TestThreadsLeave(t *testing.T) {
	t.Parallel()
	threads := NewThreads()
	defer threads.Close()
	here, there := net.Pipe()
	defer here.Close()
	defer there.Close()
	assert.Must(t, !threads.adopt(there, new(letters), func(error) { t.Error("ended was called") }), "a pipe was adopted")
	go io.WriteString(here, "a")
	assert.Value(io.ReadFull(there, make([]byte, 1)))(t)
}
