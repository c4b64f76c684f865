package standin

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"carronade/internal/apm/wire"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// A fakeIndex answers an indexer as Elasticsearch does.
type fakeIndex struct {
	mu          sync.Mutex
	docs        map[string][]map[string]any
	template    string
	status      func(n int) int // of the n-th document received
	loseAnswers int             // number of answers that are lost after the documents were stored
	ids         map[string]bool
	auth        []string
	received    int
}

func (f *fakeIndex) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.auth = append(f.auth, r.Header.Get("Authorization"))
	if strings.HasPrefix(r.URL.Path, "/_index_template/") {
		b, _ := io.ReadAll(r.Body)
		f.template = string(b)
		fmt.Fprint(w, `{"acknowledged":true}`)
		return
	}
	var items []string
	lines := bufio.NewScanner(r.Body)
	lines.Buffer(nil, 8<<20)
	for lines.Scan() {
		var action struct {
			Create struct {
				Index string `json:"_index"`
				ID    string `json:"_id"`
			}
		}
		if err := json.Unmarshal(lines.Bytes(), &action); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		lines.Scan()
		var doc map[string]any
		if err := json.Unmarshal(lines.Bytes(), &doc); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		status := 201
		if f.status != nil {
			status = f.status(f.received)
		}
		f.received++
		if status == 201 && f.ids[action.Create.ID] {
			status = 409
		}
		if status == 201 {
			f.ids[action.Create.ID] = true
			f.docs[action.Create.Index] = append(f.docs[action.Create.Index], doc)
		}
		items = append(items, fmt.Sprintf(`{"create":{"status":%d,"error":{"reason":"because"}}}`, status))
	}
	if f.loseAnswers--; f.loseAnswers >= 0 {
		panic(http.ErrAbortHandler)
	}
	fmt.Fprintf(w, `{"items":[%s]}`, strings.Join(items, ","))
}

func indexAt(t *testing.T, f *fakeIndex, o Options) (*Server, *bytes.Buffer) {
	t.Helper()
	f.docs, f.ids = map[string][]map[string]any{}, map[string]bool{}
	ts := httptest.NewServer(f)
	t.Cleanup(ts.Close)
	var words bytes.Buffer
	o.Index, o.Log = ts.URL, &words
	return start(t, o), &words
}

func at(doc map[string]any, path string) any {
	var v any = doc
	for name := range strings.SplitSeq(path, ".") {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[name]
	}
	return v
}

// Text after the objects of a request keeps no document from the index.
func TestIndexesDespiteTextAfterObjects(t *testing.T) {
	t.Parallel()
	f := &fakeIndex{}
	s, _ := indexAt(t, f, Options{V1: true})
	v1 := bodyOf(t, wire.Makeup{Protocol: wire.V1, Events: wire.Range{Min: 1, Max: 1}, Spans: wire.Range{Min: 1, Max: 1}}, 0)
	for path, body := range map[string]string{
		"/intake/v2/events": strings.ReplaceAll(meta+goodSpan, "\n", "`\n"),
		"/v1/transactions":  string(v1.Bytes) + "}",
	} {
		code, text := post(t, "http://"+s.Addr()+path, []byte(body))
		assert.True(t, code == 202, "%s: got %d %s", path, code, text)
	}
	s.Close()
	c := s.Counts()
	assert.True(t, c.Indexed == uint64(1+v1.Events()) && c.Failed == 0, "got %+v, want %d indexed", c, 1+v1.Events())
	f.mu.Lock()
	defer f.mu.Unlock()
	docs := f.docs["traces-apm-default"]
	assert.True(t, len(docs) == 1 && at(docs[0], "service.name") == "a", "got %v, want a span of service a", docs)
}

