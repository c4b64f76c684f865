package standin

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"carronade/internal/riemann/wire"
	"carronade/internal/standin"
	"carronade/test/testkit/assert"
)

// discardBothWays runs a test on the discarding server on threads for many connections, if the system supports them, and with a
// goroutine for each connection. As it sets makeThreads and fewConns, the test must not be parallel.
func discardBothWays(t *testing.T, opts Options, test func(t *testing.T, s *Server)) {
	t.Helper()
	opts.Discard, opts.Interval = true, time.Hour
	for _, way := range []struct {
		name    string
		threads func() *standin.Threads
	}{{"threads", standin.NewThreads}, {"goroutines", func() *standin.Threads { return nil }}} {
		t.Run(way.name, func(t *testing.T) {
			makeThreads = way.threads
			few := fewConns
			fewConns = 0
			defer func() { makeThreads, fewConns = standin.NewThreads, few }()
			s := start(t, opts)
			if way.name == "threads" && s.threads == nil {
				t.Skip("no pollers here")
			}
			test(t, s)
		})
	}
}

func framesOf(msgs ...wire.Msg) (b []byte) {
	for i := range msgs {
		b = wire.AppendFramed(b, &msgs[i])
	}
	return b
}

// TestDiscardSplit: frames may be split at every byte. The ack of the message before a
// piece shows that the server has taken the piece.
func TestDiscardSplit(t *testing.T) {
	discardBothWays(t, Options{}, func(t *testing.T, s *Server) {
		p := dial(t, s.Addr())
		long := message(strings.Repeat("x", 40_000)) // is dropped unread
		msgs := []wire.Msg{message("a"), {}, {Query: `service = "b"`}, message("a", "b"), long, {}, {}, {Query: "service ="}, message("c")}
		all := framesOf(msgs...)
		first := framesOf(message("first"))
		var cuts []int
		for cut := range len(all) + 1 {
			if cut > 120 && cut < len(all)-60 && cut%5000 != 0 {
				continue // within the long message
			}
			cuts = append(cuts, cut)
			assert.Value(p.Write(append(bytes.Clone(first), all[:cut]...)))(t)
			m := p.answer()
			assert.Must(t, m.OK, "cut at %d: the first answer is %+v", cut, m)
			assert.Value(p.Write(all[cut:]))(t)
			for i := range msgs {
				m := p.answer()
				assert.Must(t, m.OK == (i != 7) && len(m.Events) == 0, "cut at %d: answer %d is %+v", cut, i, m)
			}
		}
		n := uint64(len(cuts))
		if c := s.Counts(); c.Messages != n*10 || c.Queries != n*2 || c.Bytes != n*uint64(len(first)+len(all)) || c.Refused != 0 {
			t.Errorf("counted %+v, want %d messages, %d queries, %d bytes", c, n*10, n*2, n*uint64(len(first)+len(all)))
		}
	})
}

// TestDiscardRefuses: a frame that is too long, or not a query although it begins like one,
// ends its connection after the answers before it, and is logged.
func TestDiscardRefuses(t *testing.T) {
	var log safeBuffer
	discardBothWays(t, Options{MaxMessage: 100, Log: &log}, func(t *testing.T, s *Server) {
		other := dial(t, s.Addr())
		var wants []string
		for _, test := range []struct{ name, bytes, want string }{
			{"too long", "\x00\x00\x00\x65", "a length of 101, more than 100"},
			{"too long, with its message", "\x00\x00\x00\x65" + strings.Repeat("x", 101), "does the client speak Riemann's protocol, without TLS?"},
			{"a query that is cut off", "\x00\x00\x00\x02\x2a\x05", "message: "},
		} {
			p := dial(t, s.Addr())
			whole := framesOf(message("a"), wire.Msg{Query: "true"}, message("b"))
			assert.Value(p.Write(append(whole, test.bytes...)))(t)
			for i := range 3 {
				m := p.answer()
				assert.True(t, m.OK, "%s: answer %d is %+v", test.name, i, m)
			}
			n, err := p.Read(make([]byte, 1))
			assert.True(t, n == 0 && err != nil, "%s: got %d bytes, %v; want a closed connection", test.name, n, err)
			other.send(message("c"))
			m := other.answer()
			assert.True(t, m.OK, "%s: another connection got %+v", test.name, m)
			wants = append(wants, "connection from "+p.LocalAddr().String(), test.want)
		}
		err := s.Close()
		assert.True(t, err == nil, "%v", err)
		for _, want := range wants {
			assert.True(t, strings.Contains(log.String(), want), "logged %q, want %q", log.String(), want)
		}
	})
}

