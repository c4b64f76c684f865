package otlp

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"carronade/internal/conn/framing"
	"carronade/internal/conn/web"
	"carronade/internal/otlp/wire"
	"carronade/load"
)

// Codes of gRPC.
const (
	codeOK            = 0
	codeCancelled     = 1
	codeDeadline      = 4
	codeForbidden     = 7
	codeExhausted     = 8
	codeAborted       = 10
	codeOutOfRange    = 11
	codeUnimplemented = 12
	codeUnavailable   = 14
	codeDataLoss      = 15
	codeUnauthorized  = 16
)

var codeNames = [...]string{
	"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED",
	"FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
}

func codeName(code int) string {
	if code >= 0 && code < len(codeNames) {
		return codeNames[code]
	}
	return fmt.Sprintf("code %d", code)
}

// text is the code and text of an answer.
func (a *answer) text(redactor *web.Redactor) string {
	text, err := url.PathUnescape(a.message)
	if err != nil {
		text = a.message
	}
	if text = redactor.Line(text); text == "" {
		return codeName(a.code)
	}
	return codeName(a.code) + ": " + text
}

// evaluateGRPC evaluates the answer to a call with a number of events. wait is how long the server asks to send
// nothing; 0: it does not.
func evaluateGRPC(redactor *web.Redactor, a *answer, events int32) (v web.Verdict, wait time.Duration) {
	switch {
	case a.code == codeOK:
		return acknowledged(redactor, a, events), 0
	case a.code < 0 && a.status < http.StatusMultipleChoices: // 0: an answer without headers
		return web.Verdict{Unknown: events, Class: load.Protocol, Text: "an answer without a grpc-status"}, 0
	case a.code < 0: // such as a proxy's
		v = web.Verdict{Failed: events, Class: web.ClassOf(a.status), Text: redactor.StatusText(a.status, nil, "")}
		unknown := a.status == http.StatusBadGateway || a.status == http.StatusGatewayTimeout
		if unknown {
			v.Unknown, v.Failed = events, 0
		}
		v.Final = v.Class != load.Throttled && !unknown
		return v, 0
	}
	details, retries := time.Duration(0), false
	if raw, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(a.details, "=")); err == nil {
		if s, err := wire.ReadStatus(raw); err == nil {
			details, retries = s.Retry, s.Retries
		}
	}
	v = web.Verdict{Failed: events, Class: load.Rejected, Text: a.text(redactor), Final: true}
	switch a.code {
	case codeCancelled, codeAborted, codeOutOfRange, codeDataLoss: // the specification allows to retry these
		v.Final = false
	case codeDeadline: // whether it accepted them is unknown
		v.Class, v.Unknown, v.Failed, v.Final = load.Timeout, events, 0, false
	case codeUnavailable:
		v.Class, v.Final = load.Throttled, false
	case codeExhausted:
		v.Class, v.Final = load.Throttled, !retries
		if strings.Contains(a.message, "larger than max") {
			v.Class = load.TooLarge
		}
	case codeUnauthorized, codeForbidden:
		v.Class = load.Unauthorized
	case codeUnimplemented:
		v.Class = load.Protocol
	}
	return v, details
}

// acknowledged evaluates an answer with the code OK.
func acknowledged(redactor *web.Redactor, a *answer, events int32) web.Verdict {
	wrong := func(text string) web.Verdict {
		return web.Verdict{Unknown: events, Class: load.Protocol, Text: text}
	}
	if len(a.body) < framing.MessageHead {
		return wrong("an answer without a message")
	}
	size := binary.BigEndian.Uint32(a.body[1:])
	switch {
	case a.received > len(a.body):
		return wrong("the answer is too long to tell how many events were accepted")
	case int64(size) != int64(len(a.body)-framing.MessageHead):
		return wrong("an answer whose length is wrong")
	case size == 0:
		return web.Verdict{Acked: events}
	}
	message, err := a.body[framing.MessageHead:], error(nil)
	if a.body[0] != 0 { // servers compress answers as the request was
		message, err = web.Decompressed(a.encoding, message)
	}
	if err != nil {
		return wrong("an answer that cannot be decompressed")
	}
	p, err := wire.ReadAnswer(message)
	if err != nil {
		return wrong("an answer that cannot be decoded")
	}
	return partial(redactor, p, events)
}
