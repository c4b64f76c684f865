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
	"bufio"
	"bytes"
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
	s := scanner{t: m.Known(text)}
	s.scan()
	return s.found.hide(s.t)
}

// piece is the least that Copy masks at once, in bytes.
const piece = 256 << 10

// Copy copies a log without secrets, like Text, and holds only a part of it at a time. It
// divides it before a line that does not continue the one before it and is not in a private key,
// so that what belongs together is looked at together. A line of more than four pieces is divided
// anywhere but in a value that the mask knows.
func (m *Mask) Copy(to io.Writer, from io.Reader) error {
	in := bufio.NewReaderSize(from, piece)
	var text []byte
	for {
		line, err := in.ReadSlice('\n')
		isEntry := bytes.HasSuffix(text, []byte("\n")) && !Continues(line) && !bytes.HasSuffix(text, []byte("\\\n"))
		if isEntry && len(text) >= piece && !inKey(text) || len(text) >= 4*piece {
			end := len(text)
			if !isEntry {
				end = max(end-m.begun(string(text)), piece)
			}
			if _, err := io.WriteString(to, m.Text(string(text[:end]))); err != nil {
				return err
			}
			text = append(text[:0], text[end:]...)
		}
		if text = append(text, line...); err == nil || errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if !errors.Is(err, io.EOF) {
			return err
		}
		_, err = io.WriteString(to, m.Text(string(text)))
		return err
	}
}

// Continues reports whether a text begins with a line that may belong to the one before it.
func Continues[T string | []byte](text T) bool {
	return len(text) == 0 || strings.IndexByte(" \t\r\n}])<-#", text[0]) >= 0
}

// Known returns a text without the secrets that the mask knows. What only looks like one stays.
func (m *Mask) Known(text string) string {
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
	return m.Known(strings.Join(shown, " "))
}

// Args returns arguments without their secrets, which the mask knows from then
// on: what follows a flag such as --password, the value of a setting such as
// -Dssl.key.password=, the login in an address and the second half of curl's -u
// NAME:PASSWORD. A script, behind -c, is treated like a text of command lines.
func (m *Mask) Args(args []string) []string {
	shown := make([]string, len(args))
	for i, from := range flags(args) {
		ends := toEnd
		if i > 0 && args[i-1] == "-c" {
			ends = toBlank
		}
		shown[i] = m.find(args[i], ends)
		if from >= 0 {
			m.learn(args[i][from:], false)
			shown[i] = args[i][:from] + Hidden
		}
	}
	for i := range shown {
		shown[i] = m.Known(shown[i])
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
	return m.Known(shown)
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
