package apm

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"carronade/internal/apm/wire"
	"carronade/internal/conn"
	"carronade/internal/conn/web"
	"carronade/load"
	"carronade/protocol"
)

const defaultPort = "8200"

// A config holds a URL and its options, parsed and checked. It does not change
// after parseConfig. It contains secrets and is not printed.
type config struct {
	tls       bool
	bases     []string // host:port; lanes use them round robin
	prefix    string   // of the paths, without a trailing slash
	query     string   // of the intake's URL, "?verbose" or ""
	clients   int      // connections
	portion   load.Portion
	depth     int  // requests in flight on each
	sticky    bool // a connection sends only its own requests
	scheduled bool // events have due times

	http2      bool
	keepAlive  bool
	proxy      *url.URL // nil: none
	retryAfter bool     // obey Retry-After

	fields   []web.Field // headers, including the login
	login    string      // the kind of login, for people
	secrets  []string
	redactor *web.Redactor // for texts from servers

	dialer         conn.Dialer
	material       conn.Material
	requestTimeout time.Duration

	bodyPool *bodyPool
	v1Pool   func() (*bodyPool, error) // bodies of v1 instead; nil: --intake is not auto
	index    *indexConfig              // nil: documents are not counted
	warnings []string
	logf     func(format string, args ...any)
	happened func(name string, began time.Time, length time.Duration) // see protocol.Spec
}

// parseConfig reads a spec. It opens no connection, but it reads the files and
// environment variables that options name. Without keep it cannot make the bodies of a corpus.
func parseConfig(s protocol.Spec, keep bool) (*config, error) {
	v := s.Options
	c := &config{
		tls:            s.URL.Scheme == schemeHTTPS,
		depth:          1,
		http2:          v.String("http-version") == "2",
		keepAlive:      v.String("keep-alive") != "false",
		retryAfter:     v.Bool("retry-after"),
		sticky:         v.Bool("sticky"),
		scheduled:      s.Scheduled,
		requestTimeout: cmp.Or(v.Duration("request-timeout"), 30*time.Second),
		logf:           s.Logf,
	}
	if c.logf == nil {
		c.logf = func(string, ...any) {}
	}
	if c.happened = s.Happened; c.happened == nil {
		c.happened = func(string, time.Time, time.Duration) {}
	}
	if v.Bool("verbose") {
		c.query = "?verbose"
	}
	// The default limit in flight is for requests that share a connection, so it
	// is not used here.
	if s.Given["max-in-flight"] {
		c.depth = max(1, s.MaxInFlight)
	}
	c.portion = s.Portion
	c.clients = web.Clients(s)
	if c.http2 && s.Concurrency > 0 && !s.Given["max-in-flight"] && v.Has("clients") {
		c.depth = (s.Concurrency + c.clients - 1) / c.clients
	}
	var err error
	if c.bases, err = parseBases(s.URL.Host); err != nil {
		return nil, err
	}
	if c.prefix, err = parsePrefix(s.URL); err != nil {
		return nil, err
	}
	if err := c.parseTransport(v); err != nil {
		return nil, err
	}
	if err := c.parseFields(v); err != nil {
		return nil, err
	}
	if c.bodyPool, err = newBodyPool(v, s.Seed, keep); err != nil {
		return nil, err
	}
	c.secrets = append(c.secrets, c.bodyPool.secrets...)
	if v.String("intake") == intakeAuto && !v.Has("corpus") {
		v1 := maps.Clone(v)
		v1["intake"] = []string{wire.V1.String()}
		c.v1Pool = func() (*bodyPool, error) { return newBodyPool(v1, s.Seed, keep) }
	}
	if s.Given["batch-events"] && s.BatchEvents != c.bodyPool.most {
		return nil, &protocol.Error{
			Doing: "read the options",
			Err:   fmt.Errorf("--batch-events is %d, but a request has %s events", s.BatchEvents, c.bodyPool.sizes()),
			Hint:  "leave out --batch-events: --events and --spans decide",
		}
	}
	if c.index, err = parseIndex(v); err != nil {
		return nil, err
	}
	if c.index != nil {
		c.secrets = append(c.secrets, c.index.secrets()...)
	}
	c.redactor = web.NewRedactor(c.secrets)
	if c.index != nil {
		c.index.redactor = c.redactor
	}
	return c, nil
}

// sizes says how many events requests have, for people.
func (m *bodyPool) sizes() string {
	if m.fixed {
		return strconv.Itoa(m.most)
	}
	return "up to " + strconv.Itoa(m.most)
}

// parseBases reads host:port,host,... and fills in the default port.
func parseBases(list string) ([]string, error) {
	fail := func(err error) ([]string, error) {
		return nil, &protocol.Error{Doing: "read the target", Err: err, Hint: "type apm+http://host:8200"}
	}
	if list == "" {
		return fail(errors.New("no server address"))
	}
	bases, err := conn.Hosts(list, defaultPort)
	if err != nil {
		return fail(err)
	}
	return bases, nil
}

