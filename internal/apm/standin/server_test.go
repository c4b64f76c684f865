package standin

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"carronade/internal/apm/wire"
	"carronade/internal/standin"
	"carronade/test/testkit/assert"
)

func start(t testing.TB, o Options) *Server {
	t.Helper()
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	if o.Log == nil {
		o.Log = t.Output()
	}
	s := assert.Value(Start(o))(t)
	t.Cleanup(func() { s.Close() })
	return s
}

func bodyOf(t testing.TB, m wire.Makeup, n uint64) *wire.Body {
	t.Helper()
	mk := assert.Value(wire.NewMaker(m, 1))(t)
	b := mk.Make(n)
	b.Stamp(wire.NewRun(1), n, time.Now().UnixMicro())
	return b
}

// post sends a body and returns status and answer; headers are name, value, ...
func post(t testing.TB, url string, body []byte, headers ...string) (int, string) {
	t.Helper()
	r := assert.Value(http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body)))(t)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp := assert.Value(http.DefaultClient.Do(r))(t) //nolint:bodyclose // it is closed below
	defer resp.Body.Close()
	text := assert.Value(io.ReadAll(resp.Body))(t)
	return resp.StatusCode, strings.TrimSpace(string(text))
}

func TestTakesEveryProtocol(t *testing.T) {
	t.Parallel()
	for _, p := range []wire.Protocol{wire.IntakeV2, wire.RUMV2, wire.RUMV3, wire.V1} {
		for _, spans := range []int{0, 3} {
			t.Run(p.String(), func(t *testing.T) {
				s := start(t, Options{V1: p == wire.V1})
				m := wire.Makeup{Protocol: p, Events: wire.Range{Min: 5, Max: 5}, Spans: wire.Range{Min: spans, Max: spans}, Frames: wire.Range{Min: 2, Max: 2}}
				b := bodyOf(t, m, 0)
				z := assert.Value(b.Gzip(6))(t)
				var deflated bytes.Buffer
				zw := zlib.NewWriter(&deflated)
				_, _ = zw.Write(b.Bytes)
				_ = zw.Close()
				url := "http://" + s.Addr() + p.Path(m.Errors())
				code, text := post(t, url, b.Bytes)
				assert.True(t, code == 202 && text == "", "plain: got %d %q, want 202 and nothing", code, text)
				code, text = post(t, url, z.Bytes, "Content-Encoding", "gzip")
				assert.True(t, code == 202 && text == "", "gzip: got %d %q, want 202 and nothing", code, text)
				code, text = post(t, url, deflated.Bytes(), "Content-Encoding", "deflate")
				assert.True(t, code == 202 && text == "", "deflate: got %d %q, want 202 and nothing", code, text)
				c := s.Counts()
				if got, want := c.Accepted, uint64(3*b.Events()); got != want || c.Requests != 3 || c.Plain != uint64(3*b.Plain) || c.Bytes != uint64(b.Plain+len(z.Bytes)+deflated.Len()) {
					t.Errorf("got %+v, want %d accepted", c, want)
				}
				assert.True(t, c.Spans == uint64(3*b.Counts[wire.Span]) && c.Errors == uint64(3*b.Counts[wire.Error]),
					"got %+v, want 3 times %v", c, b.Counts)
			})
		}
	}
}

const meta = `{"metadata":{"service":{"name":"a","agent":{"name":"b","version":"1"}}}}` + "\n"

const goodSpan = `{"span":{"id":"1","trace_id":"2","parent_id":"3","name":"n","type":"t","start":1,"duration":1}}` + "\n"