// Every event makes one document, in the stream of its kind, with the ids that connect it to others.
func TestIndexes(t *testing.T) {
	t.Parallel()
	for _, p := range []wire.Protocol{wire.IntakeV2, wire.RUMV2, wire.RUMV3, wire.V1} {
		t.Run(p.String(), func(t *testing.T) {
			f := &fakeIndex{}
			s, _ := indexAt(t, f, Options{V1: p == wire.V1, IndexAuth: "elastic:canary"})
			m := wire.Makeup{Protocol: p, Events: wire.Range{Min: 30, Max: 30}, Spans: wire.Range{Min: 2, Max: 2}, Frames: wire.Range{Min: 1, Max: 1}}
			switch p {
			case wire.IntakeV2, wire.RUMV2:
				m.Mix = [wire.Kinds]int{4, 1, 2, 2, 2}
			case wire.RUMV3:
				m.Mix = [wire.Kinds]int{wire.Transaction: 2, wire.Error: 1}
			}
			b := bodyOf(t, m, 0)
			before := time.Now()
			code, text := post(t, "http://"+s.Addr()+p.Path(false), b.Bytes)
			assert.Must(t, code == 202, "got %d %s", code, text)
			s.Close()
			c := s.Counts()
			assert.True(t, c.Indexed == uint64(b.Events()) && c.Waiting == 0 && c.Failed == 0, "got %+v, want %d indexed", c, b.Events())
			f.mu.Lock()
			defer f.mu.Unlock()
			got := wire.Counts{}
			kinds := map[string]wire.Kind{"transaction": wire.Transaction, "span": wire.Span, "error": wire.Error, "metric": wire.Metricset, "log": wire.Log}
			spanOf := map[string]bool{}
			for index, docs := range f.docs {
				if p == wire.V1 {
					if !strings.HasPrefix(index, "apm-6.8.23-transaction-2") && !strings.HasPrefix(index, "apm-6.8.23-span-2") && !strings.HasPrefix(index, "apm-6.8.23-error-2") {
						t.Errorf("index %s", index)
					}
				} else if !strings.HasPrefix(index, "traces-apm") && !strings.HasPrefix(index, "logs-apm") && !strings.HasPrefix(index, "metrics-apm") {
					t.Errorf("index %s", index)
				}
				for _, d := range docs {
					event, _ := at(d, "processor.event").(string)
					if at(d, "data_stream.dataset") == "apm.app."+fmt.Sprint(at(d, "service.name")) && event == "" {
						event = "log"
						for _, name := range []string{"message", "log.level", "log.origin.file.name", "trace.id", "transaction.id", "process.thread.name"} {
							v, _ := at(d, name).(string)
							assert.True(t, v != "", "a log without %s: %v", name, d)
						}
					}
					kind, ok := kinds[event]
					assert.True(t, ok, "a document of no kind: %v", d)
					got[kind]++
					when, err := time.Parse(time.RFC3339Nano, at(d, "@timestamp").(string))
					assert.True(t, err == nil && !when.After(before.Add(time.Hour)) && !when.Before(before.Add(-2*time.Hour)),
						"a %s at %v", event, when)
					for _, name := range []string{"service.name", "agent.name"} {
						v, _ := at(d, name).(string)
						assert.True(t, v != "", "a %s without %s: %v", event, name, d)
					}
					if event == "transaction" {
						spanOf[at(d, "transaction.id").(string)] = true
						v, _ := at(d, "transaction.duration.us").(float64)
						assert.True(t, v > 0, "a transaction without duration: %v", d)
					}
				}
			}
			assert.Equal(t, got, b.Counts, "documents")
			for _, d := range f.docs["traces-apm-default"] {
				if at(d, "processor.event") == "span" && m.Mix[wire.Span] == 0 && !spanOf[fmt.Sprint(at(d, "transaction.id"))] {
					t.Errorf("a span without a transaction: %v", d)
				}
			}
			assert.Equal(t, f.auth[0], "Basic ZWxhc3RpYzpjYW5hcnk=", "authorization")
			assert.True(t, json.Valid([]byte(f.template)), "the template is not JSON: %s", f.template)
		})
	}
}

// Logs of any form become documents, in the stream of their service, and those with an error in that of errors.
func TestLogDocuments(t *testing.T) {
	meta := &metadata{service: "cart", shared: map[string]any{}}
	now := time.Date(2026, 11, 21, 13, 0, 0, 0, time.UTC)
	for _, tt := range []struct{ name, in, index, level, at string }{
		{"names with dots", `{"@timestamp":1795265501123456,"log.level":"INFO","message":"m"}`, "logs-apm.app.cart-default", "INFO", "2026-11-21T12:51:41.123Z"},
		{"nested", `{"@timestamp":"2026-11-21T13:00:00+01","log.level":"INFO","log":{"level":"WARN"}}`, "logs-apm.app.cart-default", "WARN", "2026-11-21T12:00:00.000Z"},
		{"another service, no time", `{"service":{"name":"Mail 2"},"log.level":"INFO","log":"text"}`, "logs-apm.app.mail_2-default", "INFO", "2026-11-21T13:00:00.000Z"},
		{"an error", `{"log.level":"ERROR","error":{"type":"T"}}`, "logs-apm.error-default", "ERROR", "2026-11-21T13:00:00.000Z"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			docs := documents(meta, "log", []byte(`{"log":`+tt.in+`}`), now)
			assert.Must(t, len(docs) == 1, "%d documents, want 1", len(docs))
			var d map[string]any
			assert.OK(t, json.Unmarshal(docs[0].source, &d))
			assert.True(t, docs[0].index == tt.index && at(d, "log.level") == tt.level && at(d, "@timestamp") == tt.at,
				"got %s in %s", docs[0].source, docs[0].index)
		})
	}
}

