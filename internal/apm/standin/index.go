package standin

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"carronade/internal/standin"
)

// Bounds of indexing.
const (
	indexWriters     = 2
	bulkBytes        = 4 << 20
	bulkDocs         = 2000
	bulkLinger       = 200 * time.Millisecond
	indexQueueLength = 4096             // documents between requests and writers, at most
	indexTimeout     = 30 * time.Second // of one call
	indexEndTimeout  = 15 * time.Second // for documents that wait when the stand-in ends
	maxBackoff       = 5 * time.Second
)

// An indexer writes documents by _bulk, to data streams made by its own template, or for
// documents of v1 to the indices apm-*.
// It retries throttled documents; refused ones count as failed.
type indexer struct {
	base   string
	auth   string
	client *http.Client
	log    io.Writer
	done   func(events int) // called when this number of events no longer waits

	nonce   string        // prefix of the ids of this indexer's documents
	last    atomic.Uint64 // the last id
	mu      sync.RWMutex  // only end locks it for writing
	ended   bool
	docs    chan document
	ctx     context.Context
	cancel  context.CancelFunc
	writers sync.WaitGroup

	indexed, failed atomic.Uint64
	messages        atomic.Int32 // logged about failures so far
}

// The template makes data streams of the names that APM uses. The templates of a
// real installation have a higher priority. Stacks are stored and not indexed.
const (
	templateName = "carronade-standin-apm"
	template     = `{"index_patterns":["traces-apm*","logs-apm*","metrics-apm*"],"data_stream":{},"priority":50,
"template":{"settings":{"index.number_of_shards":1,"index.number_of_replicas":0},
"mappings":{"dynamic_templates":[{"texts":{"match_mapping_type":"string","mapping":{"type":"keyword","ignore_above":1024}}}],
"properties":{"@timestamp":{"type":"date"},"span":{"properties":{"stacktrace":{"type":"object","enabled":false}}},
"error":{"properties":{"exception":{"type":"object","enabled":false},"log":{"type":"object","enabled":false}}}}}}}`
)

func newIndexer(o Options, done func(int)) (*indexer, error) {
	x := &indexer{base: strings.TrimSuffix(o.Index, "/"), log: o.Log, done: done, docs: make(chan document, indexQueueLength), nonce: rand.Text()}
	switch a := string(o.IndexAuth); {
	case strings.HasPrefix(a, "ApiKey "):
		x.auth = a
	case a != "":
		x.auth = "Basic " + base64.StdEncoding.EncodeToString([]byte(a))
	}
	transport := &http.Transport{MaxIdleConnsPerHost: indexWriters, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}}
	if o.IndexCA != "" {
		pem, err := os.ReadFile(o.IndexCA)
		if err != nil {
			return nil, fmt.Errorf("reading the index's authority: %w", err)
		}
		transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s contains no PEM certificate", o.IndexCA)
		}
	}
	x.client = &http.Client{Transport: transport, Timeout: indexTimeout}
	x.ctx, x.cancel = context.WithCancel(context.Background())
	status, text, err := x.call(http.MethodPut, "/_index_template/"+templateName, []byte(template))
	if err == nil && status/100 != 2 {
		err = fmt.Errorf("it answered %d: %.200s", status, text)
	}
	if err != nil {
		x.cancel()
		return nil, fmt.Errorf("preparing the index at %s: %w", x.base, err)
	}
	for range indexWriters {
		x.writers.Go(x.write)
	}
	return x, nil
}

