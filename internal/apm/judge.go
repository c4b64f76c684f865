package apm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"unicode/utf8"

	"carronade/load"
)

// A verdict is what became of the events of a batch.
type verdict struct {
	acked, failed, unknown int32
	class                  load.Class
	text                   string
}

// A reply is the body of an intake's answer: how many events were accepted, and
// what was wrong with the others (apm-server's processor/stream Result; v1 has
// one error and no numbers).
type reply struct {
	accepted int    // -1: not given
	first    string // the first error; "": none
}

// readReply reads an answer, or the beginning of a long one, which contains the
// number of accepted events. It calls each with the error of each document.
func readReply(body []byte, each func(message string)) reply {
	r := reply{accepted: -1}
	d := json.NewDecoder(bytes.NewReader(body))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return r
	}
	note := func(text string) {
		if text != "" {
			each(text)
			if r.first == "" {
				r.first = text
			}
		}
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return r
		}
		switch name {
		case "accepted":
			if err = d.Decode(&r.accepted); err != nil {
				r.accepted = -1
			}
		case "errors":
			err = readErrors(d, note)
		case "error":
			var text any
			if err = d.Decode(&text); err == nil && text != nil {
				note(fmt.Sprint(text))
			}
		default:
			var other any
			err = d.Decode(&other)
		}
		if err != nil {
			return r
		}
	}
	return r
}

// readErrors reads an array of messages with their documents.
func readErrors(d *json.Decoder, note func(string)) error {
	t, err := d.Token()
	if err != nil || t != json.Delim('[') {
		return err
	}
	for d.More() {
		if t, err = d.Token(); err != nil || t != json.Delim('{') {
			return errors.Join(err, errNoObject)
		}
		for d.More() { // member by member: a document may be truncated after its message
			name, err := d.Token()
			if err != nil {
				return err
			}
			var value any
			if err := d.Decode(&value); err != nil {
				return err
			}
			if text, ok := value.(string); ok && name == "message" {
				note(text)
			}
		}
		if _, err := d.Token(); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}

var errNoObject = errors.New("an error that is not an object")

// mostText bounds the text of a failure.
const mostText = 200

// evaluate evaluates the answer to a batch of the given number of events. body is
// the beginning of its body, or all of it (whole). The most frequent answer, an
// empty 202, costs nothing.
func (s *session) evaluate(status int, body []byte, whole bool, events int32) verdict {
	if status/100 == 2 && (len(body) == 0 || allAccepted(body, events)) {
		return verdict{acked: events}
	}
	redactor := s.cfg.redactor
	r := readReply(body, func(text string) { s.errors.add(redactor.line(text)) })
	class := classOf(status)
	switch {
	case status/100 == 2 && r.accepted < 0:
		return verdict{acked: events} // such as a gateway's page: any 2xx is an acknowledgment
	case status/100 == 2:
		return partialVerdict(r, events, load.Rejected, redactor, status, body)
	case status == http.StatusBadGateway, status == http.StatusGatewayTimeout:
		// A gateway answered: whether the server behind it accepted the events is
		// unknown.
		return verdict{unknown: events, class: class, text: redactor.statusText(status, body, r.first)}
	case r.accepted >= 0:
		return partialVerdict(r, events, class, redactor, status, body)
	case !whole && len(body) > 0 && body[0] == '{':
		// Some may have been accepted; the number is in the part that was not kept.
		return verdict{unknown: events, class: class, text: redactor.statusText(status, body, r.first)}
	}
	return verdict{failed: events, class: class, text: redactor.statusText(status, body, r.first)}
}

// allAccepted recognises {"accepted":n}, where n is the number of events, without
// a JSON decoder. With --verbose that is the answer to nearly every request.
func allAccepted(body []byte, events int32) bool {
	rest, ok := bytes.CutPrefix(body, []byte(`{"accepted":`))
	if !ok {
		return false
	}
	n := 0
	for i, c := range rest {
		switch {
		case c >= '0' && c <= '9' && n < 1<<30:
			n = 10*n + int(c-'0')
		case c == '}':
			return i > 0 && n == int(events) && len(bytes.TrimSpace(rest[i+1:])) == 0
		default:
			return false
		}
	}
	return false
}

// partialVerdict is the verdict if the server says how many events it accepted.
func partialVerdict(r reply, events int32, class load.Class, redactor *redactor, status int, body []byte) verdict {
	v := verdict{acked: int32(min(max(0, r.accepted), int(events)))}
	if v.failed = events - v.acked; v.failed > 0 {
		v.class, v.text = class, redactor.statusText(status, body, r.first)
	}
	return v
}

// classOf returns the class of a status code.
func classOf(status int) load.Class {
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

// statusText is the status and text of an answer, on one line: "503 Service
// Unavailable: queue is full".
func (v *redactor) statusText(status int, body []byte, text string) string {
	if text == "" && len(body) > 0 && body[0] != '<' && body[0] != '{' && utf8.Valid(body) {
		text = string(body)
	}
	head := fmt.Sprintf("%d %s", status, http.StatusText(status))
	text = v.line(text)
	if text == "" {
		return strings.TrimSpace(head)
	}
	return strings.TrimSpace(head) + ": " + text
}

// line makes a text from a server one short printable line.
func line(text string) string {
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

// A tally counts the texts of servers' errors, in bounded memory. It is safe for
// concurrent use.
type tally struct {
	mu     sync.Mutex
	counts map[string]uint64
	others uint64
}

// mostTexts is how many distinct texts are kept.
const mostTexts = 32

func (t *tally) add(text string) {
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

// all returns the counts by text. "..." counts the texts that were not kept.
func (t *tally) all() map[string]uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := make(map[string]uint64, len(t.counts)+1)
	maps.Copy(m, t.counts)
	if t.others > 0 {
		m["..."] = t.others
	}
	return m
}