func parsePrefix(u *url.URL) (string, error) {
	const doing = "read the target"
	if err := conn.CheckURL(u, doing, "give --secret-token env:NAME, --api-key env:NAME or --header 'Authorization: env:NAME'",
		"settings are flags; the server's own are --verbose and --header"); err != nil {
		return "", err
	}
	path := strings.TrimRight(u.EscapedPath(), "/")
	if strings.Contains(path, "/intake/") || strings.HasSuffix(path, "/v1/transactions") || strings.HasSuffix(path, "/v1/errors") {
		return "", &protocol.Error{Doing: doing, Err: errors.New("a target has no intake path"), Hint: "leave it out: --intake chooses it"}
	}
	return path, nil
}

func (c *config) parseTransport(v protocol.Values) error {
	refuse := func(what, hint string) error {
		return &protocol.Error{Doing: "read the options", Err: errors.New(what), Hint: hint}
	}
	c.dialer = conn.Dialer{
		SendBuffer: int(v.Size("send-buffer")), RecvBuffer: int(v.Size("recv-buffer")),
		Timeout: cmp.Or(v.Duration("connect-timeout"), 10*time.Second),
	}
	switch {
	case c.tls:
		var err error
		if c.material, err = conn.ReadMaterial(v); err != nil {
			return err
		}
		if c.dialer.TLS, err = c.material.Config(); err != nil {
			return err
		}
	case conn.UsesTLS(v):
		return refuse("tls options with a target of apm+http", "write the target as apm+https://...")
	case c.http2:
		return refuse("APM servers do not support HTTP/2 without TLS", "write the target as apm+https://..., or leave out --http-version 2")
	}
	if text := v.String("proxy"); text != "" {
		u, err := url.Parse(text)
		switch {
		case err != nil, u.Host == "", u.Scheme != "http" && u.Scheme != "https":
			return refuse("the proxy is not an http or https URL", "give --proxy http://host:3128")
		case u.User != nil:
			return refuse("a proxy URL must not contain a user or a password", "use a proxy without a login")
		}
		c.proxy = u
	}
	if !c.keepAlive && c.depth > 1 {
		return refuse("pipelining needs keep-alive", "leave out --max-in-flight, or --keep-alive=false")
	}
	if !c.keepAlive && c.http2 {
		return refuse("HTTP/2 needs keep-alive", "leave out --http-version 2, or --keep-alive=false")
	}
	if c.clients < 1 || c.clients > 1<<16 {
		return refuse(fmt.Sprintf("--clients %d is out of range", c.clients), "give --clients 1 to 65536")
	}
	return nil
}

// parseFields reads the headers and the login.
func (c *config) parseFields(v protocol.Values) error {
	c.login = "none"
	for _, text := range v.List("header") {
		if text == "" {
			continue
		}
		f, err := web.ParseField(text)
		if err != nil {
			return err
		}
		if f.Name == "Authorization" {
			c.login = "Authorization header"
		}
		if web.IsSecret(f.Name) {
			c.secrets = append(c.secrets, f.Value)
		}
		c.fields = append(c.fields, f)
	}
	for _, l := range []struct{ option, scheme, words string }{
		{"secret-token", "Bearer ", "secret token"}, {"api-key", "ApiKey ", "API key"},
	} {
		if !v.Has(l.option) {
			continue
		}
		if c.login != "none" {
			return &protocol.Error{Doing: "read the options", Err: errors.New("more than one way to log in"), Hint: "give one of --secret-token, --api-key and --header 'Authorization: env:NAME'"}
		}
		text, err := web.ReadSecret(l.option, v.String(l.option))
		if err != nil {
			return err
		}
		c.login = l.words
		c.secrets = append(c.secrets, text)
		c.fields = append(c.fields, web.Field{Name: "Authorization", Value: l.scheme + text})
	}
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

// raw reports whether lanes write their requests themselves.
func (c *config) raw() bool { return !c.http2 && c.keepAlive && c.proxy == nil }

// userAgent is our User-Agent header.
const userAgent = "carronade"

// head makes the head of a request to a base, with a body of size bytes.
func (c *config) head(base string, size int) []byte {
	h := make([]byte, 0, 512)
	add := func(parts ...string) {
		for _, p := range parts {
			h = append(h, p...)
		}
		h = append(h, '\r', '\n')
	}
	add("POST ", c.prefix, c.bodyPool.source.Path(), c.query, " HTTP/1.1")
	add("Host: ", base)
	if !slices.ContainsFunc(c.fields, func(f web.Field) bool { return f.Name == "User-Agent" }) {
		add("User-Agent: ", userAgent)
	}
	add("Content-Type: ", c.bodyPool.source.ContentType())
	if c.bodyPool.level > 0 {
		add("Content-Encoding: gzip")
	}
	for _, f := range c.fields {
		add(f.Name, ": ", f.Value)
	}
	add("Content-Length: ", strconv.Itoa(size))
	add()
	return h
}
