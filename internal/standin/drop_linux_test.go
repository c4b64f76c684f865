package standin

import (
	"io"
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// TestTryDropWithOtherConnections: other clients that connect to the listener and send nothing do not block the trial.
func TestTryDropWithOtherConnections(t *testing.T) {
	t.Parallel()
	if !CanDrop() {
		t.Skip("this kernel drops nothing")
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a test
	assert.OK(t, err)
	defer ln.Close()
	for range 3 {
		other, err := net.Dial("tcp", ln.Addr().String()) //nolint:noctx // a test
		assert.OK(t, err)
		defer other.Close()
	}
	result := make(chan bool, 1)
	go func() { result <- tryDrop(ln) }()
	assert.True(t, testkit.Wait(t, "the trial", result), "the trial reports that bytes are not dropped")
}

// Urgent data are not part of the stream. The bytes behind them are read also if nothing arrives later.
func TestSkimUrgentData(t *testing.T) {
	t.Parallel()
	// All that is sent at once fits into the receive buffer: nothing arrives later.
	for _, test := range []struct{ name, before, after, answers string }{
		{"between requests", "aa", "aaa", "AAAAA"},
		{"in dropped bytes", dropped(60_000)[:50_000], dropped(60_000)[50_000:] + "a", "DA"},
		{"before dropped bytes", dropped(50_000)[:5], dropped(50_000)[5:] + "a", "DA"},
	} {
		t.Run(test.name, func(t *testing.T) {
			skimBothWays(t, func(t *testing.T, s *lettersServer) {
				send := func(c *net.TCPConn) {
					write(t, c, test.before)
					raw := assert.Value(c.SyscallConn())(t)
					var sent error
					err := raw.Write(func(fd uintptr) bool {
						_, sent = unix.SendmsgN(int(fd), []byte{'!'}, nil, nil, unix.MSG_OOB)
						return sent != unix.EAGAIN
					})
					assert.Must(t, err == nil && sent == nil, "%v %v", err, sent)
					write(t, c, test.after)
				}
				c, _, _ := s.connect(send)
				wantAnswers(t, c, test.answers)
				send(c)
				wantAnswers(t, c, test.answers)
				assert.OK(t, c.CloseWrite())
				rest, err := io.ReadAll(c)
				assert.True(t, err == nil && len(rest) == 0, "got %q, %v; want the end", rest, err)
			})
		})
	}
}
