package cli_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"carronade/test/testkit/assert"

	"golang.org/x/sys/unix"
)

// A screen is a program on a terminal.
type screen struct {
	*typist
	cmd *exec.Cmd
	far *os.File // the side of the user
}

// onTerminal starts carronade on a terminal of 80 columns.
func onTerminal(t *testing.T, args ...string) *screen {
	t.Helper()
	far := assert.Value(os.OpenFile("/dev/ptmx", os.O_RDWR, 0))(t)
	s := &screen{far: far, cmd: exec.Command(carronade(t), args...)}
	n := assert.Value(unix.IoctlGetInt(int(far.Fd()), unix.TIOCGPTN))(t)
	assert.OK(t, unix.IoctlSetPointerInt(int(far.Fd()), unix.TIOCSPTLCK, 0))
	s.resize(t, 80)
	near := assert.Value(os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0))(t)
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = near, near, near
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	s.cmd.Env = append(os.Environ(), "TERM=xterm", "CARRONADE_TEST_UNTRUSTED=none")
	err := s.cmd.Start()
	near.Close()
	assert.OK(t, err)
	s.typist = newTypist(t, struct {
		io.Reader
		io.WriteCloser
	}{&plainReader{r: far}, far})
	return s
}

func (s *screen) resize(t *testing.T, columns uint16) {
	t.Helper()
	assert.OK(t, unix.IoctlSetWinsize(int(s.far.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns}))
}

// ends waits for the program, whose exit code must be 0.
func (s *screen) ends() {
	s.t.Helper()
	assert.OK(s.t, s.cmd.Wait(), "carronade shell")
}

var (
	movement = regexp.MustCompile(`\x1b\[[0-9;]*[A-Za-ln-z]`) // of the cursor, and erasures: all but colors
	unended  = regexp.MustCompile(`\x1b(\[[0-9;]*)?$`)
)

// A plainReader leaves out what a line editor writes besides text and colors.
type plainReader struct {
	r    io.Reader
	rest string // the beginning of a sequence
}

func (p *plainReader) Read(b []byte) (int, error) {
	n, err := p.r.Read(b[:len(b)/2])
	text := p.rest + string(b[:n])
	p.rest = unended.FindString(text)
	text = movement.ReplaceAllString(strings.TrimSuffix(text, p.rest), "")
	return copy(b, strings.ReplaceAll(text, "\r", "")), err
}

// TestErrorsOnTerminal: an error and its hint are wrapped at words, below the text after their labels.
func TestErrorsOnTerminal(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	s := onTerminal(t, "run", "kafka://127.0.0.1:1/orders")
	s.expect("error: connect to 127.0.0.1:1: ")
	s.expect("\nhint: nothing listens there: is the broker running, and is this its address?\n" +
		"      (carronade standin kafka starts a small one)\n")
	assert.True(t, s.cmd.Wait() != nil, "a run without a broker succeeded")
}

// Completion, Ctrl-C, a resized window and Ctrl-D, with a queue of its own and with a server.
func TestShellOnTerminal(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	address := serveFor(t, nil).text
	for _, args := range [][]string{{"shell", "--data", t.TempDir()}, {"shell", address}} {
		t.Run(filepath.Base(args[1]), func(t *testing.T) {
			t.Setenv("XDG_DATA_HOME", t.TempDir())
			s := onTerminal(t, args...)
			s.expect("type 'help' for help\n")
			s.expect(">>> ")
			s.keys("stat\t\r", "status \n", "ElasticSearch not configured", "0 commands queued\n", ">>> ")
			s.keys("re\tli\t\r", "report list \n", "no report", ">>> ")
			s.keys("apm \t", "  list switch tail use\n", ">>> apm ")
			s.keys("\x15run nu\t --rate 1k/s --for 10m --la\t a=b\r", "run null://", " --label ", "measurement ")
			s.keys("\x03", "cancel\n", "ok\n", "cancelled while it ran\n", ">>> ")
			// A line that is wider than the window continues in the next row.
			long := "nothing" + strings.Repeat("x", 50)
			s.keys(long+"\r", long+"\n", "nothing done for nothingx", ">>> ")
			s.resize(t, 40)
			for wrapped := false; !wrapped; { // the program gets a signal, soon
				s.keys(long+"\r", "nothing done for nothingx")
				wrapped = strings.Contains(s.before, "nothing"+strings.Repeat("x", 40-len(">>> nothing"))+"\n"+strings.Repeat("x", 50-40+len(">>> nothing")))
				s.expect(">>> ")
			}
			s.keys("\x04")
			s.ends()
		})
	}
}
