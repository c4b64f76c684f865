package web

import (
	"errors"
	"net/textproto"
	"slices"
	"strings"

	"carronade/internal/secret"
	"carronade/protocol"
)

// ReadSecret is protocol.ReadSecret for secrets in headers.
func ReadSecret(option, ref string) (string, error) {
	text, err := protocol.ReadSecret(option, ref)
	if err != nil {
		return "", err
	}
	return checkSecret("read --"+option, text)
}

// checkSecret refuses a secret that is not valid in a header: a line break would
// begin another header.
func checkSecret(doing, text string) (string, error) {
	if !IsFieldValue(text) {
		return "", &protocol.Error{Doing: doing, Err: errors.New("the secret contains a line break or another control character"), Hint: "it must be one line of text"}
	}
	return text, nil
}

// IsFieldValue reports whether a text is a valid header value (RFC 9110, 5.5).
func IsFieldValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// notToken reports whether a character is invalid in a header's name (RFC 9110,
// 5.6.2).
func notToken(r rune) bool {
	return r <= ' ' || r >= 0x7f || strings.ContainsRune("\"(),/:;<=>?@[\\]{}", r)
}

// A Field is a header.
type Field struct{ Name, Value string }

// reservedHeaders are the headers that carronade sets itself.
var reservedHeaders = []string{"Host", "Content-Length", "Content-Type", "Content-Encoding", "Transfer-Encoding", "Connection", "Expect"}

// ParseField reads "K: V", where V may refer to a secret.
func ParseField(text string) (Field, error) {
	name, value, ok := strings.Cut(text, ":")
	name, value = textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(name)), strings.TrimSpace(value)
	fail := func(err, hint string) (Field, error) {
		return Field{}, &protocol.Error{Doing: "read --header", Err: errors.New(err), Hint: hint}
	}
	switch {
	case !ok || name == "" || strings.ContainsFunc(name, notToken):
		return fail("it has no name", "give it as 'K: V'")
	case !IsFieldValue(value):
		return fail("the value of "+name+" contains a line break or another control character", "it must be one line of text")
	}
	if slices.Contains(reservedHeaders, name) {
		return fail(name+" is set by carronade", "leave it out")
	}
	if secret.IsReference(value) {
		v, err := ReadSecret("header "+name, value)
		return Field{name, v}, err
	}
	if IsSecret(name) {
		return fail("the value of "+name+" is a secret, which others can see on a command line", "give it as '"+name+": env:NAME' or '"+name+": file:PATH'")
	}
	return Field{name, value}, nil
}

// A Redactor hides the secrets of a run in texts from servers: a server may
// repeat what it was sent. Nil hides nothing.
type Redactor struct{ known secret.Mask }

// NewRedactor returns a redactor that hides some secrets.
func NewRedactor(secrets []string) *Redactor {
	v := new(Redactor)
	v.known.Add(secrets...)
	return v
}

// Line makes a text from a server one short printable line. It hides secrets
// before it truncates the text, so that no part of one is left at its end.
func (v *Redactor) Line(text string) string {
	if v != nil {
		text = v.known.Known(text)
	}
	return Line(text)
}

// IsSecret reports whether a header of this name has a secret.
func IsSecret(name string) bool { return secret.IsName(name) || strings.EqualFold(name, "Cookie") }

// ShowField returns a header without its secret.
func ShowField(text string) string {
	name, value, ok := strings.Cut(text, ":")
	if !ok || secret.IsReference(strings.TrimSpace(value)) || !IsSecret(strings.TrimSpace(name)) {
		return text
	}
	return name + ": " + secret.Hidden
}
