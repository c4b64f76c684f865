package otlp

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/net/http2/hpack"

	"carronade/internal/conn"
	"carronade/internal/conn/web"
	"carronade/internal/splitmix"
	"carronade/load"
	"carronade/payload"
	"carronade/protocol"
)

// A config holds a URL and its options, parsed and checked. It does not change after parseConfig. It
// contains secrets and is not printed.
type config struct {
	tls       bool
	grpc      bool
	bases     []string // host:port; lanes use them in turn
	prefix    string   // of the paths, without a trailing slash
	clients   int      // connections
	portion   load.Portion
	depth     int  // requests in flight on each
	sticky    bool // a connection sends only its own requests
	scheduled bool // events have due times

	retryAfter     bool
	headers        []header
	login          bool // there is an Authorization header
	redactor       *web.Redactor
	dialer         conn.Dialer
	material       conn.Material
	requestTimeout time.Duration
	pool           *pool
	happened       func(name string, began time.Time, length time.Duration) // see protocol.Spec
}

// A header is an additional header. Its value may depend on the request.
type header struct {
	web.Field
	template *payload.Template // nil: the value is the same in all requests
}

// value is the header's value in request n of the pool.
func (h *header) value(n uint64) string {
	if h.template == nil {
		return h.Value
	}
	return string(h.template.Append(nil, n))
}

const doingOptions = "read the options"

func refuse(doing, what, hint string) error {
	return &protocol.Error{Doing: doing, Err: errors.New(what), Hint: hint}
}

// parseConfig reads a spec. It opens no connection, but it reads the files and environment variables
// that options name. Without keep it cannot make the requests of a corpus.
func parseConfig(s protocol.Spec, keep bool) (*config, error) {
	v := s.Options
	c := &config{
		tls: s.URL.Scheme == schemeHTTPS || s.URL.Scheme == schemeGRPCS, grpc: strings.HasPrefix(s.URL.Scheme, schemeGRPC), depth: 1, sticky: v.Bool("sticky"), scheduled: s.Scheduled, retryAfter: v.Bool("retry-after"),
		requestTimeout: cmp.Or(v.Duration("request-timeout"), 30*time.Second), portion: s.Portion, happened: s.Happened,
	}
	if c.happened == nil {
		c.happened = func(string, time.Time, time.Duration) {}
	}
	// The default limit in flight is for requests that share a connection, so it is not used here.
	if s.Given["max-in-flight"] {
		c.depth = max(1, s.MaxInFlight)
	}
	c.clients = web.Clients(s)
	if c.clients < 1 || c.clients > 1<<16 {
		return nil, refuse(doingOptions, fmt.Sprintf("--clients %d is out of range", c.clients), "give --clients 1 to 65536")
	}
	if err := c.parseTarget(s); err != nil {
		return nil, err
	}
	if err := c.parseTLS(v); err != nil {
		return nil, err
	}
	if err := c.parseHeaders(v, s.Seed); err != nil {
		return nil, err
	}
	var err error
	if c.pool, err = newPool(v, s, keep); err != nil {
		return nil, err
	}
	c.pool.grpc = c.grpc
	if s.Given["batch-events"] && s.BatchEvents != c.pool.most {
		return nil, refuse(doingOptions, fmt.Sprintf("--batch-events is %d, but a request has up to %d events", s.BatchEvents, c.pool.most), "leave out --batch-events: --events decides")
	}
	return c, nil
}

func (c *config) parseTarget(s protocol.Spec) (err error) {
	const doing = "read the target"
	if s.URL.Host == "" {
		return refuse(doing, "no server address", "type otlp+http://host:4318")
	}
	if c.bases, err = conn.Hosts(s.URL.Host, Kind{}.defaultPort(s.URL.Scheme)); err != nil {
		return &protocol.Error{Doing: doing, Err: err, Hint: "type otlp+http://host:4318"}
	}
	if err := conn.CheckURL(s.URL, doing, "give --header 'Authorization: env:NAME'", "settings are flags"); err != nil {
		return err
	}
	c.prefix = strings.TrimRight(s.URL.EscapedPath(), "/")
	if c.grpc && c.prefix != "" {
		return refuse(doing, "a target of gRPC has no path", "write it as otlp+grpc://host:4317")
	}
	if strings.HasSuffix(c.prefix, "/v1/traces") || strings.HasSuffix(c.prefix, "/v1/metrics") || strings.HasSuffix(c.prefix, "/v1/logs") {
		return refuse(doing, "a target has no path of a signal", "leave it out: --signal chooses it")
	}
	return nil
}

