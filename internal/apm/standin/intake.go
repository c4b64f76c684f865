package standin

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
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"

	"carronade/internal/apm/wire"
	"carronade/internal/standin"
)

// maxErrors is the largest number of errors in an answer, as in the real
// server's.
const maxErrors = 5

// maxDocument is the largest number of bytes of a bad event that are sent back.
const maxDocument = 1 << 10

// Limits, in bytes and time, of reading a body whose answer is already known. It
// is read so that the client finishes sending and receives the answer.
const (
	maxUnread     = 1 << 20
	unreadTimeout = time.Second
)

// An answer is the answer to a request with events.
type answer struct {
	Accepted int          `json:"accepted"`
	Errors   []eventError `json:"errors,omitempty"`

	status int
	served time.Time // when the last of its events will have been served; zero: none waits
}

type eventError struct {
	Message  string `json:"message"`
	Document string `json:"document,omitempty"`
}

// fail adds an error. Of several errors, the highest status is the answer's.
func (a *answer) fail(status int, message string, document []byte) {
	a.status = max(a.status, status)
	if len(a.Errors) < maxErrors {
		a.Errors = append(a.Errors, eventError{message, string(document[:min(len(document), maxDocument)])})
	}
}

var (
	errFull     = errors.New("queue is full")
	errNotPost  = errors.New("only POST requests are supported")
	errNoNDJSON = errors.New("invalid content type")
)

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	lines := func(rum bool) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			defer s.enter()()
			if rum && allowOrigin(w, r) {
				return
			}
			if s.admit(w, r, rum) {
				s.lines(w, r)
			}
		}
	}
	document := func(n *node) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			defer s.enter()()
			if s.admit(w, r, false) {
				s.document(w, r, n)
			}
		}
	}
	mux.HandleFunc("/intake/v2/events", lines(false))
	mux.HandleFunc("/intake/v2/rum/events", lines(true))
	mux.HandleFunc("/intake/v3/rum/events", lines(true))
	if s.opts.V1 {
		mux.HandleFunc("/v1/transactions", document(allRules().transactions))
		mux.HandleFunc("/v1/errors", document(allRules().errors))
	}
	mux.HandleFunc("GET /{$}", s.about)
	mux.HandleFunc("GET /debug/vars", s.vars)
	mux.HandleFunc("/config/v1/agents", s.agentConfig(false))
	mux.HandleFunc("/config/v1/rum/agents", s.agentConfig(true))
	return mux
}

// admit does everything that precedes reading the body; ok: continue.
func (s *Server) admit(w http.ResponseWriter, r *http.Request, rum bool) (ok bool) {
	s.tally.requests.Add(1)
	if !s.authorize(w, r, rum) {
		return false
	}
	i := s.requests.Draw()
	if i < 0 {
		return true
	}
	s.tally.injected.Add(1)
	if s.rules[i].What == standin.StatusReset {
		panic(http.ErrAbortHandler)
	}
	s.readUnread(w, r)
	a := answer{status: s.rules[i].What}
	message := strings.ToLower(http.StatusText(a.status))
	if a.status == http.StatusServiceUnavailable {
		message = errFull.Error()
	}
	a.fail(a.status, message, nil)
	recordRequest(r, 0)
	s.answer(w, r, &a)
	return false
}

// enter adds a request to those in flight, and the function that it returns
// removes it. The stand-in waits for them when it ends.
func (s *Server) enter() (leave func()) {
	s.closing.Lock()
	defer s.closing.Unlock()
	if s.closed {
		panic(http.ErrAbortHandler)
	}
	s.inFlight.Add(1)
	return s.inFlight.Done
}

// readUnread reads what is left of a body, within bounds: an endless body or a
// slow client does not delay the answer.
func (s *Server) readUnread(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(unreadTimeout)) // if that fails, the number of bytes is the only bound
	_, _ = io.CopyN(io.Discard, counter{r.Body, &s.tally.bytes}, maxUnread)
}

