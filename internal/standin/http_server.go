package standin

import (
	"crypto/tls"
	"errors"
	"io"
	stdlog "log" //nolint:depguard // http.Server logs only to this type
	"net"
	"net/http"
	"strconv"
	"time"
)

// NewHTTPServer makes a server of HTTP/1.1 and HTTP/2. stall is the longest time in which nothing is read; opened is
// called for each connection. With a record it serves HTTP/1.1 alone: a record can follow only one answer at a time.
func NewHTTPServer(handler http.Handler, log io.Writer, stall time.Duration, recorded bool, opened func()) *http.Server {
	s := &http.Server{
		Handler: handler, ReadHeaderTimeout: 30*time.Second + stall, ErrorLog: stdlog.New(httpLog{log}, "", 0),
		Protocols: new(http.Protocols), ConnContext: WithConn,
		ConnState: func(nc net.Conn, st http.ConnState) {
			switch st {
			case http.StateNew:
				opened()
			case http.StateIdle: // the answer is written
				RecordedConnOf(nc).Answered()
			}
		},
	}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetHTTP2(!recorded)
	s.Protocols.SetUnencryptedHTTP2(!recorded)
	return s
}

// SecureHTTP adds TLS to a listener for NewHTTPServer; without a configuration it does not.
func SecureHTTP(ln net.Listener, config *tls.Config) net.Listener {
	if config == nil {
		return ln
	}
	config.NextProtos = []string{"h2", "http/1.1"}
	return tls.NewListener(ln, config)
}

// What a StatusRule does instead of answering with a status.
const (
	StatusReset = -1 // the connection, or the stream, is closed without an answer
	StatusEvent = -2 // one event is refused
)

// A StatusRule answers a share of the requests with an HTTP status, or does one of the above.
type StatusRule = Rule[int]

var statusNames = map[string]int{
	"reset": StatusReset, "bad-request": http.StatusBadRequest, "unauthorized": http.StatusUnauthorized, "forbidden": http.StatusForbidden,
	"too-large": http.StatusRequestEntityTooLarge, "throttled": http.StatusTooManyRequests,
	"internal": http.StatusInternalServerError, "queue-full": http.StatusServiceUnavailable,
}

// ParseStatusRule parses "queue-full@1%" or "503@1%". event is the name of StatusEvent.
func ParseStatusRule(s, event string) (StatusRule, error) {
	return ParseRule(s, "NAME@SHARE, such as queue-full@1%", func(name string) (StatusRule, error) {
		status, ok := statusNames[name]
		if name == event {
			status, ok = StatusEvent, true
		}
		if !ok {
			var err error
			if status, err = strconv.Atoi(name); err != nil || status < 400 || status > 599 {
				return StatusRule{}, errors.New("want " + event + ", reset, bad-request, unauthorized, forbidden, too-large, throttled, internal, queue-full or a status from 400 to 599")
			}
		}
		return StatusRule{Name: name, What: status}, nil
	})
}