func TestAnswers(t *testing.T) {
	t.Parallel()
	big := `{"span":"` + strings.Repeat("x", 400000) + `"}` + "\n"
	spanOf := func(length int) string { // with the end of the line
		return strings.Replace(goodSpan, `"n"`, `"n","more":"`+strings.Repeat("x", length-len(goodSpan)-len(`,"more":""`))+`"`, 1)
	}
	metricset := func(more string) string {
		return `{"metricset":{"samples":{"span.self_time.count":{"value":1}}` + more + "}}\n"
	}
	control := func(text string) string { return strings.Replace(goodSpan, `"n"`, `"`+text+`"`, 1) }
	var short bytes.Buffer
	zw := gzip.NewWriter(&short)
	_, _ = zw.Write([]byte(meta + goodSpan))
	_ = zw.Flush() // and no end
	tests := []struct {
		name, path, body string
		headers          []string
		code             int
		want             []string
	}{
		{"verbose", "/intake/v2/events?verbose", meta + goodSpan + "\n" + goodSpan, nil, 202, []string{`{"accepted":2}`}},
		{"nothing", "/intake/v2/events?verbose", "", nil, 202, []string{`"accepted":0`}},
		{"metadata alone", "/intake/v2/events?verbose", meta, nil, 202, []string{`"accepted":0`}},
		{"metadata without the end of its line", "/intake/v2/events", strings.TrimSpace(meta), nil, 400, []string{`"accepted":0`, "EOF while reading metadata"}},
		{"an empty line before the metadata", "/intake/v2/events", "\n" + meta + goodSpan, nil, 400, []string{`"accepted":0`}},
		{"a line of white space", "/intake/v2/events", meta + " \r\n" + goodSpan, nil, 400, []string{`"accepted":1`, "not JSON"}},
		{"no metadata", "/intake/v2/events", goodSpan, nil, 400, []string{`"accepted":0`, `\"metadata\" or \"m\" required`, `"document":"{\"span\"`}},
		{"bad metadata", "/intake/v2/events", `{"metadata":{"service":{"name":"a/b","agent":{"name":"b","version":"1"}}}}` + "\n" + goodSpan, nil, 400, []string{`"accepted":0`, "metadata.service.name"}},
		{"text after objects", "/intake/v2/events?verbose", strings.ReplaceAll(meta+goodSpan, "\n", "`\n"), nil, 202, []string{`{"accepted":1}`}},
		{"v2 and RUM v3 in one request", "/intake/v3/rum/events?verbose", meta + goodSpan + `{"e":{"id":"1","ex":{"mg":"m"}}}`, nil, 202, []string{`{"accepted":2}`}},
		{"metadata of RUM v3 for v2", "/intake/v2/events?verbose", `{"m":{"se":{"n":"a","a":{"n":"b","ve":"1"}}}}` + "\n" + goodSpan, nil, 202, []string{`{"accepted":1}`}},
		{"some bad", "/intake/v2/events", meta + goodSpan + `{"span":{"id":1}}` + "\n" + goodSpan + `{"zebra":{}}`, nil, 400, []string{`"accepted":2`, "span.id: want a string", "did not recognize object type", `zebra`}},
		{"too large", "/intake/v2/events", meta + goodSpan + big + goodSpan, nil, 400, []string{`"accepted":2`, "event exceeded the permitted size"}},
		{"not JSON", "/intake/v2/events", meta + "{\"span\":\n" + goodSpan, nil, 400, []string{`"accepted":1`, "not JSON"}},
		{"not gzip", "/intake/v2/events", meta, []string{"Content-Encoding", "gzip"}, 400, []string{"gzip"}},
		{"half a gzip", "/intake/v2/events", short.String(), []string{"Content-Encoding", "gzip"}, 500, []string{`"accepted":1`, "unexpected EOF"}},
		{"a gzip without metadata", "/intake/v2/events", zipped(t, meta)[:20], []string{"Content-Encoding", "gzip"}, 400, []string{`"accepted":0`, "unexpected EOF"}},
		{"a line as long as possible", "/intake/v2/events?verbose", meta + spanOf(307200), nil, 202, []string{`{"accepted":1}`}},
		{"a byte more", "/intake/v2/events", meta + spanOf(307201) + goodSpan, nil, 400, []string{`"accepted":1`, "exceeded"}},
		{"a control character", "/intake/v2/events", meta + control("a\x01b"), nil, 400, []string{`"accepted":0`, "control character"}},
		{"a control character after an escape", "/intake/v2/events?verbose", meta + control("a\\n\x01\tb"), nil, 202, []string{`{"accepted":1}`}},
		{"a body of a letter", "/intake/v2/events?verbose", "x", nil, 202, []string{`{"accepted":0}`}},
		{"a body of two letters", "/intake/v2/events?verbose", "{}", nil, 202, []string{`{"accepted":0}`}},
		{"a body of three", "/intake/v2/events", "{}\n", nil, 400, []string{`"accepted":0`}},
		{"a metricset with a span", "/intake/v2/events?verbose", meta + metricset(`,"span":{"type":"a"}`), nil, 202, []string{`{"accepted":1}`}},
		{"with a transaction", "/intake/v2/events?verbose", meta + metricset(`,"transaction":{"type":"a"}`), nil, 202, []string{`{"accepted":0}`}},
		{"with both", "/intake/v2/events?verbose", meta + metricset(`,"transaction":{"name":"b"},"span":{"subtype":"c"}`), nil, 202, []string{`{"accepted":1}`}},
		{"with both and other samples", "/intake/v2/events?verbose", meta + strings.Replace(metricset(`,"transaction":{"name":"b"},"span":{"type":"c"}`), "count", "n", 1), nil, 202, []string{`{"accepted":0}`}},
		{"with nothing of a transaction", "/intake/v2/events?verbose", meta + metricset(`,"transaction":{"name":null}`), nil, 202, []string{`{"accepted":1}`}},
		{
			"metricsets of RUM v3", "/intake/v3/rum/events?verbose", meta + `{"x":{"id":"1","tid":"2","t":"t","d":1,"yc":{"sd":0},"me":[` +
				`{"sa":{"ysc":{"v":1}}},{"y":{"t":"a"},"sa":{"ysc":{"v":1}}},{"y":{"su":"a"},"sa":{"yss":{"v":1}}}]}}`, nil, 202, []string{`{"accepted":3}`},
		},
		{"said to be brotli", "/intake/v2/events?verbose", meta + goodSpan, []string{"Content-Encoding", "br"}, 202, []string{`"accepted":1`}},
		{"brotli", "/intake/v2/events", "\x0b\x02\x80hello\x03", []string{"Content-Encoding", "br"}, 400, []string{"EOF while reading metadata"}},
		{"gzip without a header", "/intake/v2/events?verbose", zipped(t, meta+goodSpan), nil, 202, []string{`"accepted":1`}},
		{"another type", "/intake/v2/events", meta, []string{"Content-Type", "application/json"}, 400, []string{"invalid content type: 'application/json'"}},
		{"the type", "/intake/v2/events", meta, []string{"Content-Type", "application/x-ndjson; charset=utf-8"}, 202, nil},
		{"v1 of another type", "/v1/errors", "{}", []string{"Content-Type", "application/x-ndjson"}, 400, []string{`"error":"invalid content type`}},
		{"a very long kind", "/intake/v2/events", meta + `{"` + strings.Repeat("k", 9000) + `":{}}`, nil, 400, []string{"did not recognize object type"}},
		{"a very long name", "/intake/v2/events", meta + `{"span":{"` + strings.Repeat("\u00e4", 9000) + `":{"a":}}}`, nil, 400, []string{"not JSON"}},
		{"a very long label", "/intake/v2/events", meta + `{"span":{"context":{"tags":{"` + strings.Repeat("\u00e4", 9000) + `":[]}}}}`, nil, 400, []string{"span.context.tags.\u00e4\u00e4", "...: want"}},
		{"v1 bad", "/v1/transactions", `{"process":{"pid":1}}`, nil, 400, []string{`"error":"validation error: service: required`}},
		{"another path", "/intake/v9/events", meta, nil, 404, nil},
	}
	s := start(t, Options{V1: true})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			code, text := post(t, "http://"+s.Addr()+tt.path, []byte(tt.body), tt.headers...)
			assert.Equal(t, code, tt.code, "%.300s", text)
			for _, w := range tt.want {
				assert.True(t, strings.Contains(text, w), "got %.600s, want %q in it", text, w)
			}
			limit := 2*maxDocument + 600
			assert.True(t, len(text) <= limit, "an answer of %d bytes, want at most %d", len(text), limit)
		})
	}
}

