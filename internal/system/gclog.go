package system

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"carronade/measure"
)

// mostLogLine bounds the length of a line. A longer one is skipped.
const mostLogLine = 8 << 10

// A gcLog follows the unified garbage collection log of a JVM (-Xlog:gc..., JEP
// 158 and 271; JDK 9 and later) and reports its pauses. It belongs to one
// goroutine.
//
// A pause is a line "GC(N) Pause ... 1.234ms", which every collector of OpenJDK
// writes, with any decorations before it.
type gcLog struct {
	// OnPause is called with each pause whose time is known: when it began, by the wall clock,
	// and its length. It may be nil.
	OnPause func(began time.Time, length time.Duration)

	pattern string
	whole   bool
	first   bool
	files   map[string]*follower
	buf     []byte
	recent  pauses // since the last call of Figures
	total   pauses
	heap    float64 // bytes after the latest collection, -1 before the first
	err     error
	partly  bool // err is of some logs, and others were read
}

// pauses are counted and summed.
type pauses struct {
	count        int
	sum, longest time.Duration
}

func (p *pauses) add(d time.Duration) {
	p.count++
	p.sum += d
	p.longest = max(p.longest, d)
}

// A follower is the state of reading one file.
type follower struct {
	f       *os.File
	at      int64
	part    []byte // the beginning of an incomplete line
	read    []timed
	clock   clock
	tooLong bool // the current line is too long, and skipped
}

// newGCLog follows the log with the name pattern, in which * and the JVM's %p
// (process id), %t (time) and %hn (host name) match any text, since a JVM may begin
// new files. It reports pauses from before the first read only if whole is true.
func newGCLog(pattern string, whole bool) *gcLog {
	return &gcLog{
		pattern: strings.NewReplacer("%p", "*", "%t", "*", "%hn", "*").Replace(pattern),
		whole:   whole, first: true, heap: -1, files: make(map[string]*follower), buf: make([]byte, 32<<10),
	}
}

// Figures reads what was written since the last call: the number of pauses, their
// sum and the longest, and the size of the heap after the latest collection. If
// whole is false, the first call only finds the end of the files.
func (g *gcLog) Figures(ctx context.Context) ([]measure.Figure, error) {
	there, err := g.Read(ctx)
	if !there {
		g.recent = pauses{}
		return nil, err
	}
	out := []measure.Figure{
		{Name: "GC pauses", Value: float64(g.recent.count)},
		{Name: "GC pause time", Unit: "ms", Value: milliseconds(g.recent.sum)},
		{Name: "GC pause longest", Unit: "ms", Value: milliseconds(g.recent.longest)},
	}
	g.recent = pauses{}
	if g.heap >= 0 {
		out = append(out, measure.Figure{Name: "heap after GC", Unit: "bytes", Value: g.heap})
	}
	return out, nil
}