// A body reads the decompressed body of a request, and counts.
type body struct {
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

// open returns a reader of a request's body. Like the real server, it recognizes
// the encoding by the first bytes if the request does not name it.
func (s *Server) open(r *http.Request) (*body, error) {
	var in io.Reader = counter{r.Body, &s.tally.bytes}
	b := &body{}
	encoding := r.Header.Get("Content-Encoding")
	if encoding != "gzip" && encoding != "deflate" {
		if 0 < r.ContentLength && r.ContentLength <= 2 {
			// The real server reads two bytes, is at the end of the body, and forgets them.
			_, _ = io.Copy(io.Discard, in)
		}
		peek := bufio.NewReaderSize(in, 16)
		in = peek
		switch begin, _ := peek.Peek(2); {
		case len(begin) == 2 && begin[0] == 0x1f && begin[1] == 0x8b:
			encoding = "gzip"
		case len(begin) == 2 && begin[0]&0x0f == 8:
			encoding = "deflate"
		}
	}
	b.text = in
	switch encoding {
	case "gzip":
		b.gz = gzips.Get().(*gzip.Reader)
		if err := b.gz.Reset(in); err != nil {
			b.close()
			return nil, fmt.Errorf("gzip: %w", err)
		}
		b.text = b.gz
	case "deflate":
		z, err := zlib.NewReader(in)
		if err != nil {
			return nil, fmt.Errorf("deflate: %w", err)
		}
		b.text = z
	}
	b.text = counter{b.text, &s.tally.plain}
	return b, nil
}

func (b *body) close() {
	if b.gz != nil {
		gzips.Put(b.gz)
	}
}

// lines answers requests of intake v2 and RUM. Like the real server, it accepts the
// events of all of them on each path.
func (s *Server) lines(w http.ResponseWriter, r *http.Request) {
	a := answer{}
	defer func() {
		if a.status >= http.StatusBadRequest {
			s.readUnread(w, r)
		}
		recordRequest(r, a.Accepted)
		s.answer(w, r, &a)
	}()
	if r.Method != http.MethodPost {
		a.fail(http.StatusBadRequest, errNotPost.Error(), nil)
		return
	}
	if t := r.Header.Get("Content-Type"); t != "" && !strings.Contains(t, "application/x-ndjson") {
		a.fail(http.StatusBadRequest, fmt.Sprintf("%v: '%.100s'", errNoNDJSON, t), nil)
		return
	}
	b, err := s.open(r)
	if err != nil {
		a.fail(http.StatusBadRequest, err.Error(), nil)
		return
	}
	defer b.close()
	in := readers.Get().(*bufio.Reader)
	in.Reset(b.text)
	defer readers.Put(in)
	t := &lineRequest{s: s, a: &a}
	for {
		line, tooLong, err := readLine(in, t.lineBuf[:0], int(s.opts.MaxEvent)-1) // the end of a line counts
		t.lineBuf = line
		ends := errors.Is(err, io.EOF)
		if err != nil && !ends { // a compressed body that is cut off, for example
			if t.metadataRead {
				a.fail(http.StatusInternalServerError, "cannot handle stream: "+err.Error(), nil)
			} else {
				a.fail(http.StatusBadRequest, err.Error(), line)
			}
			return
		}
		line = bytes.TrimSuffix(line, []byte("\n"))
		switch {
		case len(line) == 0 && (t.metadataRead || ends):
		case ends && !t.metadataRead && !tooLong:
			a.fail(http.StatusBadRequest, "EOF while reading metadata", line) // the real server wants the end of this line
			return
		default:
			if more := t.line(bytes.TrimSpace(line), tooLong); !more {
				return
			}
		}
		if ends {
			return
		}
	}
}

// readLine reads a line into buf, at most limit+1 bytes of it.
func readLine(in *bufio.Reader, buf []byte, limit int) (line []byte, tooLong bool, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if room := limit + 1 - len(buf); len(part) > room {
			part, tooLong = part[:max(0, room)], true
		}
		buf = append(buf, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return buf, tooLong, err
		}
	}
}

