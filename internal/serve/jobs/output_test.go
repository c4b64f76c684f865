package jobs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// newOutput makes an output for tests.
func newOutput(t *testing.T, limit int64) *output {
	t.Helper()
	o := assert.Value(createOutput(filepath.Join(t.TempDir(), "1.log"), limit))(t)
	t.Cleanup(o.release)
	return o
}

// numbered is line i of a job that prints numbers.
func numbered(i int) string { return fmt.Sprintf("line %07d\n", i) }

var removed = regexp.MustCompile(`^\[\.\.\. ([0-9,]+) bytes of output were removed here \.\.\.\]$`)

// checkNumbered checks that a text has all lines of numbered from the first to
// the last, but for those that the lines about removed text stand for.
func checkNumbered(t *testing.T, text string, last int) (gone int) {
	t.Helper()
	next, width := 0, len(numbered(0))
	for l := range strings.Lines(text) {
		if m := removed.FindStringSubmatch(strings.TrimSuffix(l, "\n")); m != nil {
			n, err := strconv.Atoi(strings.ReplaceAll(m[1], ",", ""))
			assert.Must(t, err == nil && n%width == 0, "%q is not a number of whole lines", l)
			gone += n
			next += n / width
			continue
		}
		assert.Must(t, l == numbered(next), "got %q, want %q", l, numbered(next))
		next++
	}
	assert.Must(t, next == last+1, "got the lines before %d, want %d", next, last+1)
	return gone
}

// The file has the beginning and the newest text, never more than its limit and one write, and says how much it lacks.
func TestOutputIsBounded(t *testing.T) {
	const limit, last = 16 << 10, 20_000
	o := newOutput(t, limit)
	var all int
	for i := range last + 1 {
		all += len(numbered(i))
		o.add([]byte(numbered(i)))
		assert.Must(t, o.size <= limit, "the file has %d bytes, want %d at most", o.size, limit)
		if i%1000 == 0 || i == last {
			b := assert.Value(os.ReadFile(o.file.Name()))(t)
			gone := checkNumbered(t, string(b), i)
			kept := all - gone
			assert.True(t, kept >= min(all, limit/2), "%d bytes are kept of %d", kept, all)
			tail := string(b[max(0, len(b)-limit*2/5):])
			assert.True(t, !removed.MatchString(tail), "newest text was removed: %q", tail)
		}
	}
	o.finish()
	var b bytes.Buffer
	assert.OK(t, o.copyTo(t.Context(), &b, true))
	checkNumbered(t, b.String(), last)
}

// Text without line breaks, and writes larger than the limit, are bounded too.
func TestOutputWithoutLines(t *testing.T) {
	const limit = 4 << 10
	for _, size := range []int{1, 1000, limit, 10 * limit} {
		o := newOutput(t, limit)
		pieces := 50 * limit / size
		if size == 1 {
			pieces /= testkit.Cases(1, 10)
		}
		for range pieces {
			o.add(bytes.Repeat([]byte("x"), size))
			assert.Must(t, o.size <= limit, "the file has %d bytes after writes of %d, want %d at most", o.size, size, limit)
		}
		assert.Equal(t, o.end(), int64(pieces*size), "bytes in all")
	}
}

// Many follow while it is written; each gets every line, or the number of those that it missed.
func TestOutputFollowers(t *testing.T) {
	const limit, last = 32 << 10, 50_000
	o := newOutput(t, limit)
	texts := make([]bytes.Buffer, 5)
	var work sync.WaitGroup
	for i := range texts {
		work.Go(func() {
			var w io.Writer = &texts[i]
			if i > 0 {
				w = &slow{w: w, every: i}
			}
			err := o.copyTo(soon(t), w, true)
			assert.True(t, err == nil, "%v", err)
		})
	}
	for i := range last + 1 {
		o.add([]byte(numbered(i)))
	}
	o.finish()
	work.Wait()
	for i := range texts {
		gone := checkNumbered(t, texts[i].String(), last)
		t.Logf("follower %d missed %d bytes", i, gone)
	}
}

// A slow writer takes little at a time.
type slow struct {
	w     io.Writer
	every int
}

func (s *slow) Write(p []byte) (int, error) {
	all := len(p)
	for len(p) > 0 {
		n := min(len(p), 100/s.every)
		if _, err := s.w.Write(p[:n]); err != nil {
			return 0, err
		}
		p = p[n:]
	}
	return all, nil
}