// TestDiscardErrors: with scripted errors each message is answered in order, also those that come together or are dropped unread.
func TestDiscardErrors(t *testing.T) {
	discardBothWays(t, Options{Errors: []ErrorRule{{Name: "overloaded", Share: 0.3}}}, func(t *testing.T, s *Server) {
		p := dial(t, s.Addr())
		var all []wire.Msg
		const rounds = 200
		for range rounds {
			all = append(all, message("a"), wire.Msg{Query: "true"}, message(strings.Repeat("x", 2000)))
		}
		go p.Write(framesOf(append(all, message(strings.Repeat("x", 600_000)))...))
		refused := uint64(0)
		for i := range all {
			m := p.answer()
			if m.Error == "overloaded" && i%3 != 1 {
				refused++
			} else if !m.OK {
				t.Fatalf("answer %d is %+v", i, m)
			}
		}
		if p.answer().Error != "" {
			refused++
		}
		if c := s.Counts(); c.Refused != refused || c.Messages != 3*rounds+1 || refused < rounds/4 || refused > rounds {
			t.Errorf("%d of %d were refused; counted %+v", refused, 2*rounds+1, c)
		}
	})
}

// A scriptedConn is a connection that delivers bytes in pieces and collects answers.
type scriptedConn struct {
	net.Conn
	in      []byte
	maxRead int // largest number of bytes that a read returns
	out     bytes.Buffer
}

func (s *scriptedConn) Read(p []byte) (int, error) {
	if len(s.in) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), s.maxRead)], s.in)
	s.in = s.in[n:]
	return n, nil
}

func (s *scriptedConn) Write(p []byte) (int, error) { return s.out.Write(p) }

// FuzzConn sends arbitrary bytes over a connection, at once and in pieces. The
// answers must be the same and well-formed, with one for each message.
func FuzzConn(f *testing.F) {
	framed := func(msgs ...wire.Msg) (b []byte) {
		for i := range msgs {
			b = wire.AppendFramed(b, &msgs[i])
		}
		return b
	}
	one := message("a")
	one.Events[0].Time, one.Events[0].HasTime = time.Now().Unix()+1000, true
	f.Add(framed(one, wire.Msg{Query: "true"}, wire.Msg{}, wire.Msg{Query: "service ="}, one), uint8(7))
	f.Add(framed(wire.Msg{Query: `service = "a"`}), uint8(1))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"), uint8(3))
	f.Add([]byte{0, 0, 0, 2, 0x32, 5, 0, 0, 0, 0, 0, 0, 0, 0}, uint8(200))
	f.Add([]byte{0, 0, 0, 2, 0x2a, 0, 0, 0, 0, 1}, uint8(2))
	f.Fuzz(func(t *testing.T, in []byte, most uint8) {
		for _, discard := range []bool{false, true} {
			var outs [2][]byte
			for i, most := range []int{1 << 20, int(most) + 1} {
				core := newCore(Options{Discard: discard, MaxMessage: 1 << 16}.withDefaults())
				s := &scriptedConn{in: in, maxRead: most}
				var err error
				if discard {
					err = standin.Skim(s, newSkimmer(core, s, new(meter)), make([]byte, 64))
				} else {
					err = newConn(core, s, new(meter), 64).serve()
				}
				assert.True(t, err != nil, "it ended without an error")
				outs[i] = s.out.Bytes()
				answers := uint64(0)
				for rest := outs[i]; len(rest) > 0; answers++ {
					msg, after, err := wire.NextFrame(rest, 1<<30)
					assert.Must(t, err == nil && after != nil, "answer %d is not a frame: %v", answers, err)
					m, err := wire.DecodeMsg(msg)
					assert.Must(t, err == nil && m.HasOK, "answer %d: %+v, %v", answers, m, err)
					rest = after
				}
				assert.Equal(t, core.tally.messages.Load(), answers, "discard=%v: messages and answers", discard)
			}
			// Found events come in any order, so only the lengths can be compared.
			assert.Equal(t, len(outs[0]), len(outs[1]), "discard=%v: bytes of answers, at once and in pieces", discard)
		}
	})
}