// A lineRequest is a request of lines, as far as it has been read.
type lineRequest struct {
	s            *Server
	a            *answer
	validator    validator
	meta         *metadata
	metadataRead bool
	lineBuf      []byte
}

// line processes a line that is not empty; more: read the next one.
func (t *lineRequest) line(p []byte, tooLong bool) (more bool) {
	if tooLong {
		t.s.tally.tooLarge.Add(1)
		// Not 413, as the real server answers 400 here.
		t.a.fail(http.StatusBadRequest, "event exceeded the permitted size", p)
		return t.metadataRead
	}
	kind, err := t.validator.line(p)
	isMeta := kind == "metadata" || kind == "m"
	if !t.metadataRead {
		if err != nil || !isMeta {
			if err == nil {
				err = errors.New(`"metadata" or "m" required`)
			}
			t.a.fail(http.StatusBadRequest, err.Error(), p)
			return false
		}
		t.metadataRead = true
		if t.s.queue.indexes() {
			t.meta = readMetadata(p[:t.validator.end])
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
	counts := t.validator.counts
	served, err := t.s.accept(counts, t.meta, kind, p[:t.validator.end])
	if err != nil {
		t.s.tally.full.Add(1)
		t.a.fail(http.StatusServiceUnavailable, err.Error(), nil)
		return false
	}
	t.a.Accepted += counts.Events()
	if served.After(t.a.served) {
		t.a.served = served
	}
	return true
}

// accept counts events, puts them into the queue and passes them to the server of
// the capacity, which will have served them at a time.
func (s *Server) accept(counts wire.Counts, meta *metadata, kind string, p []byte) (served time.Time, err error) {
	if !s.queue.reserve(counts.Events()) {
		return time.Time{}, errFull
	}
	served, ok := s.capacity.Arrive(counts.Events())
	if !ok {
		s.queue.release(counts.Events())
		return time.Time{}, errFull
	}
	s.tally.accept(counts)
	s.queue.put(counts.Events(), meta, kind, p)
	return served, nil
}

// document answers requests of v1: all of a document is accepted, or none of it.
func (s *Server) document(w http.ResponseWriter, r *http.Request, n *node) {
	if r.Method != http.MethodPost {
		answerError(w, http.StatusMethodNotAllowed, errNotPost.Error())
		return
	}
	if t := r.Header.Get("Content-Type"); t != "" && !strings.Contains(t, "application/json") {
		answerError(w, http.StatusBadRequest, fmt.Sprintf("invalid content type: %.100s", t))
		return
	}
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
	var j validator
	err = j.document(n, p)
	if err == nil && s.events.Draw() >= 0 {
		err = errors.New("refused by a rule")
	}
	if err != nil {
		s.tally.invalid.Add(uint64(max(1, j.counts.Events())))
		answerError(w, http.StatusBadRequest, err.Error())
		return
	}
	p = p[:j.end]
	var meta *metadata
	if s.queue.indexes() {
		meta = readMetadata(p)
	}
	served, err := s.accept(j.counts, meta, "v1", p)
	if err != nil {
		s.tally.full.Add(1)
		answerError(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	recordRequest(r, j.counts.Events())
	s.capacity.Hold(r, served, false)
	w.WriteHeader(http.StatusAccepted)
}

// answer writes an answer. Without errors it is only the status 202, unless the
// client asks for more.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, a *answer) {
	s.capacity.Hold(r, a.served, a.status >= http.StatusBadRequest)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	switch {
	case a.status >= http.StatusBadRequest:
		w.Header().Set("Connection", "Close") // as the real server does
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
	_ = json.NewEncoder(w).Encode(v) // on an error the client is gone
}

func answerError(w http.ResponseWriter, status int, message string) {
	answerJSON(w, status, map[string]string{"error": message})
}
