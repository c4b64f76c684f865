package shell

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/term"
)

// A session on a terminal edits its lines itself: the terminal is in raw mode, and sends each
// key. The same holds for one over a network: carronade shell ADDR sends keys, and the server
// edits. So both have the same history and completion.

// sizeOption is telnet's option with the size of a window.
func sizeOption(columns, rows int) []byte {
	var size [4]byte
	binary.BigEndian.PutUint16(size[:], uint16(min(max(columns, 0), 1<<16-1))) //nolint:gosec // bounded
	binary.BigEndian.PutUint16(size[2:], uint16(min(max(rows, 0), 1<<16-1)))   //nolint:gosec // bounded
	out := []byte{telnetIAC, telnetSB, naws}
	for _, b := range size {
		if out = append(out, b); b == telnetIAC {
			out = append(out, b) // as data
		}
	}
	return append(out, telnetIAC, telnetSE)
}

// fewest and most are the sizes of windows that the editor gets.
const (
	fewest = 10
	most   = 1000
)

// A Terminal edits the lines of a session.
type Terminal struct {
	*term.Terminal
	keys *keys
}

// newTerminal returns a line editor for keys from r that writes to w. The caller runs its keys.pump
// in a goroutine.
func newTerminal(r io.ByteReader, w io.Writer, columns, rows int) *Terminal {
	t := &Terminal{keys: newKeys(r)}
	t.Terminal = term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{t.keys, w}, "")
	t.keys.resized = t.resize
	t.resize(columns, rows)
	return t
}

// resize sets the size of the window.
func (t *Terminal) resize(columns, rows int) {
	t.SetSize(min(max(columns, fewest), most), min(max(rows, fewest), most)) //nolint:errcheck // then lines wrap late
}

// plainWord ends the command of a terminal whose user wants no colors.
const plainWord = "plain"

// useTerminal is the command of carronade shell ADDR: from now on the client sends keys.
func (s *session) useTerminal(words []string) error {
	colorless := len(words) == 4 && words[3] == plainWord
	if len(words) != 3 && !colorless || s.Terminal != nil {
		return errors.New("terminal is what carronade shell ADDR sends")
	}
	columns, err := strconv.Atoi(words[1])
	rows, err2 := strconv.Atoi(words[2])
	if err = errors.Join(err, err2); err != nil {
		return errors.New("the size of the terminal is two numbers")
	}
	s.lines.endLine()
	t := newTerminal(s.lines.r, s.conn, columns, rows)
	s.follows.Go(t.keys.pump)
	s.Color, s.out.color = !colorless, !colorless
	s.setTerminal(t)
	return nil
}

// OnTerminal runs a session on the terminal of this process. The terminal is restored when run
// returns. Without a terminal, lines are read from in, and at its end the session waits for its
// jobs.
func OnTerminal(in *os.File, out io.Writer, run func(conn io.ReadWriter, t *Terminal) error) error {
	screen, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) || !term.IsTerminal(int(screen.Fd())) {
		return run(Script(in, out), nil)
	}
	old, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return fmt.Errorf("cannot use the terminal: %w", err)
	}
	defer term.Restore(int(in.Fd()), old) //nolint:errcheck // there is nothing else to do
	columns, rows := windowSize(screen)
	input := unblocked(in)
	t := newTerminal(bufio.NewReader(input), screen, columns, rows)
	var reading sync.WaitGroup
	reading.Go(t.keys.pump)
	defer reading.Wait()
	defer input.Close()
	defer onResize(func() { t.resize(windowSize(screen)) })()
	return run(struct {
		io.ReadCloser
		io.Writer
	}{input, screen}, t)
}

// windowSize is the size of a terminal, 80 by 24 if it is not known.
func windowSize(screen *os.File) (columns, rows int) {
	columns, rows, err := term.GetSize(int(screen.Fd()))
	if err != nil || columns <= 0 || rows <= 0 {
		return 80, 24
	}
	return columns, rows
}

// unblocked reads in in the background, so that a read ends when the result is closed. A read of
// a terminal does not end otherwise.
func unblocked(in io.Reader) io.ReadCloser {
	r, w := io.Pipe()
	go func() {
		_, err := io.Copy(w, in)
		w.CloseWithError(err)
	}()
	return r
}

