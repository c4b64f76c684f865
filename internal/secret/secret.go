// Package secret removes secrets from text. Files are read by their grammars: JSON, XML,
// YAML, and settings on lines (properties, INI, TOML, variables of a shell). Each parser
// makes a tree of values with their places, and one walk over the tree decides which are
// secrets, so that only their bytes change. What has none of these grammars is masked by a
// rule for any text, which hides more. Command lines are split as by a shell.
//
// It does not know who prints the text, and it keeps a secret no longer than
// the Mask that knows it.
//
// Its invariant: a value that was added to a Mask, or that the Mask found in a
// command line, is in no text that went through that Mask, whatever is around
// it. What only looks like a secret is also removed: a report that hides a
// harmless word is better than one that shows a password.
package secret

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Hidden replaces a secret.
const Hidden = "***"

// shortest is the length below which a value is not looked for in free text:
// without every "1" or "ok", a text would be unreadable.
const shortest = 4

// A Mask removes secrets from text. The zero value knows none, and only removes
// what looks like one. It is safe for concurrent use.
type Mask struct {
	mu    sync.RWMutex
	known []string // longest first, so that no part of a longer one remains
}

// longLine is the minimum length at which a single line of a secret is looked
// for.
const longLine = 8

// Add adds secret values to the mask, in all forms in which they may appear:
// unchanged, escaped for an address, a quoted string, JSON or XML, and in base64.
func (m *Mask) Add(values ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, v := range values {
		v = strings.TrimSpace(v)
		m.add(v, shortest)
		if strings.Contains(v, "\n") { // such as a key, which may be printed line by line
			for line := range strings.Lines(v) {
				m.add(strings.TrimSpace(line), longLine)
			}
		}
	}
	slices.SortStableFunc(m.known, func(a, b string) int { return len(b) - len(a) })
}

// add adds one value to the mask, if it is long enough; m.mu must be locked.
func (m *Mask) add(v string, least int) {
	if len(v) < least {
		return
	}
	text, bytes := strconv.Quote(v), []byte(v)
	json, _ := json.Marshal(v) // with escapes of < > &, unlike Quote
	for _, form := range []string{
		v, url.QueryEscape(v), url.PathEscape(v), escapeXML(v), text[1 : len(text)-1], string(json[1 : len(json)-1]),
		base64.StdEncoding.EncodeToString(bytes), base64.RawStdEncoding.EncodeToString(bytes), base64.RawURLEncoding.EncodeToString(bytes),
	} {
		if !slices.Contains(m.known, form) {
			m.known = append(m.known, form)
		}
	}
}

// Text returns s without the secrets that the mask knows, and without what
// looks like one: the login in an address, what follows "password=" and
// "Bearer".
func (m *Mask) Text(s string) string {
	return hideLikely(m.hideKnown(s))
}

func (m *Mask) hideKnown(s string) string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, v := range m.known {
		if strings.Contains(s, v) {
			s = strings.ReplaceAll(s, v, Hidden)
		}
	}
	return s
}

// WithoutCut returns a line that may have been cut at a length, without the part of a
// known secret that may be at its end: Text would not recognize it.
func (m *Mask) WithoutCut(line string, length int) string {
	if len(line) < length {
		return line
	}
	line = m.hideKnown(line) // whole ones, of which less would be removed below
	m.mu.RLock()
	defer m.mu.RUnlock()
	part := 0
	for _, v := range m.known {
		for n := min(len(v)-1, len(line)); n > part; n-- {
			if strings.HasSuffix(line, v[:n]) {
				part = n
			}
		}
	}
	if part == 0 {
		return line
	}
	return line[:len(line)-part] + Hidden
}

// Line returns a command line for display: it splits the text as Split does;
// see Command. If it cannot be split, all of it is hidden.
func (m *Mask) Line(text string) string {
	words, err := Split(text)
	if err != nil {
		return Hidden
	}
	return m.Command(words)
}

// Command returns a command line for display, without its secrets, which the
// mask knows from then on: see Args. Arguments with blanks are quoted.
func (m *Mask) Command(args []string) string {
	shown := m.Args(args)
	for i, arg := range shown {
		shown[i] = quoted(arg)
	}
	return m.Text(strings.Join(shown, " "))
}

// Value returns the value of a setting for display. If the name says that it is
// a secret, the value is hidden, and the mask knows it from then on. What looks
// like a secret is removed in any case.
func (m *Mask) Value(name, value string) string {
	if IsReference(value) {
		return value
	}
	var f finder
	shown := f.value(value)
	if Is(name, value) && f.take(value) {
		shown = Hidden
	}
	m.Add(f.all()...)
	return m.Text(shown)
}

func quoted(arg string) string {
	if arg != "" && !strings.ContainsAny(arg, " \t\n\"'\\$`|&;<>()") {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}
