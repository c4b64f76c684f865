package apm

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"

	wire "carronade/internal/wire/apm"
)

// mostErrors is how many texts an answer carries, as the real server's.
const mostErrors = 5

// mostDocument is how many bytes of a bad event are sent back.
const mostDocument = 1 << 10

// An answer is what is said to a request with events.
type answer struct {
	Accepted int          `json:"accepted"`
	Errors   []eventError `json:"errors,omitempty"`

	status int
}

type eventError struct {
	Message  string `json:"message"`
	Document string `json:"document,omitempty"`
}

// fail adds an error; of several, the one with the highest status decides.
func (a *answer) fail(status int, message string, document []byte) {
	a.status = max(a.status, status)
	if len(a.Errors) < mostErrors {
		a.Errors = append(a.Errors, eventError{message, string(document[:min(len(document), mostDocument)])})
	}
}

var errFull = errors.New("queue is full")

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	lines := func(rules map[string]*node, rum bool) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if s.take(w, r, rum) {
				s.lines(w, r, rules)
			}
		}
	}
	document := func(n *node) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if s.take(w, r, false) {
				s.document(w, r, n)
			}
		}
	}
	rules := allRules()
	mux.HandleFunc("POST /intake/v2/events", lines(rules.v2, false))
	mux.HandleFunc("POST /intake/v2/rum/events", lines(rules.v2, true))
	mux.HandleFunc("POST /intake/v3/rum/events", lines(rules.rum, true))
	mux.HandleFunc("POST /v1/transactions", document(rules.transactions))
	mux.HandleFunc("POST /v1/errors", document(rules.errors))
	mux.HandleFunc("GET /{$}", s.about)
	mux.HandleFunc("GET /debug/vars", s.vars)
	// Agents ask for their central configuration now and then: there is none.
	mux.HandleFunc("/config/v1/agents", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=30, must-revalidate")
		answerJSON(w, http.StatusOK, struct{}{})
	})
	return mux
}

// take does what is done before a body is looked at; ok: go on.
func (s *Server) take(w http.ResponseWriter, r *http.Request, rum bool) (ok bool) {
	s.tally.requests.Add(1)
	if !s.authorize(w, r, rum) {
		return false
	}
	i := s.requests.Draw()
	if i < 0 {
		return true
	}
	s.tally.injected.Add(1)
	if s.rules[i].Status == statusReset {
		panic(http.ErrAbortHandler)
	}
	_, _ = io.Copy(io.Discard, r.Body)
	a := answer{status: s.rules[i].Status}
	message := strings.ToLower(http.StatusText(a.status))
	if a.status == http.StatusServiceUnavailable {
		message = errFull.Error()
	}
	a.fail(a.status, message, nil)
	s.answer(w, r, &a)
	return false
}

// A body reads a request's, decompressed, and counts.
type body struct {
	s    *Server
	wire io.Reader
	text io.Reader
	gz   *gzip.Reader
}

var (
	gzips   = sync.Pool{New: func() any { return new(gzip.Reader) }}
	readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 64<<10) }}
)

type counter struct {
	r io.Reader
	n interface{ Add(uint64) uint64 }
}

func (c counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n.Add(uint64(n))
	return n, err
}

func (s *Server) open(r *http.Request) (*body, error) {
	b := &body{s: s, wire: counter{r.Body, &s.tally.bytes}}
	switch e := r.Header.Get("Content-Encoding"); e {
	case "", "identity":
		b.text = b.wire
	case "gzip":
		b.gz = gzips.Get().(*gzip.Reader)
		if err := b.gz.Reset(b.wire); err != nil {
			return nil, fmt.Errorf("gzip: %w", err)
		}
		b.text = b.gz
	case "deflate":
		z, err := zlib.NewReader(b.wire)
		if err != nil {
			return nil, fmt.Errorf("deflate: %w", err)
		}
		b.text = z
	default:
		return nil, fmt.Errorf("content encoding %.20q is not known", e)
	}
	b.text = counter{b.text, &s.tally.plain}
	return b, nil
}

func (b *body) close() {
	if b.gz != nil {
		gzips.Put(b.gz)
	}
	// What was not read keeps the connection from its next request.
	_, _ = io.Copy(io.Discard, b.wire)
}

