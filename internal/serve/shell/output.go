package shell

import (
	"bytes"
	"io"
	"strings"
	"sync"
)

// Colors of the tool's shell.
const (
	red     = "\x1b[31m"
	green   = "\x1b[32m"
	yellow  = "\x1b[33m"
	magenta = "\x1b[35m"
	cyan    = "\x1b[36m"
	grey    = "\x1b[37m"
	plain   = "\x1b[0m"
)

// promptText is what a session writes when it waits for a line.
const promptText = ">>> "

// An output is the side of a connection that is written. Answers and the output of
// jobs may be written at the same time.
type output struct {
	color bool
	lost  func() // called when a write failed

	mu       sync.Mutex
	w        io.Writer
	own      bool // w shows the prompt itself, and keeps it below what is written
	waiting  bool // for a line
	prompted bool // the prompt is the last text written
}

// useTerminal writes to a terminal from now on, which shows the prompt itself.
func (o *output) useTerminal(w io.Writer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.w, o.own, o.prompted = w, true, false
}

// paint returns a text in a color.
func (o *output) paint(color, text string) string {
	if !o.color || text == "" {
		return text
	}
	return color + text + plain
}

func (o *output) put(text string) {
	if _, err := io.WriteString(o.w, text); err != nil {
		o.lost()
	}
}

// Write writes a part of an answer.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, err := o.w.Write(p); err != nil {
		o.lost()
		return 0, err
	}
	return len(p), nil
}

// prompt says that the session waits for a line.
func (o *output) prompt() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting = true
	o.showPrompt()
}

func (o *output) showPrompt() {
	if o.waiting && !o.prompted && !o.own {
		o.put(o.paint(cyan, promptText))
		o.prompted = true
	}
}

// typed says that a line was read.
func (o *output) typed() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting, o.prompted = false, false
}

// interject writes whole lines that are not the answer to the last line. If last, the
// prompt follows.
func (o *output) interject(text string, last bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if text != "" {
		if o.prompted {
			text, o.prompted = "\n"+text, false
		}
		o.put(text)
	}
	if last {
		o.showPrompt()
	}
}

// A cleaner passes text on without control characters, except the ends of lines,
// tabs and, if wanted, colors. It writes whole lines; the last is written by end.
type cleaner struct {
	color bool
	to    func(lines string)
	rest  []byte
}

// mostHeld is how much of a line without an end a cleaner holds, in bytes.
const mostHeld = 64 << 10

// Write never fails.
func (c *cleaner) Write(p []byte) (int, error) {
	c.rest = append(c.rest, p...)
	n := bytes.LastIndexByte(c.rest, '\n') + 1
	if n == 0 && len(c.rest) >= mostHeld {
		n = len(c.rest)
	}
	if n > 0 {
		c.to(c.clean(string(c.rest[:n])))
		c.rest = append(c.rest[:0], c.rest[n:]...)
	}
	return len(p), nil
}

// end writes what has no end of a line, with one.
func (c *cleaner) end() {
	if len(c.rest) > 0 {
		c.to(c.clean(string(c.rest)) + "\n")
		c.rest = nil
	}
}

func (c *cleaner) clean(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		body, ended := strings.CutSuffix(line, "\n")
		body = strings.TrimSuffix(body, "\r")
		for {
			i := strings.IndexAny(body, "\t\x1b")
			if i < 0 {
				break
			}
			b.WriteString(Printable(body[:i]))
			n := 1
			if body[i] == '\x1b' {
				n = colorLength(body[i:])
			}
			switch {
			case n == 0:
				b.WriteString(`\x1b`)
				n = 1
			case body[i] == '\t' || c.color:
				b.WriteString(body[i : i+n])
			}
			body = body[i+n:]
		}
		b.WriteString(Printable(body))
		if ended {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// colorLength is the length of the sequence at the beginning of a text that sets a
// color, 0 if there is none.
func colorLength(s string) int {
	if !strings.HasPrefix(s, "\x1b[") {
		return 0
	}
	n := 2 + len(s[2:]) - len(strings.TrimLeft(s[2:], "0123456789;"))
	if n < len(s) && s[n] == 'm' {
		return n + 1
	}
	return 0
}