func zipped(t testing.TB, s string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	assert.Value(w.Write([]byte(s)))(t)
	assert.OK(t, w.Close())
	return b.String()
}

// Like the real server, it closes a connection after answering an error.
func TestErrorsEndConnections(t *testing.T) {
	t.Parallel()
	s := start(t, Options{})
	for body, want := range map[string]bool{meta + goodSpan: false, meta + "{}": true} {
		resp, err := http.Post("http://"+s.Addr()+"/intake/v2/events", "application/x-ndjson", strings.NewReader(body)) //nolint:noctx // a test
		assert.OK(t, err)
		resp.Body.Close()
		assert.Equal(t, resp.Close, want, "whether %d closes the connection", resp.StatusCode)
	}
}

// What the server answers to other paths and methods.
func TestOtherRequests(t *testing.T) {
	t.Parallel()
	s := start(t, Options{})
	off := start(t, Options{NoRUM: true})
	for _, tt := range []struct {
		s                          *Server
		method, path, header, body string
		code                       int
		want                       string // in the answer, or NAME: VALUE of its headers
	}{
		{s, "POST", "/v1/transactions", "", "{}", 404, ""},
		{s, "POST", "/v1/errors", "", "{}", 404, ""},
		{s, "OPTIONS", "/intake/v3/rum/events", "Origin: http://shop", "", 200, "Access-Control-Allow-Origin: http://shop"},
		{off, "OPTIONS", "/intake/v2/rum/events", "Origin: http://shop", "", 200, "Access-Control-Allow-Methods: POST, OPTIONS"},
		{s, "POST", "/intake/v2/rum/events", "Origin: http://shop", meta, 202, "Access-Control-Allow-Origin: http://shop"},
		{s, "OPTIONS", "/intake/v2/events", "Origin: http://shop", "", 400, "only POST"},
		{s, "GET", "/config/v1/agents?service.name=a", "", "", 200, `Etag: "-"`},
		{s, "GET", "/config/v1/agents?service.name=a", `If-None-Match: "-"`, "", 304, "Cache-Control: max-age=30, must-revalidate"},
		{s, "GET", "/config/v1/agents", "", "", 400, "service.name is required"},
		{s, "POST", "/config/v1/agents", "", `{"service":{"name":"a"}}`, 200, "{}"},
		{s, "POST", "/config/v1/agents", "", `{"service":`, 400, "unexpected EOF"},
		{s, "PUT", "/config/v1/agents", "", "", 405, "PUT"},
		{s, "OPTIONS", "/config/v1/rum/agents", "Origin: http://shop", "", 200, "Access-Control-Expose-Headers: Etag"},
		{s, "GET", "/config/v1/rum/agents?service.name=a", "", "", 200, "{}"},
		{off, "GET", "/config/v1/rum/agents?service.name=a", "", "", 403, "RUM endpoint is disabled"},
	} {
		req := assert.Value(http.NewRequestWithContext(t.Context(), tt.method, "http://"+tt.s.Addr()+tt.path, strings.NewReader(tt.body)))(t)
		if name, value, ok := strings.Cut(tt.header, ": "); ok {
			req.Header.Set(name, value)
		}
		resp := assert.Value(http.DefaultClient.Do(req))(t) //nolint:bodyclose // it is closed below
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		got := string(text)
		for name := range resp.Header {
			got += "\n" + name + ": " + resp.Header.Get(name)
		}
		assert.True(t, resp.StatusCode == tt.code && strings.Contains(got, tt.want), "%s %s: %d %s, want %d %s", tt.method, tt.path, resp.StatusCode, got, tt.code, tt.want)
	}
}