// lines takes intake v2 and RUM.
func (s *Server) lines(w http.ResponseWriter, r *http.Request, rules map[string]*node) {
	a := answer{}
	defer func() { s.answer(w, r, &a) }()
	b, err := s.open(r)
	if err != nil {
		a.fail(http.StatusBadRequest, err.Error(), nil)
		return
	}
	defer b.close()
	in := readers.Get().(*bufio.Reader)
	in.Reset(b.text)
	defer readers.Put(in)
	t := &taking{s: s, a: &a, rules: rules}
	for {
		line, tooLong, err := readLine(in, t.long[:0], int(s.opts.MaxEvent))
		t.long = line
		if tooLong || len(bytes.TrimSpace(line)) > 0 {
			if more := t.line(bytes.TrimSpace(line), tooLong); !more {
				return
			}
		}
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			a.fail(http.StatusBadRequest, "reading the body: "+err.Error(), nil)
			return
		}
	}
}

// readLine reads a line into buf, up to most bytes of it.
func readLine(in *bufio.Reader, buf []byte, most int) (line []byte, tooLong bool, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if room := most + 1 - len(buf); len(part) > room {
			part, tooLong = part[:max(0, room)], true
		}
		buf = append(buf, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return buf, tooLong, err
		}
	}
}

// A taking is a request of lines, as far as it was read.
type taking struct {
	s     *Server
	a     *answer
	rules map[string]*node
	judge judge
	meta  *metadata
	begun bool
	long  []byte
}

// line takes one that is not empty; more: the next one may be read.
func (t *taking) line(p []byte, tooLong bool) (more bool) {
	if tooLong {
		t.s.tally.tooLarge.Add(1)
		t.a.fail(http.StatusRequestEntityTooLarge, "event exceeded the permitted size", p)
		return t.begun
	}
	kind, err := t.judge.line(t.rules, p)
	isMeta := kind == "metadata" || kind == "m"
	if !t.begun {
		if err != nil || !isMeta {
			if err == nil {
				err = errors.New(`"metadata" or "m" required`)
			}
			t.a.fail(http.StatusBadRequest, err.Error(), p)
			return false
		}
		t.begun = true
		if t.s.queue.indexes() {
			t.meta = readMetadata(p)
		}
		return true
	}
	if err == nil && isMeta {
		err = fmt.Errorf("%w: %q", errUnrecognized, kind)
	}
	if err == nil && t.s.events.Draw() >= 0 {
		err = errors.New("refused by a rule")
	}
	if err != nil {
		t.s.tally.invalid.Add(1)
		t.a.fail(http.StatusBadRequest, err.Error(), p)
		return true
	}
	counts := t.judge.counts
	if k, ok := wire.KindOfLine(p); ok {
		counts[k]++
	}
	if err := t.s.accept(counts, t.meta, kind, p); err != nil {
		t.s.tally.full.Add(1)
		t.a.fail(http.StatusServiceUnavailable, err.Error(), nil)
		return false
	}
	t.a.Accepted += counts.Events()
	return true
}

// accept puts events into the queue, and counts them first.
func (s *Server) accept(counts wire.Counts, meta *metadata, kind string, p []byte) error {
	if !s.queue.room(counts.Events()) {
		return errFull
	}
	s.tally.accept(counts)
	s.queue.put(counts.Events(), meta, kind, p)
	return nil
}

// document takes v1: all of it, or nothing.
func (s *Server) document(w http.ResponseWriter, r *http.Request, n *node) {
	b, err := s.open(r)
	if err != nil {
		answerError(w, http.StatusBadRequest, err.Error())
		return
	}
	defer b.close()
	p, err := io.ReadAll(io.LimitReader(b.text, s.opts.MaxBody+1))
	if err != nil {
		answerError(w, http.StatusBadRequest, "data read error: "+err.Error())
		return
	}
	if int64(len(p)) > s.opts.MaxBody {
		s.tally.tooLarge.Add(1)
		answerError(w, http.StatusRequestEntityTooLarge, "request body too large")
		return
	}
	var j judge
	err = j.document(n, p)
	if err == nil && s.events.Draw() >= 0 {
		err = errors.New("refused by a rule")
	}
	if err != nil {
		s.tally.invalid.Add(uint64(max(1, j.counts.Events())))
		answerError(w, http.StatusBadRequest, err.Error())
		return
	}
	var meta *metadata
	if s.queue.indexes() {
		meta = readMetadata(p)
	}
	if err := s.accept(j.counts, meta, "v1", p); err != nil {
		s.tally.full.Add(1)
		answerError(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

// answer: what is all well is told by 202 alone, unless the client asks.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, a *answer) {
	switch {
	case a.status >= http.StatusBadRequest:
		answerJSON(w, a.status, a)
	case r.URL.Query().Has("verbose"):
		answerJSON(w, http.StatusAccepted, a)
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

func answerJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client went: nothing to do
}

func answerError(w http.ResponseWriter, status int, message string) {
	answerJSON(w, status, map[string]string{"error": message})
}
