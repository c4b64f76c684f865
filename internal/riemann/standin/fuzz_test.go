package standin

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	"carronade/internal/riemann/wire"
	"carronade/internal/standin"
	"carronade/test/testkit/assert"
)

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