// Whatever is written in whatever pieces, readers get it, but for the removed bytes.
func FuzzOutput(f *testing.F) {
	f.Add([]byte("hello\nworld\n"), uint16(5), uint8(200))
	f.Add([]byte("no line break"), uint16(4000), uint8(255))
	f.Add([]byte("\n"), uint16(1), uint8(1))
	f.Fuzz(func(t *testing.T, text []byte, piece uint16, times uint8) {
		if len(text) == 0 || bytes.Contains(text, []byte("[...")) {
			t.Skip()
		}
		o := newOutput(t, leastOutput)
		var all []byte
		stream := bytes.Repeat(text, int(times)*leastOutput/len(text)/50+1)
		for len(stream) > 0 {
			n := min(len(stream), int(piece)+1)
			o.add(stream[:n])
			all, stream = append(all, stream[:n]...), stream[n:]
		}
		o.finish()
		var b bytes.Buffer
		assert.OK(t, o.copyTo(t.Context(), &b, true))
		file, err := os.ReadFile(o.file.Name())
		assert.Must(t, err == nil && bytes.Equal(file, b.Bytes()), "a reader gets other text than the file has: %v", err)
		assert.True(t, len(file) <= leastOutput, "the file has %d bytes", len(file))
		if o.cut > 0 {
			want := append(append(bytes.Clone(all[:o.head]), missing(o.cut)...), all[o.head+o.cut:]...)
			assert.True(t, bytes.Equal(file, want), "the file has other text than was written")
		} else if !bytes.Equal(file, all) {
			t.Error("the file has other text than was written")
		}
	})
}

// Several follow a job; one stops reading for ever, and one gives up. Neither slows the job.
func TestFollow(t *testing.T) {
	q := open(t, Options{MostOutput: 64 << 10})
	gate := filepath.Join(t.TempDir(), "gate")
	ahead := submit(t, q, request("x", "until:"+gate))
	const n, width = 20_000, 50
	j := submit(t, q, request("x", "out:up", fmt.Sprintf("lines:%d:%d", n, width), "out:last"))
	stuck, release := make(chan struct{}), make(chan struct{})
	var work sync.WaitGroup
	work.Go(func() { // begins before the job does
		err := q.Output(soon(t), j.ID, true, writerFunc(func(p []byte) (int, error) {
			select {
			case stuck <- struct{}{}:
			default:
			}
			<-release
			return len(p), nil
		}))
		assert.True(t, err == nil, "%v", err)
	})
	texts := make([]bytes.Buffer, 3)
	for i := range texts {
		work.Go(func() {
			err := q.Output(soon(t), j.ID, true, &texts[i])
			assert.True(t, err == nil, "%v", err)
			got, err := q.Job(t.Context(), j.ID)
			assert.True(t, err == nil && got.State == Done, "a follower ended before the job: %+v, %v", got, err)
		})
	}
	quits, quit := context.WithCancel(t.Context())
	work.Go(func() {
		err := q.Output(quits, j.ID, true, io.Discard)
		assert.True(t, errors.Is(err, context.Canceled), "got %v", err)
	})
	touch(t, gate)
	wait(t, q, ahead.ID)
	<-stuck
	quit()
	if j := wait(t, q, j.ID); j.State != Done {
		t.Errorf("got %+v", j)
	}
	close(release)
	work.Wait()
	for i := range texts {
		text := texts[i].String()
		if !strings.HasPrefix(text, "up\n0000") || !strings.HasSuffix(text, fmt.Sprintf("%0*d\nlast\n", width-1, n-1)) {
			t.Errorf("follower %d got %d bytes: %q ... %q", i, len(text), text[:min(20, len(text))], text[max(0, len(text)-20):])
		}
	}
	stored := outputOf(t, q, j.ID, true)
	assert.True(t, len(stored) <= 64<<10 && strings.HasPrefix(stored, "up\n0000") && strings.HasSuffix(stored, "\nlast\n") && strings.Count(stored, "were removed here") == 1,
		"got %d bytes of stored output", len(stored))
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// Without follow, Output returns what there is, in each state.
func TestOutputSoFar(t *testing.T) {
	q := open(t, Options{})
	gate := filepath.Join(t.TempDir(), "gate")
	runs := submit(t, q, request("x", "out:one", "err:two", "out:three", "until:"+gate, "out:four"))
	queued := submit(t, q, request("x", "out:later"))
	printed(t, q, runs.ID, "three")
	assert.Equal(t, outputOf(t, q, runs.ID, false), "one\ntwo\nthree\n")
	assert.Equal(t, outputOf(t, q, queued.ID, false), "")
	assert.OK(t, q.Cancel(t.Context(), queued.ID))
	assert.Equal(t, outputOf(t, q, queued.ID, true), "")
	touch(t, gate)
	wait(t, q, runs.ID)
	assert.Equal(t, outputOf(t, q, runs.ID, false), "one\ntwo\nthree\nfour\n")
	err := q.Output(t.Context(), 9, false, io.Discard)
	assert.True(t, errors.Is(err, ErrNoJob), "got %v, want %v", err, ErrNoJob)
}

func TestOneLine(t *testing.T) {
	for _, tt := range [][2]string{
		{"plain", "plain"},
		{" a\tb\x1b[1mc\r", "a b [1mc"},
		{"\xffx", "?x"},
		{strings.Repeat("é", 400), strings.Repeat("é", 300) + "..."},
	} {
		assert.Equal(t, oneLine(tt[0]), tt[1], "%q", tt[0])
	}
}
