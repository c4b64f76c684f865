package jobs

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"carronade/units"
)

// A Crash passes on what a process prints, and keeps back the text with which Go's runtime, or that of C, ends it:
// its stacks do not say what to do. For use by one goroutine.
type Crash struct {
	to     func([]byte)
	inLine bool   // the last text does not end a line
	part   []byte // a text that may be the beginning of a label
	held   []byte // the text of the crash
	why    string // the line of it that says that it is for memory
	lost   int    // bytes of it that were not kept
	other  bool   // it crashes for another reason than memory, so nothing is kept back
}

// NewCrash returns one that passes text on to a function.
func NewCrash(to func([]byte)) *Crash { return &Crash{to: to} }

// mostHeld is how much of a crash is kept back. Its first lines say why.
const mostHeld = 64 << 10

// crashLabels begin the first lines of such texts. The line that says why begins with one of the first two.
var crashLabels = []string{"fatal error: ", "runtime/cgo: ", "runtime: out of memory", "runtime: cannot ", "runtime: failed "}

// Write implements io.Writer.
func (c *Crash) Write(p []byte) (int, error) {
	all := len(p)
	switch {
	case c.other:
		c.pass(p)
		return all, nil
	case c.held == nil:
		p = append(c.part, p...)
		begins, ends := c.begin(p)
		c.pass(p[:begins])
		c.part = bytes.Clone(p[ends:])
		p = p[begins:ends]
	}
	c.held = append(c.held, p...)
	if c.why == "" && len(p) > 0 {
		c.look()
	}
	if over := len(c.held) - mostHeld; over > 0 {
		c.held, c.lost = c.held[:mostHeld], c.lost+over
	}
	return all, nil
}

// begin is where the text of a crash begins, and where what is known of it ends: the end of p may be the beginning of a
// label.
func (c *Crash) begin(p []byte) (begins, ends int) {
	for at := 0; at < len(p); {
		text := p[at:]
		if at > 0 || !c.inLine {
			for _, label := range crashLabels {
				if bytes.HasPrefix(text, []byte(label)) {
					return at, len(p)
				}
				if strings.HasPrefix(label, string(text)) {
					return at, at
				}
			}
		}
		next := bytes.IndexByte(text, '\n')
		if next < 0 {
			break
		}
		at += next + 1
	}
	return len(p), len(p)
}

// look looks for the line that says why. It passes on what was kept back if that is not memory.
func (c *Crash) look() {
	text := "\n" + string(c.held)
	for _, label := range crashLabels[:2] {
		if i := strings.Index(text, "\n"+label); i >= 0 {
			line, _, whole := strings.Cut(text[i+1:], "\n")
			switch {
			case tookAll(line):
				c.why = line
			case whole:
				c.End("")
				c.other = true
			}
			return
		}
	}
}

func (c *Crash) pass(p []byte) {
	if len(p) > 0 {
		c.to(p)
		c.inLine = p[len(p)-1] != '\n'
	}
}

// TookAll reports whether the process crashed because the system gave it no more memory.
func (c *Crash) TookAll() bool { return c.why != "" }

// End passes on what was kept back, or a text in its place.
func (c *Crash) End(text string) {
	switch {
	case text != "":
		c.pass([]byte(text))
	case c.held != nil:
		c.pass(c.held)
		if c.lost > 0 {
			c.pass(fmt.Appendf(nil, "\n[... %s bytes of a crash are not kept ...]\n", units.FormatCount(uint64(c.lost)))) //nolint:gosec // above 0
		}
	}
	c.pass(c.part)
	c.part, c.held, c.lost = nil, nil, 0
}

// tookAll reports whether a line says that the system gave a process no more memory. Go's runtime and the C library
// have several texts for it.
func tookAll(line string) bool {
	return slices.ContainsFunc([]string{"out of memory", "cannot allocate", "cannot map", "failed to reserve", "newosproc", "pthread_create failed", "Cannot allocate memory"},
		func(text string) bool { return strings.Contains(line, text) })
}

// MemoryHint is what to do about a job that needs more memory than it may have.
const MemoryHint = "ask for less, or ask the operator of the server for more"

// NoMemory is why a process ended that the system gave no more memory. limit is what a job may ask for; 0: all.
func NoMemory(limit int64) string {
	if limit <= 0 {
		return "the system gave it no more memory"
	}
	return "it needed more memory than this server allows a job: " + units.FormatSize(limit) + " (--job-memory)"
}
