package system

import (
	"bytes"
	"slices"
	"strings"
	"sync"

	"carronade/internal/secret"
)

// keptOutput is how many of the last bytes of a system's output are kept.
const keptOutput = 10 << 20

// An output keeps the end of a system's output, in whole lines. It is safe for
// concurrent use. Like a tail it keeps them unmasked.
type output struct {
	most int // bytes

	mu  sync.Mutex
	buf []byte
	cut int64 // bytes before it
}

func (o *output) add(line string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.buf = append(append(o.buf, line...), '\n')
	if len(o.buf) >= 2*o.most { // not at each line: most of the rest is copied
		o.shorten()
	}
}

// shorten removes lines from the beginning until the limit holds.
func (o *output) shorten() {
	over := len(o.buf) - o.most
	if over <= 0 {
		return
	}
	end := bytes.IndexByte(o.buf[over-1:], '\n') // every line has an end
	n := over + end
	o.cut += int64(n)
	o.buf = o.buf[:copy(o.buf, o.buf[n:])]
}

// text returns the end of the output, masked; see masked.
func (o *output) text(mask *secret.Mask) (text string, cut int64) {
	o.mu.Lock()
	o.shorten()
	rest, cut := slices.Clone(o.buf), o.cut
	o.mu.Unlock()
	return masked(rest, cut, mask)
}

// mostBefore is how much of the beginning of an output may belong to lines before it, in bytes.
const mostBefore = 32 << 10

// masked masks the end of an output, and returns how many bytes came before it; cut is how
// many came before rest.
func masked(rest []byte, cut int64, mask *secret.Mask) (text string, before int64) {
	if cut > 0 { // what the first lines belong to may be lost
		n := firstEntry(rest)
		rest, cut = rest[n:], cut+int64(n)
	}
	var out strings.Builder
	out.Grow(len(rest))
	_ = mask.Copy(&out, bytes.NewReader(rest)) // neither of the two fails
	return out.String(), cut
}

// firstEntry returns where the first line begins that does not continue another.
func firstEntry(text []byte) int {
	for at := 0; at < min(len(text), mostBefore); {
		if !secret.Continues(text[at:]) {
			return at
		}
		at += bytes.IndexByte(text[at:], '\n') + 1 // every line has an end
	}
	return 0
}

// Output returns the end of what a system that was started here has printed so far,
// without secrets, and how many bytes came before it.
func (s *System) Output() (text string, cut int64) { return s.output.text(s.mask) }

// BuildOutput returns the end of what the build in the spec printed, now or when it was
// built, like Output: without the secrets of this system, too. It is empty if nothing was
// built. It must be called before Stop.
func (s *System) BuildOutput() (text string, cut int64, err error) {
	if s.spec.Build == nil {
		return "", 0, nil
	}
	data, cut, err := s.spec.Build.output()
	if err != nil {
		return "", 0, err
	}
	text, cut = masked(data, cut, s.mask)
	return text, cut, nil
}