// Throttled documents are retried, refused ones fail, and those to be lost are lost. The sum is the number of accepted events.
func TestIndexAccountsForAll(t *testing.T) {
	t.Parallel()
	f := &fakeIndex{status: func(n int) int {
		switch {
		case n%10 == 3:
			return 400
		case n%10 == 7 && n < 100:
			return 429
		}
		return 201
	}}
	s, words := indexAt(t, f, Options{Lose: 5})
	b := bodyOf(t, wire.Makeup{Events: wire.Range{Min: 105, Max: 105}}, 0)
	code, text := post(t, "http://"+s.Addr()+"/intake/v2/events", b.Bytes)
	assert.Must(t, code == 202, "got %d %s", code, text)
	s.Close()
	c := s.Counts()
	assert.True(t, c.Lost == 5 && c.Failed == 11 && c.Indexed == 89 && c.Waiting == 0 && c.Accepted == 105,
		"got %+v, want 5 lost, 11 failed, 89 indexed", c)
	assert.True(t, strings.Contains(words.String(), "because"), "the log does not say why: %s", words)
}

// A document that is retried because its answer was lost is indexed once.
func TestIndexHasNoDuplicates(t *testing.T) {
	t.Parallel()
	f := &fakeIndex{loseAnswers: 3}
	s, _ := indexAt(t, f, Options{})
	b := bodyOf(t, wire.Makeup{Events: wire.Range{Min: 50, Max: 50}}, 0)
	code, text := post(t, "http://"+s.Addr()+"/intake/v2/events", b.Bytes)
	assert.Must(t, code == 202, "got %d %s", code, text)
	s.Close()
	f.mu.Lock()
	defer f.mu.Unlock()
	stored := 0
	for _, docs := range f.docs {
		stored += len(docs)
	}
	c := s.Counts()
	assert.True(t, c.Indexed == 50 && stored == 50 && c.Failed == 0 && c.Waiting == 0, "got %+v and %d documents, want 50", c, stored)
}

// While the index does not answer, the accepted events wait and the queue fills.
func TestIndexAway(t *testing.T) {
	t.Parallel()
	f := &fakeIndex{}
	var frozen sync.Mutex
	frozen.Lock()
	f.status = func(int) int {
		frozen.Lock()
		defer frozen.Unlock()
		return 201
	}
	s, _ := indexAt(t, f, Options{Queue: 10})
	code, text := post(t, "http://"+s.Addr()+"/intake/v2/events", bodyOf(t, wire.Makeup{Events: wire.Range{Min: 11, Max: 11}}, 0).Bytes)
	assert.True(t, code == 503 && strings.Contains(text, `"accepted":10`), "got %d %s, want 503 after 10", code, text)
	frozen.Unlock()
	testkit.Until(t, "all are indexed", func() bool { return s.Counts().Indexed == 10 })
	code, _ = post(t, "http://"+s.Addr()+"/intake/v2/events", []byte(meta+goodSpan))
	assert.Equal(t, code, 202, "afterwards")
}