func TestOnlyPost(t *testing.T) {
	t.Parallel()
	s := start(t, Options{V1: true})
	for path, want := range map[string]int{"/intake/v2/events": 400, "/intake/v3/rum/events": 400, "/v1/errors": 405} {
		resp, err := http.Get("http://" + s.Addr() + path) //nolint:noctx // a test
		assert.OK(t, err)
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		assert.True(t, resp.StatusCode == want && strings.Contains(string(text), "only POST requests are supported"),
			"%s: got %d %s, want %d", path, resp.StatusCode, text, want)
	}
}

// An endless body does not delay the answer, whether its bytes arrive as fast as possible or not at all.
func TestBodyWithoutEnd(t *testing.T) {
	t.Parallel()
	for _, flood := range []bool{false, true} {
		for _, rules := range [][]ErrorRule{nil, {{Name: "throttled", What: 429, Share: 1}}} {
			s := start(t, Options{Errors: rules})
			c, err := net.Dial("tcp", s.Addr()) //nolint:noctx // a test
			assert.OK(t, err)
			defer c.Close()
			const head = "POST /intake/v2/events HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n{}\n\n\r\n"
			assert.Value(io.WriteString(c, head))(t)
			if flood {
				go func() {
					chunk := []byte("10000\r\n" + strings.Repeat("x", 1<<16) + "\r\n")
					for {
						if _, err := c.Write(chunk); err != nil {
							return
						}
					}
				}()
			}
			_ = c.SetReadDeadline(time.Now().Add(time.Minute))
			resp := assert.Value(http.ReadResponse(bufio.NewReader(c), nil))(t, "flood %v", flood) //nolint:bodyclose // it is closed below
			resp.Body.Close()
			assert.True(t, resp.StatusCode >= 400, "flood %v: got %d, want an error", flood, resp.StatusCode)
			got := s.Counts().Bytes
			assert.True(t, got <= 2*maxUnread, "flood %v: %d bytes read, want no more than %d", flood, got, 2*maxUnread)
		}
	}
}