// call makes one HTTP request and reads the answer.
func (x *indexer) call(method, path string, body []byte) (status int, text []byte, err error) {
	r, err := http.NewRequestWithContext(x.ctx, method, x.base+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	if strings.HasPrefix(path, "/_bulk") {
		r.Header.Set("Content-Type", "application/x-ndjson")
	}
	if x.auth != "" {
		r.Header.Set("Authorization", x.auth)
	}
	resp, err := x.client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	text, err = io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	return resp.StatusCode, text, err
}

// put passes a document to the writers. It blocks while they are behind, and with
// it the request that contains the document.
func (x *indexer) put(d document) {
	d.id = x.last.Add(1)
	x.mu.RLock()
	defer x.mu.RUnlock()
	if x.ended {
		x.fail(1, "the stand-in ended")
		return
	}
	select {
	case x.docs <- d:
	case <-x.ctx.Done():
		x.fail(1, "the stand-in ended")
	}
}

func (x *indexer) fail(n int, why string) {
	x.failed.Add(uint64(n))
	x.done(n)
	if x.messages.Add(1) <= 32 {
		standin.Logf(x.log, "not indexed: %d events: %s", n, why)
	}
}

// write collects documents and writes them, until docs is closed.
func (x *indexer) write() {
	var batch []document
	size := 0
	linger := time.NewTimer(bulkLinger)
	defer linger.Stop()
	flush := func() {
		if len(batch) > 0 {
			x.bulk(batch)
		}
		batch, size = batch[:0], 0
	}
	for {
		select {
		case d, ok := <-x.docs:
			if !ok {
				flush()
				return
			}
			if len(batch) == 0 {
				linger.Reset(bulkLinger)
			}
			batch = append(batch, d)
			if size += len(d.source); size >= bulkBytes || len(batch) >= bulkDocs {
				flush()
			}
		case <-linger.C:
			flush()
		}
	}
}

// bulk writes documents. It retries the throttled ones until none are left or the
// stand-in ends.
func (x *indexer) bulk(batch []document) {
	left := batch
	var body []byte
	for backoff := 50 * time.Millisecond; len(left) > 0; backoff = min(2*backoff, maxBackoff) {
		body = body[:0]
		for _, d := range left {
			body = append(body, `{"create":{"_index":"`...)
			body = append(body, d.index...)
			body = append(body, `","_id":"`...)
			body = append(body, x.nonce...)
			body = append(body, '-')
			body = strconv.AppendUint(body, d.id, 36)
			body = append(body, "\"}}\n"...)
			body = append(body, d.source...)
			body = append(body, '\n')
		}
		status, text, err := x.call(http.MethodPost, "/_bulk?filter_path=items.*.status,items.*.error", body)
		switch {
		case err == nil && status/100 == 2:
			left = x.readOutcomes(left, text)
		case err == nil && status != http.StatusTooManyRequests && status < 500:
			x.fail(len(left), fmt.Sprintf("the index answers %d: %.200s", status, text))
			return
		case x.messages.Add(1) <= 32:
			standin.Logf(x.log, "indexing: trying again: %d %.200s %v", status, text, err)
		}
		if len(left) == 0 {
			return
		}
		select {
		case <-time.After(backoff):
		case <-x.ctx.Done():
			x.fail(len(left), "the stand-in ended")
			return
		}
	}
}

// readOutcomes reads and counts what became of each document, and returns those
// to retry.
func (x *indexer) readOutcomes(sent []document, text []byte) (again []document) {
	var answer struct {
		Items []map[string]struct {
			Status int
			Error  json.RawMessage
		}
	}
	err := json.Unmarshal(text, &answer)
	if err == nil && len(answer.Items) != len(sent) {
		err = errors.New("it has a different number of documents")
	}
	if err != nil {
		x.fail(len(sent), "reading the index's answer: "+err.Error())
		return nil
	}
	good := 0
	for i, item := range answer.Items {
		for _, r := range item {
			switch {
			case r.Status/100 == 2 || r.Status == http.StatusConflict:
				// A conflict means that the document was written by an earlier try
				// whose answer was lost. Without our ids it would be written twice.
				good++
			case r.Status == http.StatusTooManyRequests || r.Status == http.StatusServiceUnavailable:
				again = append(again, sent[i])
			default:
				x.fail(1, fmt.Sprintf("%d %.300s", r.Status, r.Error))
			}
		}
	}
	x.indexed.Add(uint64(good))
	x.done(good)
	return again
}

// end waits some time for the requests that may still call put, and for the
// documents that are waiting.
func (x *indexer) end(requests func()) {
	late := time.AfterFunc(indexEndTimeout, x.cancel)
	defer late.Stop()
	requests()
	x.mu.Lock()
	x.ended = true
	x.mu.Unlock()
	close(x.docs)
	x.writers.Wait()
	x.cancel()
	x.client.CloseIdleConnections()
}
