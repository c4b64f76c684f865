package web

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"unicode/utf8"

	"carronade/load"
)

// A Verdict is what became of the events of a batch.
type Verdict struct {
	Acked, Failed, Unknown int32
	Class                  load.Class
	Text                   string
	Final                  bool // see load.Outcome
}

// mostText bounds the text of a failure.
const mostText = 200

// ClassOf returns the class of a status code.
func ClassOf(status int) load.Class {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		return load.Unauthorized
	case http.StatusRequestEntityTooLarge:
		return load.TooLarge
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return load.Throttled
	case http.StatusRequestTimeout, http.StatusGatewayTimeout:
		return load.Timeout
	case http.StatusBadGateway:
		return load.Refused
	}
	if status/100 == 3 || status/100 == 1 {
		return load.Protocol
	}
	return load.Rejected
}

// StatusText is the status and text of an answer, on one line: "503 Service
// Unavailable: queue is full".
func (v *Redactor) StatusText(status int, body []byte, text string) string {
	if text == "" && len(body) > 0 && body[0] != '<' && body[0] != '{' && utf8.Valid(body) {
		text = string(body)
	}
	head := fmt.Sprintf("%d %s", status, http.StatusText(status))
	text = v.Line(text)
	if text == "" {
		return strings.TrimSpace(head)
	}
	return strings.TrimSpace(head) + ": " + text
}

// Line makes a text from a server one short printable line.
func Line(text string) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f || r == utf8.RuneError }), " ")
	if len(text) > mostText {
		cut := mostText
		for !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + "..."
	}
	return text
}

// A Tally counts the texts of servers' errors, in bounded memory. It is safe for
// concurrent use.
type Tally struct {
	mu     sync.Mutex
	counts map[string]uint64
	others uint64
}

// mostTexts is how many distinct texts are kept.
const mostTexts = 32

// Add counts a text; beyond mostTexts different ones, as one of the rest.
func (t *Tally) Add(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts == nil {
		t.counts = map[string]uint64{}
	}
	if _, known := t.counts[text]; !known && len(t.counts) == mostTexts {
		t.others++
		return
	}
	t.counts[text]++
}

// All returns the counts by text. "..." counts the texts that were not kept.
func (t *Tally) All() map[string]uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := make(map[string]uint64, len(t.counts)+1)
	maps.Copy(m, t.counts)
	if t.others > 0 {
		m["..."] = t.others
	}
	return m
}