// Script joins the streams of a session without a terminal: lines of a file or a pipe. At the end
// the session waits for its jobs.
func Script(in io.Reader, out io.Writer) io.ReadWriter {
	return struct {
		io.Reader
		io.Writer
	}{io.MultiReader(in, strings.NewReader("\nwait\n")), out}
}

// Connect joins this process's streams with a session on a server, until the session ends or ctx
// is done. On a terminal the server edits the lines, with colors if color is set.
func Connect(ctx context.Context, conn net.Conn, in io.Reader, out io.Writer, color bool) error {
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	keyboard, screen := terminalOf(in, out)
	if keyboard == nil {
		go func() {
			io.Copy(conn, io.MultiReader(in, strings.NewReader("\nwait\nquit\n"))) //nolint:errcheck // the other direction sees the end
		}()
		return ended(ctx, out, conn, false)
	}
	// The server begins with lines. It sends for a raw terminal once it knows that this is one.
	if greeting(conn, screen) != nil {
		return errNoSession
	}
	old, err := term.MakeRaw(int(keyboard.Fd()))
	if err != nil {
		return fmt.Errorf("cannot use the terminal: %w", err)
	}
	defer term.Restore(int(keyboard.Fd()), old) //nolint:errcheck // there is nothing else to do
	var writing sync.Mutex                      // an option must not come into another
	columns, rows := windowSize(screen)
	hello := fmt.Sprintf("terminal %d %d", columns, rows)
	if !color {
		hello += " " + plainWord
	}
	if _, err := fmt.Fprintf(conn, "%s\r\n", hello); err != nil {
		return err
	}
	defer onResize(func() {
		writing.Lock()
		defer writing.Unlock()
		conn.Write(sizeOption(windowSize(screen))) //nolint:errcheck // the other direction sees the end
	})()
	go func() {
		buf := make([]byte, 1024)
		for {
			n, err := keyboard.Read(buf)
			writing.Lock()
			conn.Write(buf[:n]) //nolint:errcheck // the other direction sees the end
			writing.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return ended(ctx, screen, conn, true)
}

// greeting shows what a server says up to its first prompt, without what is for other clients.
func greeting(conn io.Reader, out io.Writer) error {
	var text []byte
	one := make([]byte, 1) // what follows the prompt is for the terminal
	for len(text) < MaxLine && !strings.HasSuffix(string(text), promptText) {
		n, err := conn.Read(one)
		if text = append(text, one[:n]...); err != nil {
			fmt.Fprint(out, string(text))
			return err
		}
	}
	for line := range strings.Lines(strings.TrimSuffix(string(text), promptText)) {
		if !strings.Contains(line, "rlwrap") {
			fmt.Fprint(out, line)
		}
	}
	return nil
}

// terminalOf returns the terminal if both streams are one.
func terminalOf(in io.Reader, out io.Writer) (keyboard, screen *os.File) {
	keyboard, ok := in.(*os.File)
	screen, ok2 := out.(*os.File)
	if !ok || !ok2 || !term.IsTerminal(int(keyboard.Fd())) || !term.IsTerminal(int(screen.Fd())) {
		return nil, nil
	}
	return keyboard, screen
}

// errNoSession is the error if the server ends the connection before its first prompt. It has said
// why.
var errNoSession = errors.New("the server began no session")

// ended copies what the server writes until the session ends. begun says that it has begun.
func ended(ctx context.Context, out io.Writer, conn net.Conn, begun bool) error {
	w := &prompts{Writer: out, seen: begun}
	_, err := io.Copy(w, conn)
	switch {
	case ctx.Err() != nil || errors.Is(err, net.ErrClosed):
		return ctx.Err()
	case !w.seen:
		return errNoSession
	case err != nil:
		return fmt.Errorf("the connection to the server broke: %w", err)
	}
	return nil
}

// prompts notices the first prompt.
type prompts struct {
	io.Writer
	seen bool
	tail []byte // of what was written, shorter than a prompt
}

func (p *prompts) Write(b []byte) (int, error) {
	if !p.seen {
		p.tail = append(p.tail, b...)
		p.seen = bytes.Contains(p.tail, []byte(promptText))
		p.tail = p.tail[max(0, len(p.tail)-len(promptText)+1):]
	}
	return p.Writer.Write(b)
}