func (c *config) parseTLS(v protocol.Values) (err error) {
	c.dialer = conn.Dialer{
		SendBuffer: int(v.Size("send-buffer")), RecvBuffer: int(v.Size("recv-buffer")), Timeout: cmp.Or(v.Duration("connect-timeout"), 10*time.Second),
	}
	if !c.tls {
		if conn.UsesTLS(v) {
			return refuse(doingOptions, "TLS options with a target without TLS", "write the target as otlp+https://... or otlp+grpcs://...")
		}
		return nil
	}
	if c.material, err = conn.ReadMaterial(v); err != nil {
		return err
	}
	if c.dialer.TLS, err = c.material.Config(); err == nil && c.grpc {
		c.dialer.TLS.NextProtos = []string{"h2"}
	}
	return err
}

// parseHeaders reads the headers.
func (c *config) parseHeaders(v protocol.Values, seed uint64) error {
	var secrets []string
	lookup := func(name string) (string, bool) {
		v, ok := os.LookupEnv(name)
		secrets = append(secrets, v)
		return v, ok
	}
	for i, text := range v.List("header") {
		if text == "" {
			continue
		}
		f, err := web.ParseField(text)
		if err != nil {
			return err
		}
		h := header{Field: f}
		if payload.HasExpression(f.Value) && !web.IsSecret(f.Name) {
			if h.template, err = payload.ParseTemplate(f.Value, payload.TemplateOptions{Seed: seed + uint64(i+1)*splitmix.Golden, Use: payload.Ahead, Env: lookup}); err != nil {
				return &protocol.Error{Doing: "read --header " + f.Name, Err: err, Hint: "such as 'X-Scope-OrgID: tenant-${rnd.nextInt(100)}'"}
			}
			if !web.IsFieldValue(h.value(0)) { // such as of an environment variable
				return refuse("read --header "+f.Name, "the value contains a line break or another control character", "it must be one line of text")
			}
		}
		if web.IsSecret(f.Name) {
			secrets = append(secrets, f.Value)
		}
		c.login = c.login || f.Name == "Authorization"
		c.headers = append(c.headers, h)
	}
	c.redactor = web.NewRedactor(secrets)
	return nil
}

// scheme is the scheme of the server's URLs.
func (c *config) scheme() string {
	if c.tls {
		return "https"
	}
	return "http"
}

// url makes the URL of a path on a base.
func (c *config) url(base, path string) string { return c.scheme() + "://" + base + c.prefix + path }

// userAgent is our User-Agent header.
const userAgent = "carronade"

// head makes the head of request n of the pool to a base: up to the value of Content-Length, or the block of
// headers of HTTP/2.
func (c *config) head(base string, b *template, n uint64) []byte {
	if c.grpc {
		return c.headerBlock(base, b, n)
	}
	h := make([]byte, 0, 512)
	add := func(parts ...string) {
		for _, p := range parts {
			h = append(h, p...)
		}
		h = append(h, '\r', '\n')
	}
	add("POST ", c.prefix, b.body.Signal.Path(), " HTTP/1.1")
	add("Host: ", base)
	add("Content-Type: application/x-protobuf")
	if c.pool.compression != "none" {
		add("Content-Encoding: ", c.pool.compression)
	}
	agent := false
	for i := range c.headers {
		agent = agent || c.headers[i].Name == "User-Agent"
		add(c.headers[i].Name, ": ", c.headers[i].value(n))
	}
	if !agent {
		add("User-Agent: ", userAgent)
	}
	return append(h, "Content-Length: "...)
}

// headerBlock is a block that leaves the server's table of headers as it is, so that it is the same each time.
func (c *config) headerBlock(base string, b *template, n uint64) []byte {
	var out bytes.Buffer
	e := hpack.NewEncoder(&out)
	add := func(name, value string) {
		_ = e.WriteField(hpack.HeaderField{Name: name, Value: value, Sensitive: true}) // a buffer has no errors
	}
	add(":method", "POST")
	add(":scheme", c.scheme())
	add(":path", b.body.Signal.Method())
	add(":authority", base)
	add("content-type", "application/grpc")
	add("te", "trailers")
	if c.pool.compression != "none" {
		add("grpc-encoding", c.pool.compression)
	}
	agent := false
	for i := range c.headers {
		agent = agent || c.headers[i].Name == "User-Agent"
		add(strings.ToLower(c.headers[i].Name), c.headers[i].value(n))
	}
	if !agent {
		add("user-agent", userAgent)
	}
	return out.Bytes()
}