// A request that does not fit into the queue does not take room from others.
func TestQueueRoomIsExact(t *testing.T) {
	t.Parallel()
	q := &queue{capacity: 10}
	var tries atomic.Int64
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for ; ; tries.Add(1) {
			select {
			case <-stop:
				return
			default:
			}
			if q.reserve(11) {
				t.Error("the queue accepted more than fits")
				return
			}
		}
	}()
	for tries.Load() < 500000 && !t.Failed() {
		if !q.reserve(1) {
			t.Error("the empty queue is full")
			break
		}
		q.waiting.Add(-1)
	}
	close(stop)
	<-stopped
}

func TestAtMostFiveErrors(t *testing.T) {
	t.Parallel()
	s := start(t, Options{})
	_, text := post(t, "http://"+s.Addr()+"/intake/v2/events", []byte(meta+strings.Repeat("{\"span\":{}}\n", 20)))
	var a answer
	err := json.Unmarshal([]byte(text), &a)
	assert.True(t, err == nil && len(a.Errors) == maxErrors, "got %d errors, want %d: %v", len(a.Errors), maxErrors, err)
	assert.Equal(t, s.Counts().Invalid, 20, "invalid")
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	key := "ApiKey " + base64.StdEncoding.EncodeToString([]byte("id:canary-key"))
	for _, tt := range []struct {
		name, path, auth string
		noRUM            bool
		code             int
	}{
		{"none", "/intake/v2/events", "", false, 403},
		{"none, without RUM", "/intake/v2/events", "", true, 401},
		{"token", "/intake/v2/events", "Bearer canary-token", false, 202},
		{"wrong token", "/intake/v2/events", "Bearer canary-tokem", false, 401},
		{"key", "/intake/v2/events", key, true, 202},
		{"wrong key", "/intake/v2/events", "ApiKey " + base64.StdEncoding.EncodeToString([]byte("id:other")), false, 401},
		{"no key", "/intake/v2/events", "ApiKey !", false, 401},
		{"RUM without", "/intake/v2/rum/events", "", false, 202},
		{"RUM refused", "/intake/v2/rum/events", "Bearer canary-token", true, 403},
		{"v1", "/v1/errors", "", true, 401},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var words bytes.Buffer
			s := start(t, Options{V1: true, SecretToken: "canary-token", APIKeys: []Secret{"id:canary-key"}, NoRUM: tt.noRUM, Log: &words})
			code, text := post(t, "http://"+s.Addr()+tt.path, []byte(meta), "Authorization", tt.auth)
			assert.Equal(t, code, tt.code, "%s", text)
			assert.True(t, !strings.Contains(text+words.String(), "canary"), "a secret is shown: %s %s", text, words.String())
			got := s.Counts().Unauthorized
			assert.True(t, (got == 1) == (code > 400), "got %d unauthorized", got)
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Addr()+"/", nil)
			r.Header.Set("Authorization", tt.auth)
			resp := assert.Value(http.DefaultClient.Do(r))(t) //nolint:bodyclose // it is closed below
			about, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			known := strings.HasSuffix(tt.auth, "token") || tt.auth == key || tt.name == "RUM refused"
			assert.True(t, resp.StatusCode == http.StatusOK && (len(about) > 0) == known, "GET /: got %d %q", resp.StatusCode, about)
		})
	}
}

