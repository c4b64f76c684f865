package secret

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Lengths below which a value, and a line of a value, is not looked for in a text: without every
// "1" or "ok", a text would be unreadable.
const (
	shortest     = 4
	shortestLine = 8
)

// known are the values that a mask knows, found by their first four bytes.
type known struct {
	by   map[uint32][]string
	bits []uint64 // which hashes of four bytes a value begins with
}

// Add adds secret values to the mask, in all forms in which they may appear:
// unchanged, escaped for an address, a quoted string, JSON or XML, and in base64.
func (m *Mask) Add(values ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, v := range values {
		v = strings.TrimSpace(v)
		m.known.add(v, shortest)
		if strings.Contains(v, "\n") { // such as a key, which may be printed line by line
			for line := range strings.Lines(v) {
				m.known.add(strings.TrimSpace(line), shortestLine)
			}
		}
	}
}

var escapeXML = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&apos;")

// add adds one value in all its forms, if it is long enough.
func (k *known) add(v string, least int) {
	if len(v) < least {
		return
	}
	if k.by == nil {
		k.by, k.bits = make(map[uint32][]string), make([]uint64, 1<<10)
	}
	text, data := strconv.Quote(v), []byte(v)
	inJSON, _ := json.Marshal(v) // with escapes of < > &, unlike Quote
	for _, form := range []string{
		v, url.QueryEscape(v), url.PathEscape(v), escapeXML.Replace(v), text[1 : len(text)-1], string(inJSON[1 : len(inJSON)-1]),
		base64.StdEncoding.EncodeToString(data), base64.RawStdEncoding.EncodeToString(data), base64.RawURLEncoding.EncodeToString(data),
	} {
		first := binary.LittleEndian.Uint32([]byte(form))
		if h := hash(first); !slices.Contains(k.by[first], form) {
			k.by[first] = append(k.by[first], form)
			k.bits[h>>6] |= 1 << (h & 63)
		}
	}
}

func hash(first uint32) uint32 { return first * 0x9E3779B1 >> 16 }

// hide returns a text without the values. Those that overlap are hidden as one: what one leaves
// may be a part of another.
func (k *known) hide(s string) string {
	if len(k.by) == 0 || len(s) < shortest {
		return s
	}
	var found spans
	first := uint32(s[0])<<8 | uint32(s[1])<<16 | uint32(s[2])<<24
	for i := 3; i < len(s); i++ {
		first = first>>8 | uint32(s[i])<<24
		if h := hash(first); k.bits[h>>6]>>(h&63)&1 == 0 {
			continue
		}
		for _, v := range k.by[first] {
			if strings.HasPrefix(s[i-3:], v) {
				found = append(found, span{from: i - 3, to: i - 3 + len(v)})
			}
		}
	}
	return found.hide(s)
}

// begun is the length of the longest end of a text that a value begins with.
func (m *Mask) begun(s string) (n int) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, values := range m.known.by {
		for _, v := range values {
			for i := min(len(v)-1, len(s)); i > n; i-- {
				if strings.HasSuffix(s, v[:i]) {
					n = i
				}
			}
		}
	}
	return n
}

// WithoutCut returns a line that may have been cut at a length, without the part of a
// known secret that may be at its end: Text would not recognize it.
func (m *Mask) WithoutCut(line string, length int) string {
	if len(line) < length {
		return line
	}
	line = m.Known(line) // whole ones, of which less would be removed below
	if n := m.begun(line); n > 0 {
		return line[:len(line)-n] + Hidden
	}
	return line
}

// A span is a part of a text that is hidden.
type span struct {
	from, to int
	isLogin  bool // NAME:PASSWORD of an address
}

type spans []span

// hide returns the text without the spans. What overlaps or follows at once is hidden as one.
func (all spans) hide(text string) string {
	if len(all) == 0 {
		return text
	}
	slices.SortStableFunc(all, func(a, b span) int { return a.from - b.from })
	var out strings.Builder
	out.Grow(len(text))
	done := 0
	for i := 0; i < len(all); {
		from, to := all[i].from, all[i].to
		for i++; i < len(all) && all[i].from <= to; i++ {
			to = max(to, all[i].to)
		}
		out.WriteString(text[done:from] + Hidden)
		done = to
	}
	out.WriteString(text[done:])
	return out.String()
}