// Read reads what was written since the last call, for Totals and for the next
// Figures. there is false while no log can be read. If only some can, their pauses
// count, and Warnings names one of the others.
func (g *gcLog) Read(ctx context.Context) (there bool, err error) {
	names, err := filepath.Glob(g.pattern)
	if err == nil && len(names) == 0 && g.err == nil {
		g.err = fmt.Errorf("no log is at %s", g.pattern)
	}
	for _, name := range names {
		if e := g.follow(ctx, name); e == nil {
			there = true
		} else if err == nil {
			err = fmt.Errorf("read the log of collections: %w", e)
		}
	}
	g.first = false
	switch g.partly = there && err != nil; {
	case err != nil:
		g.err = err
	case there:
		g.err = nil
	}
	if there {
		err = nil
	}
	return there, err
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// ResetLongest resets the longest pause of Totals.
func (g *gcLog) ResetLongest() { g.total.longest = 0 }

// Totals are the number and the sum of all pauses read so far, and the longest since
// ResetLongest.
func (g *gcLog) Totals() (count int, sum, longest time.Duration) {
	return g.total.count, g.total.sum, g.total.longest
}

// Warnings are for the user: a log that could not be read.
func (g *gcLog) Warnings() []string {
	if g.err == nil {
		return nil
	}
	if g.partly {
		return []string{g.err.Error() + ": the GC pauses are those of the other logs"}
	}
	return []string{g.err.Error() + ": there are no GC pauses; make the JVM write a log with -Xlog:gc*:file=FILE"}
}

// Close closes the files.
func (g *gcLog) Close() {
	for _, f := range g.files {
		f.f.Close()
	}
	clear(g.files)
}

// follow reads what was appended to a file since the last call. If the file was
// replaced or truncated, it is read from its beginning.
func (g *gcLog) follow(ctx context.Context, name string) error {
	at, err := os.Stat(name)
	if err != nil {
		return err
	}
	w := g.files[name]
	if w != nil {
		if mine, err := w.f.Stat(); err != nil || !os.SameFile(mine, at) {
			_ = g.drain(ctx, w) // lines written before the log was rotated
			w.f.Close()
			w = nil
		} else if at.Size() < w.at {
			w.at, w.part, w.tooLong = 0, nil, false
		}
	}
	if w == nil {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		w = &follower{f: f}
		g.files[name] = w
		if g.first && !g.whole {
			w.at = at.Size()
			return nil
		}
	}
	return g.drain(ctx, w)
}

func (g *gcLog) drain(ctx context.Context, w *follower) error {
	defer g.passOn(w)
	for ctx.Err() == nil {
		n, err := w.f.ReadAt(g.buf, w.at)
		w.at += int64(n)
		g.lines(w, g.buf[:n])
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (g *gcLog) lines(w *follower, b []byte) {
	for len(b) > 0 {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			if w.tooLong = w.tooLong || len(w.part)+len(b) > mostLogLine; !w.tooLong {
				w.part = append(w.part, b...)
			} else {
				w.part = nil
			}
			return
		}
		if !w.tooLong {
			line := b[:i]
			if len(w.part) > 0 {
				w.part = append(w.part, line...)
				line = w.part
			}
			g.line(w, line)
		}
		w.part, w.tooLong = w.part[:0], false
		b = b[i+1:]
	}
}

func (g *gcLog) line(w *follower, line []byte) {
	at, stamped := stampOf(line)
	if stamped {
		w.clock.newest = at
	}
	d, after, ok := pause(line)
	if !ok {
		return
	}
	if stamped && g.OnPause != nil {
		w.read = append(w.read, timed{at, d})
	}
	g.recent.add(d)
	g.total.add(d)
	if after >= 0 {
		g.heap = after
	}
}

// pause reads a line; ok is false if it is not a pause. after is the size of the
// heap after it, in bytes; -1 if the line does not contain it.
func pause(line []byte) (d time.Duration, after float64, ok bool) {
	i := bytes.Index(line, []byte("GC("))
	if i < 0 {
		return 0, -1, false
	}
	s := bytes.TrimRight(line[i:], " \r")
	if !bytes.HasSuffix(s, []byte("ms")) {
		return 0, -1, false
	}
	j := bytes.Index(s, []byte(") "))
	if j < 0 {
		return 0, -1, false
	}
	message := bytes.TrimLeft(s[j+2:len(s)-2], " ")
	if len(message) > 3 && message[1] == ':' && message[2] == ' ' {
		message = bytes.TrimLeft(message[3:], " ") // "Y: " and "O: " of generational ZGC
	}
	if !bytes.HasPrefix(message, []byte("Pause ")) {
		return 0, -1, false
	}
	k := bytes.LastIndexByte(message, ' ')
	text := bytes.Replace(message[k+1:], []byte(","), []byte("."), 1) // some locales
	ms, err := strconv.ParseFloat(string(text), 64)
	if err != nil || !(ms >= 0 && ms < 1e9) {
		return 0, -1, false
	}
	return time.Duration(ms * float64(time.Millisecond)), heapAfter(message), true
}

// heapAfter reads "24M->4M(256M)".
func heapAfter(message []byte) float64 {
	_, rest, ok := bytes.Cut(message, []byte("->"))
	if !ok {
		return -1
	}
	n, digits := 0.0, 0
	for digits < len(rest) && rest[digits] >= '0' && rest[digits] <= '9' {
		n = n*10 + float64(rest[digits]-'0')
		digits++
	}
	if digits == 0 || digits == len(rest) {
		return -1
	}
	switch rest[digits] {
	case 'B':
		return n
	case 'K':
		return n * (1 << 10)
	case 'M':
		return n * (1 << 20)
	case 'G':
		return n * (1 << 30)
	}
	return -1
}