func TestIndexRefusesToStart(t *testing.T) {
	t.Parallel()
	ts := testkit.HTTP(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusUnauthorized) })
	for name, url := range map[string]string{"unauthorized": ts.URL, "no server": "http://127.0.0.1:1"} {
		s, err := Start(Options{Listen: "127.0.0.1:0", Index: url, IndexAuth: "elastic:canary"})
		if err == nil {
			s.Close()
			t.Errorf("%s: it started", name)
		} else if strings.Contains(err.Error(), "canary") || !strings.Contains(err.Error(), "preparing the index") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// When the stand-in ends while a request waits for the index, the events of the request that were read are indexed.
func TestIndexEndsWithWhatWaits(t *testing.T) {
	t.Parallel()
	f := &fakeIndex{}
	var frozen sync.Mutex
	f.status = func(int) int {
		frozen.Lock()
		defer frozen.Unlock()
		return 201
	}
	frozen.Lock()
	s, _ := indexAt(t, f, Options{})
	var wg sync.WaitGroup
	wg.Go(func() {
		resp, err := http.Post("http://"+s.Addr()+"/intake/v2/events", "", strings.NewReader(meta+strings.Repeat(goodSpan, 20000))) //nolint:noctx // a test
		if err == nil {
			resp.Body.Close()
		}
	})
	testkit.Until(t, "the queue is full", func() bool { return s.Counts().Waiting > indexQueueLength })
	wg.Go(func() { s.Close() })
	wg.Go(func() { <-s.ended; frozen.Unlock() })
	wg.Wait()
	c := s.Counts()
	assert.True(t, c.Failed == 0 && c.Waiting == 0 && c.Accepted == c.Indexed && c.Accepted > indexQueueLength, "got %+v, want all accepted events indexed", c)
}

// When the stand-in ends while a request is being read, the counts include its events.
func TestIndexEndsUnderLoad(t *testing.T) {
	t.Parallel()
	f := &fakeIndex{}
	s, _ := indexAt(t, f, Options{})
	b := bodyOf(t, wire.Makeup{Events: wire.Range{Min: 200, Max: 200}}, 0)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				resp, err := http.Post("http://"+s.Addr()+"/intake/v2/events", "", bytes.NewReader(b.Bytes)) //nolint:noctx // a test
				if err != nil {
					return
				}
				resp.Body.Close()
			}
		})
	}
	testkit.Until(t, "some are indexed", func() bool { return s.Counts().Indexed > 1000 })
	s.Close()
	wg.Wait()
	c := s.Counts()
	assert.True(t, c.Waiting == 0 && c.Failed == 0 && c.Accepted == c.Indexed, "got %+v at the end, want all accepted events indexed", c)
	failed := c.Failed
	late := []byte(strings.TrimSpace(goodSpan))
	assert.Value(s.accept(wire.Counts{wire.Span: 1}, readMetadata([]byte(meta)), "span", late))(t)
	got := s.Counts().Failed
	assert.True(t, got > failed, "got %d failed after a late event, want more than %d", got, failed)
	testkit.Until(t, "each event is indexed or failed", func() bool {
		c := s.Counts()
		return c.Waiting == 0 && c.Accepted == c.Indexed+c.Failed
	})
}

func TestMain(m *testing.M) {
	testkit.MostlyWaiting()
	os.Exit(testkit.SearchMain(m))
}

// A real OpenSearch accepts what is written: as many documents as events were accepted, except those that were lost on purpose.
func TestIndexesIntoOpenSearch(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts OpenSearch")
	}
	node := testkit.SharedSearch(t)
	s := start(t, Options{Index: node.URL, Lose: 7})
	want := -7
	for _, p := range []wire.Protocol{wire.IntakeV2, wire.RUMV2, wire.RUMV3, wire.V1} {
		m := wire.Makeup{Protocol: p, Events: wire.Range{Min: 100, Max: 100}, Spans: wire.Range{Min: 0, Max: 4}, Frames: wire.Range{Min: 0, Max: 3}}
		if p == wire.IntakeV2 {
			m.Mix = [wire.Kinds]int{4, 1, 2, 2}
		}
		for n := range uint64(5) {
			b := bodyOf(t, m, n)
			z := assert.Value(b.Gzip(9))(t)
			code, text := post(t, "http://"+s.Addr()+p.Path(false), z.Bytes, "Content-Encoding", "gzip")
			assert.Must(t, code == 202, "%v: got %d %s", p, code, text)
			want += b.Events()
		}
	}
	s.Close()
	c := s.Counts()
	assert.True(t, int(c.Indexed) == want && c.Failed == 0 && c.Lost == 7, "got %v, want %d indexed", c, want)
	get := func(path string) string {
		resp, err := http.Get(node.URL + path) //nolint:noctx // a test
		assert.OK(t, err)
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		return string(text)
	}
	get("/_refresh")
	var count struct{ Count int }
	err := json.Unmarshal([]byte(get("/traces-apm*,logs-apm*,metrics-apm*,apm-*/_count")), &count)
	assert.True(t, err == nil && count.Count == want, "OpenSearch counts %d (%v), want %d", count.Count, err, want)
	text := get("/_data_stream")
	assert.True(t, strings.Contains(text, `"traces-apm-default"`) && strings.Contains(text, templateName), "no data streams: %.300s", text)
	var found struct {
		Hits struct{ Total struct{ Value int } }
	}
	err = json.Unmarshal([]byte(get("/traces-apm*/_search?q=processor.event:transaction+AND+event.outcome:success&track_total_hits=true")), &found)
	assert.True(t, err == nil && found.Hits.Total.Value != 0, "no transaction is found by its outcome: %v", err)
}
