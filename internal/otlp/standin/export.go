package standin

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"carronade/internal/otlp/wire"
	"carronade/internal/standin"
)

// Content types.
const (
	typeProto = "application/x-protobuf"
	typeJSON  = "application/json"
	typeGRPC  = "application/grpc"
)

// The Server header, by which a run knows a stand-in.
const (
	serverName   = "carronade-standin"
	discardsName = serverName + " discards"
)

// sinkAnswer is the answer over HTTP of a server that discards.
const sinkAnswer = "HTTP/1.1 200 OK\r\nContent-Type: " + typeProto + "\r\nServer: " + discardsName + "\r\nContent-Length: 0\r\n\r\n"

// serve answers every request, of HTTP and of gRPC.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Server", serverName)
	grpc := strings.HasPrefix(r.Header.Get("Content-Type"), typeGRPC)
	for signal := range wire.Signals {
		switch {
		case grpc && r.URL.Path == signal.Method():
			s.export(w, r, signal, answerGRPC)
			return
		case !grpc && r.URL.Path == signal.Path():
			if r.Method != http.MethodPost {
				http.Error(w, "405 method not allowed, supported: [POST]", http.StatusMethodNotAllowed)
				return
			}
			s.serveHTTP(w, r, signal)
			return
		}
	}
	switch {
	case grpc:
		answerGRPC(w, &outcome{status: http.StatusNotFound, text: "unknown method " + r.URL.Path})
	case r.URL.Path == "/metrics":
		media, text := s.metrics()
		w.Header().Set("Content-Type", media)
		_, _ = w.Write(text)
	default:
		http.NotFound(w, r)
	}
}

func (s *Server) serveHTTP(w http.ResponseWriter, r *http.Request, signal wire.Signal) {
	switch media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); media {
	case typeProto:
		s.export(w, r, signal, answerProto)
	case typeJSON:
		s.export(w, r, signal, func(w http.ResponseWriter, o *outcome) { answerJSON(w, signal, o) })
	default:
		http.Error(w, "415 unsupported media type, supported: [application/json, application/x-protobuf]", http.StatusUnsupportedMediaType)
	}
}

// An outcome is what becomes of a request.
type outcome struct {
	status  int // of HTTP; 200: accepted
	text    string
	retry   time.Duration // that the client is asked to wait
	partial wire.Partial
	broken  bool // it could not be decoded
}

// export answers an export request.
func (s *Server) export(w http.ResponseWriter, r *http.Request, signal wire.Signal, answer func(http.ResponseWriter, *outcome)) {
	s.tally.requests.Add(1)
	rule := s.requests.Draw()
	if rule >= 0 {
		s.tally.injected.Add(1)
		if s.opts.Errors[rule].What == standin.StatusReset {
			panic(http.ErrAbortHandler)
		}
	}
	o := &outcome{status: http.StatusOK}
	events, served := s.decode(r, signal, o), time.Time{}
	if rule >= 0 && o.status == http.StatusOK {
		s.apply(s.opts.Errors[rule].What, events, o)
	}
	if o.status == http.StatusOK {
		var ok bool
		if served, ok = s.capacity.Arrive(events); !ok {
			s.tally.full.Add(1)
			*o = outcome{status: http.StatusServiceUnavailable, text: "sending queue is full", retry: s.opts.RetryAfter}
		}
	}
	if o.status == http.StatusOK {
		rejected := uint64(o.partial.Rejected)
		s.tally.rejected.Add(rejected)
		s.tally.accepted[signal].Add(uint64(events) - rejected)
		s.tally.refused[signal].Add(rejected)
	} else {
		s.tally.refused[signal].Add(uint64(events))
	}
	standin.RecordedConnOf(standin.ConnOf(r)).Received(standin.RecordedRequest{Kind: "request", Partition: standin.NoRecord, Offset: standin.NoRecord, Events: int64(events)})
	s.capacity.Hold(r, served, false)
	answer(w, o)
}

// apply makes the outcome of an error rule.
func (s *Server) apply(status, events int, o *outcome) {
	switch status {
	case standin.StatusEvent:
		if events > 0 {
			o.partial = wire.Partial{Rejected: 1, Message: "refused by a rule"}
		}
		return
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		o.retry = s.opts.RetryAfter
	}
	o.status, o.text = status, strings.ToLower(http.StatusText(status))
	if status == http.StatusServiceUnavailable {
		o.text = "sending queue is full"
	}
}

var (
	buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}
	gzips   = sync.Pool{New: func() any { return new(gzip.Reader) }}
	zstds   = sync.Pool{New: func() any {
		d, _ := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(1<<30))
		return d
	}}
)

// decode decodes and checks a request, and returns the number of its events.
func (s *Server) decode(r *http.Request, signal wire.Signal, o *outcome) (events int) {
	b := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(b)
	b.Reset()
	err := s.read(r, b)
	switch {
	case errors.Is(err, errTooLarge):
		*o = outcome{status: http.StatusRequestEntityTooLarge, text: err.Error()}
	case err == nil && strings.HasPrefix(r.Header.Get("Content-Type"), typeJSON):
		var of wire.Signal
		var request []byte
		if of, request, err = wire.FromJSON(b.Bytes()); err == nil && of == signal {
			events, err = signal.Check(request)
		} else if strings.TrimSpace(b.String()) == "{}" {
			err = nil
		}
	case err == nil:
		events, err = signal.Check(b.Bytes())
	}
	if err != nil {
		s.tally.invalid.Add(1)
		if o.status == http.StatusOK {
			*o = outcome{status: http.StatusBadRequest, text: err.Error(), broken: true}
		}
		return 0
	}
	return events
}

