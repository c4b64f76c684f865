package otlp

import (
	"net/http"

	"carronade/internal/conn/web"
	"carronade/internal/otlp/wire"
	"carronade/load"
)

// evaluate evaluates the answer over HTTP to a request with a number of events. The most frequent answer, an
// empty 200, costs nothing.
func (s *session) evaluate(status int, body []byte, whole bool, events int32) web.Verdict {
	if status/100 == 2 {
		if len(body) == 0 {
			return web.Verdict{Acked: events}
		}
		p, err := wire.ReadAnswer(body)
		if err != nil && !whole {
			return web.Verdict{Unknown: events, Class: load.Protocol, Text: "the answer is too long to tell how many events were accepted"}
		}
		if err != nil { // such as a gateway's page: any 2xx is an acknowledgment
			return web.Verdict{Acked: events}
		}
		return partial(s.cfg.redactor, p, events)
	}
	text := ""
	if r, err := wire.ReadStatus(body); err == nil {
		text = r.Message
	}
	v := web.Verdict{Failed: events, Class: web.ClassOf(status), Text: s.cfg.redactor.StatusText(status, nil, text)}
	if text == "" {
		v.Text = s.cfg.redactor.StatusText(status, body, "")
	}
	switch status {
	case http.StatusBadGateway, http.StatusGatewayTimeout:
		// A gateway answered: whether the server behind it accepted the events is unknown.
		v.Unknown, v.Failed = events, 0
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
	default: // the specification allows to retry only these four
		v.Final = true
	}
	return v
}

// partial is the verdict on a request that was accepted, at least in part. What was rejected must not be sent
// again, as the specification says.
func partial(redactor *web.Redactor, p wire.Partial, events int32) web.Verdict {
	failed := int32(min(max(0, p.Rejected), int64(events)))
	v := web.Verdict{Acked: events - failed, Failed: failed}
	if failed > 0 {
		v.Class, v.Final, v.Text = load.Rejected, true, "partial success: "+redactor.Line(p.Message)
		if p.Message == "" {
			v.Text = "partial success, without a message"
		}
	}
	return v
}
