package apm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"carronade/internal/conn/web"
	"carronade/load"
)

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

// evaluate evaluates the answer to a batch of the given number of events. body is
// the beginning of its body, or all of it (whole). The most frequent answer, an
// empty 202, costs nothing.
func (s *session) evaluate(status int, body []byte, whole bool, events int32) web.Verdict {
	if status/100 == 2 && (len(body) == 0 || allAccepted(body, events)) {
		return web.Verdict{Acked: events}
	}
	redactor := s.cfg.redactor
	r := readReply(body, func(text string) { s.errors.Add(redactor.Line(text)) })
	class := web.ClassOf(status)
	switch {
	case status/100 == 2 && r.accepted < 0:
		return web.Verdict{Acked: events} // such as a gateway's page: any 2xx is an acknowledgment
	case status/100 == 2:
		return partialVerdict(r, events, load.Rejected, redactor, status, body)
	case status == http.StatusBadGateway, status == http.StatusGatewayTimeout:
		// A gateway answered: whether the server behind it accepted the events is
		// unknown.
		return web.Verdict{Unknown: events, Class: class, Text: redactor.StatusText(status, body, r.first)}
	case r.accepted >= 0:
		return partialVerdict(r, events, class, redactor, status, body)
	case !whole && len(body) > 0 && body[0] == '{':
		// Some may have been accepted; the number is in the part that was not kept.
		return web.Verdict{Unknown: events, Class: class, Text: redactor.StatusText(status, body, r.first)}
	}
	return web.Verdict{Failed: events, Class: class, Text: redactor.StatusText(status, body, r.first)}
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
func partialVerdict(r reply, events int32, class load.Class, redactor *web.Redactor, status int, body []byte) web.Verdict {
	v := web.Verdict{Acked: int32(min(max(0, r.accepted), int(events)))}
	if v.Failed = events - v.Acked; v.Failed > 0 {
		v.Class, v.Text = class, redactor.StatusText(status, body, r.first)
	}
	return v
}
