// Package secret removes secrets from text, which may be a file, a log, a line or a value. One
// scanner over its bytes hides the value behind a secret's name in whatever form files, logs and
// programs write it, logins in addresses, private keys and tokens. It knows no grammars: it looks
// at what is around a name, within bounds.
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
	"errors"
	"io"
	"strings"
	"sync"
)

// Hidden replaces a secret.
const Hidden = "***"

// A Mask removes secrets from text. The zero value knows none, and only removes
// what looks like one. It is safe for concurrent use.
type Mask struct {
	mu    sync.RWMutex
	known known
}

// Text returns a text without the secrets that the mask knows, and without what looks like one.
func (m *Mask) Text(text string) string {
	s := scanner{t: m.hideKnown(text)}
	s.scan()
	return s.found.hide(s.t)
}

// piece is the least that Copy masks at once, in bytes.
const piece = 256 << 10

// Copy copies a log without secrets, like Text, and holds only a part of it at a time. It
// divides it before a line that does not continue the one before it, so that what belongs
// together is looked at together.
func (m *Mask) Copy(to io.Writer, from io.Reader) error {
	buf := make([]byte, 0, 4*piece)
	for {
		n, err := io.ReadFull(from, buf[len(buf):min(cap(buf), len(buf)+piece)])
		buf = buf[:len(buf)+n]
		text, end := string(buf), len(buf)
		if err == nil {
			if end = m.lastEntry(text); end == 0 && len(buf) < cap(buf) {
				continue
			}
		}
		if _, err := io.WriteString(to, m.Text(text[:end])); err != nil {
			return err
		}
		buf = buf[:copy(buf, buf[end:])]
		if err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return nil
			}
			return err
		}
	}
}

// lastEntry returns where a text may be divided, as far behind as possible: before a line that
// does not continue the one before it and is not within a private key; of a longer text, before a
// line, or what may be the beginning of a value that the mask knows. 0: it may not.
func (m *Mask) lastEntry(text string) int {
	end := strings.LastIndexByte(text, '\n') + 1
	if key := strings.LastIndex(text, "-----BEGIN "); key >= 0 && len(text)-key < mostKey && !strings.Contains(text[key:], "-----END ") {
		end = strings.LastIndexByte(text[:key], '\n') + 1
	}
	for at := end; at > 0; at = strings.LastIndexByte(text[:at-1], '\n') + 1 {
		if !Continues(text[at:]) && !strings.HasSuffix(text[:at], "\\\n") {
			return at
		}
	}
	if len(text) < 4*piece {
		return 0
	}
	if end > 0 {
		return end
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	if end = len(text) - m.known.begun(text); end == 0 {
		return len(text)
	}
	return end
}

// Continues reports whether a text begins with a line that may belong to the one before it.
func Continues[T string | []byte](text T) bool {
	return len(text) == 0 || strings.IndexByte(" \t\r\n}])<-#", text[0]) >= 0
}

func (m *Mask) hideKnown(text string) string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.known.hide(text)
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
		if arg == "" || strings.ContainsAny(arg, " \t\n\"'\\$`|&;<>()") {
			shown[i] = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
	}
	return m.hideKnown(strings.Join(shown, " "))
}

// Args returns arguments without their secrets, which the mask knows from then
// on: what follows a flag such as --password, the value of a setting such as
// -Dssl.key.password=, the login in an address and the second half of curl's -u
// NAME:PASSWORD. A script, behind -c, is treated like a text of command lines.
func (m *Mask) Args(args []string) []string {
	shown := make([]string, len(args))
	at := make([]int, len(args)) // where a flag's secret begins, counted from 1
	flags(args, func(i, from int) { at[i] = from + 1 })
	for i, arg := range args {
		if from := at[i] - 1; from >= 0 {
			m.find(arg[from:], toEnd) // a login module's text contains the password and more
			m.learn(arg[from:], false)
			shown[i] = arg[:from] + Hidden
			continue
		}
		ends := toEnd
		if i > 0 && args[i-1] == "-c" {
			ends = toBlank
		}
		shown[i] = m.find(arg, ends)
	}
	for i := range shown {
		shown[i] = m.hideKnown(shown[i])
	}
	return shown
}

// Value returns the value of a setting for display. If the name says that it is
// a secret, the value is hidden, and the mask knows it from then on. What looks
// like a secret is removed in any case.
func (m *Mask) Value(name, value string) string {
	if IsReference(value) {
		return value
	}
	shown := m.find(value, toEnd)
	if Is(name, value) && isPlain(value) {
		m.learn(value, false)
		shown = Hidden
	}
	return m.hideKnown(shown)
}

// find is Text for an argument or a value, of which the mask knows the secrets from then on.
func (m *Mask) find(text string, ends int) string {
	s := scanner{t: text, ends: ends}
	s.scan()
	for _, f := range s.found {
		m.learn(text[f.from:f.to], f.isLogin)
	}
	return s.found.hide(text)
}

// learn adds a secret that was found and its parts that may appear separately: items of a list or
// a map, what follows the scheme of an Authorization header, and the password of a login
// NAME:PASSWORD. The login of an address has no other parts: it may be words of a text that has
// an "@" further on.
func (m *Mask) learn(v string, isLogin bool) {
	v = strings.Trim(v, "\\\"'` ")
	_, password, _ := strings.Cut(v, ":")
	m.Add(v, password)
	if isLogin {
		return
	}
	m.Add(v[strings.LastIndexAny(v, " \t")+1:])
	for _, part := range strings.FieldsFunc(v, func(r rune) bool { return strings.ContainsRune(",;[]{}()", r) }) {
		m.Add(strings.Trim(part, `"' `), strings.Trim(part[strings.LastIndexAny(part, "=:")+1:], `"' `))
	}
}
