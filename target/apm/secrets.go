package apm

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/textproto"
	"slices"
	"strconv"
	"strings"

	"carronade/internal/secret"
	"carronade/target"
)

// resolve is target.ReadSecret for secrets in headers.
func resolve(option, ref string) (string, error) {
	text, err := target.ReadSecret(option, ref)
	if err != nil {
		return "", err
	}
	return checkSecret("read --"+option, text)
}

// checkSecret refuses a secret that is not valid in a header: a line break would
// begin another header.
func checkSecret(doing, text string) (string, error) {
	if !fieldValue(text) {
		return "", &target.Error{Doing: doing, Err: errors.New("the secret contains a line break or another control character"), Hint: "it must be one line of text"}
	}
	return text, nil
}

// fieldValue reports whether a text is a valid header value (RFC 9110, 5.5).
func fieldValue(s string) bool {
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

// A field is a header.
type field struct{ name, value string }

// reservedHeaders are the headers that carronade sets itself.
var reservedHeaders = []string{"Host", "Content-Length", "Content-Type", "Content-Encoding", "Transfer-Encoding", "Connection", "Expect"}

// parseHeader reads "K: V", where V may refer to a secret.
func parseHeader(text string) (field, error) {
	name, value, ok := strings.Cut(text, ":")
	name, value = textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(name)), strings.TrimSpace(value)
	fail := func(err, hint string) (field, error) {
		return field{}, &target.Error{Doing: "read --header", Err: errors.New(err), Hint: hint}
	}
	switch {
	case !ok || name == "" || strings.ContainsFunc(name, notToken):
		return fail("it has no name", "give it as 'K: V'")
	case !fieldValue(value):
		return fail("the value of "+name+" contains a line break or another control character", "it must be one line of text")
	}
	if slices.Contains(reservedHeaders, name) {
		return fail(name+" is set by carronade", "leave it out")
	}
	if secret.IsReference(value) {
		v, err := resolve("header "+name, value)
		return field{name, v}, err
	}
	if isSecret(name) {
		return fail("the value of "+name+" is a secret, which others can see on a command line", "give it as '"+name+": env:NAME' or '"+name+": file:PATH'")
	}
	return field{name, value}, nil
}

// A redactor hides the secrets of a run in texts from servers: a server may
// repeat what it was sent. Nil hides nothing.
type redactor struct{ known *strings.Replacer }

// shortestRedacted is the length below which a secret is not hidden: without
// every "1" a text would be unreadable.
const shortestRedacted = 4

// newRedactor makes a redactor for secrets in all forms in which they are sent:
// plain, in base64, and in a JSON string.
func newRedactor(secrets []string) *redactor {
	var forms []string
	for _, s := range secrets {
		s = strings.TrimSpace(s)
		if len(s) < shortestRedacted {
			continue
		}
		forms = append(forms, s, base64.StdEncoding.EncodeToString([]byte(s)))
		escaped, _ := json.Marshal(s)                                        // every text can be written
		for _, quoted := range []string{strconv.Quote(s), string(escaped)} { // < and & are escaped in one of them
			forms = append(forms, quoted[1:len(quoted)-1])
		}
	}
	if len(forms) == 0 {
		return nil
	}
	slices.SortFunc(forms, func(a, b string) int { return len(b) - len(a) }) // longest first, so that no part of one is left
	var pairs []string
	for _, f := range slices.Compact(forms) {
		pairs = append(pairs, f, secret.Hidden)
	}
	return &redactor{strings.NewReplacer(pairs...)}
}

// line makes a text from a server one short printable line. It hides secrets
// before it truncates the text, so that no part of one is left at its end.
func (v *redactor) line(text string) string {
	if v != nil {
		text = v.known.Replace(text)
	}
	return line(text)
}

func isSecret(name string) bool { return secret.IsName(name) || strings.EqualFold(name, "Cookie") }

// showHeader returns a header without its secret.
func showHeader(text string) string {
	name, value, ok := strings.Cut(text, ":")
	if !ok || secret.IsReference(strings.TrimSpace(value)) || !isSecret(strings.TrimSpace(name)) {
		return text
	}
	return name + ": " + secret.Hidden
}
