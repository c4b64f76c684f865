package profile

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"carronade/internal/apm/wire"
)

// An APMRequest is a request of an agent: one metadata, and events.
type APMRequest struct {
	Protocol wire.Protocol
	Service  string // names, not to be printed
	Host     string
	Agent    string
	Events   []APMEvent
	Bytes    int // of its lines
}

// An APMEvent is an event of a request.
type APMEvent struct {
	Kind        wire.Kind
	ID          string // of a transaction
	Transaction string // of a span: the id of its transaction
	Time        int64  // nanoseconds since 1970; 0: none
	Duration    time.Duration
	Outcome     string
	Frames      int  // of a span's or an error's stack
	Framed      bool // it can have a stack
}

// An APMSink takes requests. It returns ErrEnough to end reading.
type APMSink func(r *APMRequest, body []byte) error

// IsAPM reports whether a file with this beginning has requests of APM agents: each begins
// with its metadata.
func IsAPM(head []byte) bool {
	line, _, _ := bytes.Cut(bytes.TrimSpace(head), []byte("\n"))
	return isMetadata(line)
}

// isMetadata reports whether the first name in an object is that of metadata.
func isMetadata(line []byte) bool {
	var t wire.Tokens
	t.Reset(line)
	if tok, err := t.Next(); err != nil || tok != wire.BeginObject {
		return false
	}
	tok, err := t.Next()
	return err == nil && tok == wire.Key && (string(t.Raw()) == "metadata" || string(t.Raw()) == "m")
}

const (
	// maxRequest limits the lines of a request.
	maxRequest = 64 << 20
	// maxRequestEvents limits its events.
	maxRequestEvents = 100_000
)

// APM reads requests of APM agents, lines of intake v2 or of the intakes of browsers. The body
// that the sink gets is valid during the call.
func APM(in *bufio.Reader, to APMSink) error {
	l := lines{in: in}
	var r *APMRequest
	var body []byte
	for {
		line, err := l.next()
		switch {
		case errors.Is(err, io.EOF):
			if r == nil {
				return nil
			}
			if err := to(r, body); !errors.Is(err, ErrEnough) {
				return err
			}
			return nil // everything was read
		case err != nil:
			return err
		case isMetadata(line):
			if r != nil {
				if err := to(r, body); err != nil {
					return err
				}
			}
			if r, err = apmMetadata(line); err != nil {
				return l.wrong(err)
			}
			body = body[:0]
		case r == nil:
			return l.wrong(errors.New("it is not metadata, with which a request begins"))
		default:
			if err := r.event(line); err != nil {
				return l.wrong(err)
			}
		}
		if len(body)+len(line) > maxRequest || len(r.Events) > maxRequestEvents {
			return l.wrong(fmt.Errorf("a request has more than %d MiB or %d events", maxRequest>>20, maxRequestEvents))
		}
		body = append(append(body, line...), '\n')
		r.Bytes = len(body)
	}
}

// apmNamed is a name, in the long and the short form.
type apmNamed struct {
	Name  string `json:"name"`
	Short string `json:"n"`
}

func (n apmNamed) text() string {
	if n.Name == "" {
		return n.Short
	}
	return n.Name
}

func apmMetadata(line []byte) (*APMRequest, error) {
	type service struct {
		apmNamed
		Agent  apmNamed `json:"agent"`
		ShortA apmNamed `json:"a"`
	}
	var m struct {
		Metadata *struct {
			Service service `json:"service"`
			System  struct {
				Hostname   string `json:"hostname"`
				Configured string `json:"configured_hostname"`
				Detected   string `json:"detected_hostname"`
			} `json:"system"`
		} `json:"metadata"`
		M *struct {
			Service service `json:"se"`
		} `json:"m"`
	}
	if err := json.Unmarshal(line, &m); err != nil {
		return nil, fmt.Errorf("its metadata is invalid: %w", err)
	}
	r := &APMRequest{}
	switch {
	case m.M != nil:
		s := m.M.Service
		r.Protocol, r.Service, r.Agent = wire.RUMV3, s.text(), s.ShortA.text()
	case m.Metadata != nil:
		s := m.Metadata.Service
		r.Service, r.Agent = s.text(), s.Agent.text()
		for _, host := range []string{m.Metadata.System.Configured, m.Metadata.System.Detected, m.Metadata.System.Hostname} {
			if host != "" {
				r.Host = host
				break
			}
		}
		if r.Agent == "rum-js" || r.Agent == "js-base" {
			r.Protocol = wire.RUMV2
		}
	}
	return r, nil
}

// apmEvent has the fields of events that matter here, in the long and the short form.
type apmEvent struct {
	ID          string            `json:"id"`
	Transaction string            `json:"transaction_id"`
	Timestamp   json.Number       `json:"timestamp"` // microseconds
	Duration    float64           `json:"duration"`  // milliseconds
	ShortD      float64           `json:"d"`
	Outcome     string            `json:"outcome"`
	ShortO      string            `json:"o"`
	Stack       []json.RawMessage `json:"stacktrace"`
	Exception   struct {
		Stack []json.RawMessage `json:"stacktrace"`
		Short []json.RawMessage `json:"st"`
	} `json:"exception"`
	ShortEx struct {
		Short []json.RawMessage `json:"st"`
	} `json:"ex"`
	Log struct {
		Stack []json.RawMessage `json:"stacktrace"`
	} `json:"log"`
	Spans []json.RawMessage `json:"y"` // of a transaction of RUM v3
}

func (r *APMRequest) event(line []byte) error {
	kind, ok := wire.KindOfLine(line)
	if !ok {
		return errors.New("it is neither metadata nor an event")
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(line, &all); err != nil {
		return fmt.Errorf("it is not an event as JSON: %w", err)
	}
	var e apmEvent
	for _, name := range []string{kind.String(), map[wire.Kind]string{wire.Transaction: "x", wire.Error: "e", wire.Metricset: "me"}[kind]} {
		if raw, ok := all[name]; ok {
			if kind == wire.Log || kind == wire.Metricset {
				var only struct {
					Timestamp json.Number `json:"timestamp"`
				}
				if json.Unmarshal(raw, &only) == nil {
					e.Timestamp = only.Timestamp
				}
			} else if err := json.Unmarshal(raw, &e); err != nil {
				return fmt.Errorf("the %s is invalid: %w", kind, err)
			}
			break
		}
	}
	out := APMEvent{Kind: kind, ID: e.ID, Transaction: e.Transaction, Outcome: e.Outcome + e.ShortO}
	if us, err := e.Timestamp.Int64(); err == nil && us > 0 && us < math.MaxInt64/1000 {
		out.Time = us * 1000
	}
	if ms := e.Duration + e.ShortD; ms >= 0 && ms < 1e9 {
		out.Duration = time.Duration(ms * 1e6)
	}
	if kind == wire.Span || kind == wire.Error {
		out.Framed = true
		out.Frames = max(len(e.Stack), len(e.Exception.Stack), len(e.Exception.Short), len(e.ShortEx.Short), len(e.Log.Stack))
	}
	r.Events = append(r.Events, out)
	for _, raw := range e.Spans {
		if len(r.Events) > maxRequestEvents {
			return fmt.Errorf("a request has more than %d events", maxRequestEvents)
		}
		var span struct {
			Stack []json.RawMessage `json:"st"`
		}
		if json.Unmarshal(raw, &span) != nil {
			return errors.New("a span of the transaction is invalid")
		}
		r.Events = append(r.Events, APMEvent{Kind: wire.Span, Transaction: e.ID, Framed: true, Frames: len(span.Stack)})
	}
	return nil
}