func TestQueueFull(t *testing.T) {
	t.Parallel()
	s := start(t, Options{V1: true, Queue: 3, Drain: 0.001})
	code, text := post(t, "http://"+s.Addr()+"/intake/v2/events", []byte(meta+strings.Repeat(goodSpan, 5)))
	assert.True(t, code == 503 && strings.Contains(text, `"accepted":3`) && strings.Contains(text, "queue is full"),
		"got %d %s, want 503 after 3", code, text)
	c := s.Counts()
	assert.True(t, c.Waiting == 3 && c.Full == 1 && c.Accepted == 3, "got %+v, want 3 waiting", c)
	code, text = post(t, "http://"+s.Addr()+"/v1/errors", bodyOf(t, wire.Makeup{Protocol: wire.V1, Events: wire.Range{Min: 1, Max: 1}}, 0).Bytes)
	assert.True(t, code == 503 && text == `{"error":"queue is full"}`, "got %d %s, want 503", code, text)
}

func TestErrorRules(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		rule string
		code int
		want string
	}{
		{"queue-full@100%", 503, "queue is full"},
		{"throttled@100%", 429, "too many requests"},
		{"418@100%", 418, "teapot"},
		{"event@100%", 400, "refused by a rule"},
		{"unauthorized@100%", 401, ""},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			r := assert.Value(ParseErrorRule(tt.rule))(t)
			s := start(t, Options{Errors: []ErrorRule{r}})
			code, text := post(t, "http://"+s.Addr()+"/intake/v2/events", []byte(meta+goodSpan))
			assert.True(t, code == tt.code && strings.Contains(text, tt.want), "got %d %s, want %d with %q", code, text, tt.code, tt.want)
		})
	}
	t.Run("reset", func(t *testing.T) {
		s := start(t, Options{Errors: []ErrorRule{{Name: "reset", What: standin.StatusReset, Share: 1}}})
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.Addr()+"/intake/v2/events", strings.NewReader(meta))
		if resp, err := http.DefaultClient.Do(r); err == nil {
			resp.Body.Close()
			t.Errorf("got %d, want no answer", resp.StatusCode)
		}
	})
	t.Run("share", func(t *testing.T) {
		s := start(t, Options{Errors: []ErrorRule{{Name: "event", What: standin.StatusEvent, Share: 0.3}}})
		_, _ = post(t, "http://"+s.Addr()+"/intake/v2/events", []byte(meta+strings.Repeat(goodSpan, 2000)))
		c := s.Counts()
		assert.True(t, c.Invalid >= 500 && c.Invalid <= 700 && c.Invalid+c.Accepted == 2000, "got %+v, want about 600 of 2000 refused", c)
	})
	for _, bad := range []string{"x", "x@1%", "200@1%", "queue-full@101%", "queue-full@"} {
		r, err := ParseErrorRule(bad)
		assert.True(t, err != nil || (Options{Errors: []ErrorRule{r}}).Check() != nil, "rule %q is accepted", bad)
	}
}

func TestAboutAndVars(t *testing.T) {
	t.Parallel()
	s := start(t, Options{})
	_, _ = post(t, "http://"+s.Addr()+"/intake/v2/events", []byte(meta+goodSpan))
	for path, want := range map[string]string{"/": `"publish_ready":true`, "/debug/vars": `"libbeat.output.events.active":0`, "/config/v1/agents?service.name=a": `{}`} {
		resp, err := http.Get("http://" + s.Addr() + path) //nolint:noctx // a test
		assert.OK(t, err)
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		assert.True(t, resp.StatusCode == http.StatusOK && strings.Contains(string(text), want),
			"%s: got %d %s, want %s", path, resp.StatusCode, text, want)
	}
}

func TestOptionsRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		o    Options
	}{
		{"address", Options{Listen: "nowhere"}},
		{"discard with a token", Options{Discard: true, SecretToken: "x"}},
		{"drain without a queue", Options{Drain: 5}},
		{"a password in an address", Options{Index: "http://u:p@h"}},
		{"not a URL", Options{Index: "h:9200"}},
		{"a login without an index", Options{IndexAuth: "a:b"}},
		{"losing without an index", Options{Lose: 1}},
		{"half of TLS", Options{TLS: tlsFiles("x", "")}},
		{"a key without its id", Options{APIKeys: []Secret{"x"}}},
	} {
		assert.True(t, tt.o.Check() != nil, "%s: it is accepted", tt.name)
	}
	_, err := ParseSecret("hunter2")
	assert.True(t, err != nil && !strings.Contains(err.Error(), "hunter2"), "a plain secret: got %v, want an error that does not show it", err)
}
