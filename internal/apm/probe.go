package apm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"carronade/internal/apm/wire"
	"carronade/internal/conn/web"
	"carronade/load"
)

// A server is what a server said about itself.
type server struct {
	Base    string
	Version string // "" if it requires a login
	Build   string // its revision
	Built   string // build date
	Ready   *bool  // to publish events; nil: not given

	Standin  bool // it is a stand-in of ours
	Discards bool // it is one that discards events
}

// mostInfo bounds the bytes that are read of an answer.
const mostInfo = 4 << 20

// newClient makes the client for requests other than batches. It follows no
// redirects.
func (c *config) newClient() *http.Client {
	t := c.newTransport(new(atomic.Uint64), new(atomic.Uint64))
	t.MaxIdleConnsPerHost = 1
	t.IdleConnTimeout = time.Minute
	return &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// probe asks every server for its version, and sends each a request without
// events, which is answered like any other and stores nothing.
func (s *session) probe(ctx context.Context) error {
	bases := s.cfg.bases
	s.servers = make([]server, len(bases))
	faults := make([]error, len(bases))
	var wg sync.WaitGroup
	for i, base := range bases {
		wg.Go(func() { s.servers[i], faults[i] = s.cfg.probeOne(ctx, s.client, base) })
	}
	wg.Wait()
	for i, err := range faults {
		if err != nil {
			return s.cfg.explain("connect to "+s.cfg.url(bases[i], "/"), err)
		}
	}
	for _, v := range s.servers {
		if v.Ready != nil && !*v.Ready {
			s.cfg.warnings = append(s.cfg.warnings, v.Base+" reports that it is not ready to publish: events that it accepts may never be indexed (is Elasticsearch up, is the integration installed?)")
		}
	}
	return nil
}

func (c *config) probeOne(ctx context.Context, client *http.Client, base string) (server, error) {
	v := server{Base: base}
	status, body, err := c.ask(ctx, client, http.MethodGet, c.url(base, "/"), nil)
	if err != nil {
		return v, err
	}
	if status == http.StatusBadRequest && bytes.Contains(body, []byte("HTTPS server")) {
		return v, errSpeaksTLS
	}
	if err := v.read(body); err != nil {
		return v, err
	}
	path := c.bodyPool.source.Path()
	status, body, err = c.ask(ctx, client, http.MethodPost, c.url(base, path), c.empty())
	if err != nil {
		return v, err
	}
	v1 := c.bodyPool.source.ContentType() == "application/json"
	switch class := web.ClassOf(status); {
	case status/100 == 2, class == load.Throttled:
		return v, nil
	case v1 && status == http.StatusBadRequest: // the server complains that it has no events
		return v, nil
	default:
		return v, &refusal{status: status, path: path, words: c.redactor.StatusText(status, body, readReply(body, func(string) {}).first)}
	}
}

// A refusal is an error answer to the request without events.
type refusal struct {
	status int
	path   string
	words  string
}

func (e *refusal) Error() string { return fmt.Sprintf("POST %s: %s", e.path, e.words) }

// read reads the answer to GET /.
func (v *server) read(body []byte) error {
	var info struct {
		Version any    `json:"version"`
		Build   string `json:"build_sha"`
		Built   string `json:"build_date"`
		Ready   *bool  `json:"publish_ready"`
		Tagline string `json:"tagline"`
		Standin string `json:"standin"`  // of our stand-in
		Discard bool   `json:"discards"` // likewise
		OK      *struct {
			Version string `json:"version"`
			Build   string `json:"build_sha"`
			Built   string `json:"build_date"`
		} `json:"ok"` // until 7.0
	}
	if parsed := json.Unmarshal(body, &info) == nil; !parsed { // without a login, or from a gateway
		return nil
	}
	if info.Tagline != "" {
		return errIndex
	}
	v.Version, _ = info.Version.(string)
	v.Build, v.Built, v.Ready, v.Standin, v.Discards = info.Build, info.Built, info.Ready, info.Standin != "", info.Discard
	if info.OK != nil && v.Version == "" {
		v.Version, v.Build, v.Built = info.OK.Version, info.OK.Build, info.OK.Built
	}
	v.Version, v.Build, v.Built = web.Line(v.Version), web.Line(v.Build), web.Line(v.Built)
	return nil
}

var errNoHTTP2 = errors.New("the server answers in HTTP/1.1, but HTTP/2 was requested")

var errIndex = errors.New("this is Elasticsearch or OpenSearch, not an APM server")

// empty is the body of a request without events: only the metadata.
func (c *config) empty() []byte {
	if c.bodyPool.source.ContentType() != wire.IntakeV2.ContentType() {
		return []byte("{}")
	}
	b := c.bodyPool.source.Make(0).Bytes
	if i := bytes.IndexByte(b, '\n'); i >= 0 {
		b = b[:i+1]
	}
	return b
}

// ask sends a request with the login and headers of the run.
func (c *config) ask(ctx context.Context, client *http.Client, method, url string, body []byte) (int, []byte, error) {
	a, err := c.exchange(ctx, client, method, url, body)
	if err != nil {
		return 0, nil, err
	}
	return a.status, a.body, nil
}

// An exchanged is the answer to a request other than a batch.
type exchanged struct {
	status int
	header http.Header
	body   []byte
}

// exchange sends a request with the login and headers of the run.
func (c *config) exchange(ctx context.Context, client *http.Client, method, url string, body []byte) (*exchanged, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header = c.header()
	req.Header.Del("Content-Encoding")
	if body == nil {
		req.Header.Del("Content-Type")
		req.Body, req.ContentLength = http.NoBody, 0
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if c.http2 && res.ProtoMajor != 2 { // net/http falls back to HTTP/1.1
		return nil, errNoHTTP2
	}
	data, err := io.ReadAll(io.LimitReader(res.Body, mostInfo))
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	return &exchanged{res.StatusCode, res.Header, data}, nil
}

// versions are the servers' versions, each once: "9.6.0, 8.19.0".
func versions(servers []server) string {
	var list []string
	for _, v := range servers {
		if v.Version != "" && !strings.Contains(strings.Join(list, ", "), v.Version) {
			list = append(list, v.Version)
		}
	}
	return strings.Join(list, ", ")
}