var errTooLarge = errors.New("the request is too large")

// read reads the body of a request, without gRPC's prefix, and decompresses it.
func (s *Server) read(r *http.Request, to *bytes.Buffer) error {
	in := io.Reader(&counter{r.Body, &s.tally})
	encoding := r.Header.Get("Content-Encoding")
	if strings.HasPrefix(r.Header.Get("Content-Type"), typeGRPC) {
		var prefix [5]byte
		if _, err := io.ReadFull(in, prefix[:]); err != nil {
			return fmt.Errorf("read the message's length: %w", err)
		}
		size := int64(binary.BigEndian.Uint32(prefix[1:]))
		if size > s.opts.MaxBody {
			return errTooLarge
		}
		in, encoding = io.LimitReader(in, size), ""
		if prefix[0] == 1 {
			encoding = r.Header.Get("Grpc-Encoding")
		}
	}
	switch encoding {
	case "", "identity":
	case "gzip":
		z := gzips.Get().(*gzip.Reader)
		defer gzips.Put(z)
		if err := z.Reset(in); err != nil {
			return err
		}
		in = z
	case "zstd":
		z := zstds.Get().(*zstd.Decoder)
		defer zstds.Put(z)
		if err := z.Reset(in); err != nil {
			return err
		}
		in = z
	default:
		return fmt.Errorf("unsupported Content-Encoding: %.40s", encoding)
	}
	n, err := to.ReadFrom(io.LimitReader(in, s.opts.MaxBody+1))
	if n > s.opts.MaxBody {
		return errTooLarge
	}
	return err
}

// A counter counts the bytes of bodies.
type counter struct {
	r io.Reader
	t *tally
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.t.bytes.Add(uint64(n))
	return n, err
}

// seconds are those of a Retry-After.
func seconds(d time.Duration) string { return strconv.Itoa(int(math.Ceil(d.Seconds()))) }

// answerProto answers over HTTP with protobuf.
func answerProto(w http.ResponseWriter, o *outcome) {
	w.Header().Set("Content-Type", typeProto)
	if o.retry > 0 {
		w.Header().Set("Retry-After", seconds(o.retry))
	}
	w.WriteHeader(o.status)
	if o.status == http.StatusOK {
		_, _ = w.Write(wire.AppendAnswer(nil, o.partial)) // on an error the client is gone
	} else {
		_, _ = w.Write(wire.AppendStatus(nil, wire.Status{Code: code(o.status), Message: o.text}))
	}
}

// answerJSON answers over HTTP with JSON.
func answerJSON(w http.ResponseWriter, signal wire.Signal, o *outcome) {
	w.Header().Set("Content-Type", typeJSON)
	if o.retry > 0 {
		w.Header().Set("Retry-After", seconds(o.retry))
	}
	var v any = map[string]any{"code": code(o.status), "message": o.text}
	if o.status == http.StatusOK {
		partial := map[string]any{}
		if o.partial != (wire.Partial{}) {
			partial = map[string]any{signal.Rejected(): strconv.FormatInt(o.partial.Rejected, 10), "errorMessage": o.partial.Message}
		}
		v = map[string]any{"partialSuccess": partial}
	}
	w.WriteHeader(o.status)
	_ = json.NewEncoder(w).Encode(v)
}

// answerGRPC answers over gRPC.
func answerGRPC(w http.ResponseWriter, o *outcome) {
	h := w.Header()
	h.Set("Content-Type", typeGRPC)
	if o.status == http.StatusOK {
		message := wire.AppendAnswer(make([]byte, 5), o.partial)
		binary.BigEndian.PutUint32(message[1:], uint32(len(message)-5))
		_, _ = w.Write(message)
		h.Set(http.TrailerPrefix+"Grpc-Status", "0")
		return
	}
	c := code(o.status)
	if o.broken { // as grpc-go answers it, before the receiver sees the request
		c = code(http.StatusInternalServerError)
	}
	h.Set("Grpc-Status", strconv.Itoa(c))
	h.Set("Grpc-Message", url.PathEscape(o.text))
	if o.retry > 0 {
		details := wire.AppendStatus(nil, wire.Status{Code: c, Message: o.text, Retry: o.retry, Retries: true})
		h.Set("Grpc-Status-Details-Bin", base64.RawStdEncoding.EncodeToString(details))
	}
}

// codes are those of gRPC by status of HTTP, as the Collector's receiver maps errors.
var codes = map[int]int{
	http.StatusBadRequest: 3, http.StatusUnauthorized: 16, http.StatusForbidden: 7, http.StatusNotFound: 12, http.StatusRequestEntityTooLarge: 8,
	http.StatusTooManyRequests: 8, http.StatusServiceUnavailable: 14, http.StatusInternalServerError: 13,
}

func code(status int) int {
	if c, ok := codes[status]; ok {
		return c
	}
	return 2
}
