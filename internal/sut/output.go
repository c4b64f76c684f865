package sut

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"time"
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

// maskWithin is how long the masking of a kept output may take: it happens between
// the end of a run and its report.
const maskWithin = 2 * time.Second

// maskedAtOnce is about how many bytes are masked together.
const maskedAtOnce = 32 << 10

// text returns the end of the output, masked; see masked.
func (o *output) text(mask func(string) string, within time.Duration) (text string, cut int64, late bool) {
	o.mu.Lock()
	o.shorten()
	rest, cut := string(o.buf), o.cut
	o.mu.Unlock()
	return masked(rest, cut, mask, within)
}

// masked masks the end of an output, and returns how many bytes came before it; cut is how
// many came before rest. Masking begins at the last line. What is not masked after the given
// time is left out, too; then late is true.
func masked(rest string, cut int64, mask func(string) string, within time.Duration) (text string, before int64, late bool) {
	if cut > 0 { // what the first lines belong to may be lost
		n := firstEntry(rest)
		rest, cut = rest[n:], cut+int64(n)
	}
	deadline := time.Now().Add(within)
	var parts []string
	for rest != "" {
		if !time.Now().Before(deadline) {
			late, cut = true, cut+int64(len(rest))
			break
		}
		from := lastEntries(rest, maskedAtOnce)
		parts = append(parts, mask(rest[from:]))
		rest = rest[:from]
	}
	slices.Reverse(parts)
	return strings.Join(parts, ""), cut, late
}

// firstEntry returns where the first line begins that does not continue another.
func firstEntry(text string) int {
	for at := 0; at < min(len(text), maskedAtOnce); {
		if !continues(text[at:]) {
			return at
		}
		at += strings.IndexByte(text[at:], '\n') + 1 // every line has an end
	}
	return 0
}

// lastEntries returns where the last n bytes begin, or up to as many before them: at
// a line that does not continue the one before it, since a secret may be below its
// name.
func lastEntries(text string, n int) int {
	at := strings.LastIndexByte(text[:max(0, len(text)-n)], '\n') + 1
	for most := max(0, at-n); at > most && continues(text[at:]); {
		at = strings.LastIndexByte(text[:at-1], '\n') + 1
	}
	return at
}

// continues reports whether a text begins with a line that belongs to the one before.
func continues(text string) bool {
	return text != "" && strings.IndexByte(" \t\r\n}])<", text[0]) >= 0
}

// Output returns the end of what a system that was started here has printed so far,
// without secrets, and how many bytes came before it. late is true if it is less than
// was kept, because hiding the secrets of all would have taken too long.
func (s *System) Output() (text string, cut int64, late bool) {
	return s.output.text(s.mask.Log, maskWithin)
}

// BuildOutput returns the end of what the build in the spec printed, now or when it was
// built, like Output: without the secrets of this system, too. It is empty if nothing was
// built. It must be called before Stop.
func (s *System) BuildOutput() (text string, cut int64, late bool, err error) {
	if s.spec.Build == nil {
		return "", 0, false, nil
	}
	text, cut, err = s.spec.Build.output()
	if err != nil {
		return "", 0, false, err
	}
	text, cut, late = masked(text, cut, s.mask.Log, maskWithin)
	return text, cut, late, nil
}
