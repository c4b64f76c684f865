package apm

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"carronade/internal/conn"
	"carronade/internal/conn/web"
	"carronade/measure"
	"carronade/protocol"
)

// defaultPattern matches the places of APM's documents: the data streams since 8,
// except the metrics that the server derives from transactions, and the indices
// of 7 and before.
const defaultPattern = "traces-apm*,logs-apm*,metrics-apm.app*,metrics-apm.internal*,apm-*"

// An indexConfig has the options for Elasticsearch. It contains secrets and is
// not printed.
type indexConfig struct {
	url      string // without a trailing slash
	pattern  string
	user     string
	password string
	apiKey   string
	tls      *tls.Config
	redactor *web.Redactor
	wait     time.Duration
	still    time.Duration
	poll     time.Duration
}

func (c *indexConfig) secrets() []string {
	var list []string
	for _, s := range []string{c.password, c.apiKey} {
		if s != "" {
			list = append(list, s)
		}
	}
	if c.user != "" {
		list = append(list, c.user+":"+c.password) // sent in base64, as basic authentication
	}
	return list
}

// parseIndex reads the options of --index. It returns nil without --index.
func parseIndex(v protocol.Values) (*indexConfig, error) {
	text := v.String("index")
	refuse := func(what, hint string) (*indexConfig, error) {
		return nil, &protocol.Error{Doing: "read --index", Err: errors.New(what), Hint: hint}
	}
	if text == "" {
		for _, name := range []string{"index-user", "index-password", "index-api-key", "index-tls-ca"} {
			if v.Has(name) {
				return refuse("--"+name+" without --index", "add --index URL, or leave it out")
			}
		}
		return nil, nil
	}
	u, err := url.Parse(text)
	switch {
	case err != nil, u.Host == "", u.Scheme != "http" && u.Scheme != "https":
		// The text may contain a password, so it is not repeated.
		return refuse("it is not an http or https URL", "give --index http://127.0.0.1:9200")
	}
	if err := conn.CheckURL(u, "read --index", "give --index-user NAME --index-password env:NAME", "give --index http://127.0.0.1:9200"); err != nil {
		return nil, err
	}
	c := &indexConfig{
		url: strings.TrimRight(u.String(), "/"), pattern: cmp.Or(v.String("index-pattern"), defaultPattern), user: v.String("index-user"),
		wait: cmp.Or(v.Duration("index-wait"), time.Minute), still: cmp.Or(v.Duration("index-still"), 5*time.Second),
	}
	c.poll = min(max(c.still/10, 20*time.Millisecond), time.Second)
	if strings.ContainsAny(c.pattern, "/?#% \\\"<>|") {
		return nil, &protocol.Error{Doing: "read --index-pattern", Err: errors.New("index names cannot have some of its characters"), Hint: "give names and patterns, separated by commas: traces-apm*,apm-*"}
	}
	for _, r := range []struct {
		to     *string
		option string
	}{{&c.password, "index-password"}, {&c.apiKey, "index-api-key"}} {
		if v.Has(r.option) {
			if *r.to, err = web.ReadSecret(r.option, v.String(r.option)); err != nil {
				return nil, err
			}
		}
	}
	if (c.user == "") != (c.password == "") || c.apiKey != "" && c.user != "" {
		return refuse("its login is incomplete or given twice", "give --index-user and --index-password, or --index-api-key")
	}
	m := conn.Material{SkipVerify: v.Bool("index-tls-insecure-skip-verify")}
	if m.CA, err = conn.ReadText(v.String("index-tls-ca"), "--index-tls-ca"); err != nil {
		return nil, err
	}
	if c.tls, err = m.Config(); err != nil {
		return nil, err
	}
	return c, nil
}

// An index is Elasticsearch or OpenSearch. It uses only requests that all their
// versions since 7 have: GET /, _count, _refresh and _cluster/health. It changes
// no documents (a refresh only makes them visible).
type index struct {
	cfg    *indexConfig
	client *http.Client
	store  string // "Elasticsearch 8.19.21"
	// What identifies the cluster, in addition to its address: "" and 0 if it does not say.
	version, cluster string
	nodes            int

	before uint64
	health string
	logf   func(format string, args ...any)
}

// openIndex finds out which store answers, and counts its documents.
func openIndex(ctx context.Context, c *indexConfig, logf func(string, ...any)) (*index, error) {
	x := newIndex(c, logf)
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	err := x.identify(ctx)
	if err == nil {
		x.refresh(ctx)
		x.before, err = x.count(ctx)
	}
	if err == nil {
		x.health, x.nodes = x.clusterHealth(ctx)
	}
	if err != nil {
		return nil, x.explain("count the documents at "+c.url, err)
	}
	return x, nil
}

func newIndex(c *indexConfig, logf func(string, ...any)) *index {
	client := conn.HTTPClient(&http.Transport{TLSClientConfig: c.tls, MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute})
	client.Timeout = 30 * time.Second
	return &index{cfg: c, logf: logf, client: client}
}

// identify asks which store answers.
func (x *index) identify(ctx context.Context) error {
	var info struct {
		Cluster string `json:"cluster_name"`
		Version struct {
			Number       string `json:"number"`
			Distribution string `json:"distribution"`
		} `json:"version"`
	}
	err := x.ask(ctx, http.MethodGet, "/", &info)
	if err == nil || isStatus(err, http.StatusNotFound, http.StatusForbidden) { // counting may work nevertheless
		x.store = "Elasticsearch"
		if info.Version.Distribution == "opensearch" {
			x.store = "OpenSearch"
		}
		x.version, x.cluster = x.cfg.redactor.Line(info.Version.Number), x.cfg.redactor.Line(info.Cluster)
		x.store = strings.TrimSpace(x.store + " " + x.version)
		err = nil
	}
	return err
}

// explain adds a hint to an error of the store. net/http repeats the address in it.
func (x *index) explain(doing string, err error) *protocol.Error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	return &protocol.Error{Doing: doing, Err: err, Hint: x.hint(err)}
}

func (x *index) hint(err error) string {
	switch {
	case isStatus(err, http.StatusUnauthorized):
		if x.cfg.user == "" && x.cfg.apiKey == "" {
			return "add --index-user and --index-password env:NAME, or --index-api-key env:NAME"
		}
		return "check --index-user and --index-password, or --index-api-key"
	case isStatus(err, http.StatusForbidden):
		return "the user needs permission to read (and monitor) " + x.cfg.pattern
	case isStatus(err):
		return "is that Elasticsearch or OpenSearch? Its port is often 9200"
	case conn.IsRefused(err):
		return "nothing listens there: is Elasticsearch running, and is this its address? Without --index, nothing is counted"
	}
	if h := conn.Hint(err, false); h != "" {
		return strings.ReplaceAll(h, "--tls-ca", "--index-tls-ca")
	}
	return "check the address (often port 9200), http or https, and its log"
}

// A statusError is an error answer of Elasticsearch, or an invalid one.
type statusError struct {
	status int
	text   string
}

func (e *statusError) Error() string { return e.text }

// isStatus reports whether err is a statusError with one of the codes, or with
// any code if none is given.
func isStatus(err error, codes ...int) bool {
	var s *statusError
	if !errors.As(err, &s) {
		return false
	}
	return len(codes) == 0 || slices.Contains(codes, s.status)
}

// ask sends a request and reads its JSON answer into to.
func (x *index) ask(ctx context.Context, method, path string, to any) error {
	req, err := http.NewRequestWithContext(ctx, method, x.cfg.url+path, http.NoBody)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", userAgent)
	req.Header.Set("Accept", "application/json")
	switch {
	case x.cfg.apiKey != "":
		req.Header.Set("Authorization", "ApiKey "+x.cfg.apiKey)
	case x.cfg.user != "":
		req.SetBasicAuth(x.cfg.user, x.cfg.password)
	}
	res, err := x.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, mostInfo))
	if err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	if res.StatusCode/100 != 2 {
		return &statusError{res.StatusCode, method + " " + path + ": " + reason(x.cfg.redactor, res.StatusCode, body)}
	}
	if err := json.Unmarshal(body, to); err != nil {
		return &statusError{res.StatusCode, fmt.Sprintf("%s %s: the answer is not JSON (%.40q)", method, path, x.cfg.redactor.Line(string(body[:min(len(body), 4<<10)])))}
	}
	return nil
}

// reason reads the reason from an error answer of Elasticsearch.
func reason(v *web.Redactor, status int, body []byte) string {
	var e struct {
		Error any `json:"error"`
	}
	text := ""
	if json.Unmarshal(body, &e) == nil {
		switch err := e.Error.(type) {
		case string:
			text = err
		case map[string]any:
			text, _ = err["reason"].(string)
		}
	}
	return v.StatusText(status, nil, text)
}

// allowMissing makes patterns that match nothing, and closed indices, count 0.
const allowMissing = "ignore_unavailable=true&allow_no_indices=true"

func (x *index) count(ctx context.Context) (uint64, error) {
	var a struct {
		Count  *uint64 `json:"count"`
		Shards struct {
			Failed int `json:"failed"`
		} `json:"_shards"`
	}
	if err := x.ask(ctx, http.MethodGet, "/"+x.cfg.pattern+"/_count?"+allowMissing, &a); err != nil {
		return 0, err
	}
	switch {
	case a.Count == nil:
		return 0, &statusError{http.StatusOK, "count: the answer has no count"}
	case a.Shards.Failed > 0:
		return *a.Count, &statusError{http.StatusOK, fmt.Sprintf("count: %d shards did not answer", a.Shards.Failed)}
	}
	return *a.Count, nil
}

// refresh makes indexed documents visible. Without permission for that, they
// become visible with the store's automatic refresh, each second by default.
func (x *index) refresh(ctx context.Context) {
	var a any
	if err := x.ask(ctx, http.MethodPost, "/"+x.cfg.pattern+"/_refresh?"+allowMissing, &a); err != nil && !isStatus(err) {
		x.logf("refresh %s: %v", x.cfg.url, err)
	}
}

// clusterHealth is the health that the cluster reports, and how many nodes it has; ""
// and 0 if it does not say.
func (x *index) clusterHealth(ctx context.Context) (health string, nodes int) {
	var a struct {
		Status string `json:"status"`
		Nodes  int    `json:"number_of_nodes"`
	}
	if x.ask(ctx, http.MethodGet, "/_cluster/health", &a) != nil {
		return "", 0
	}
	return x.cfg.redactor.Line(a.Status), max(a.Nodes, 0)
}

// facts describe the store, which is a part of what is tested. What it did not say is
// left out.
func (x *index) facts() map[string]any {
	f := map[string]any{"address": x.cfg.url, "pattern": x.cfg.pattern}
	if x.version != "" {
		f["store"], f["version"] = x.store, x.version
	}
	if x.cluster != "" {
		f["cluster"] = x.cluster
	}
	if x.nodes > 0 {
		f["nodes"] = x.nodes
	}
	if x.cfg.tls.InsecureSkipVerify {
		f["tls_verified"] = false
	}
	return map[string]any{"index": f}
}

// lowNote is the usual cause of too few documents (as hey-apm says it: the server
// produces more than Elasticsearch can ingest).
const lowNote = "fewer than 90% of the accepted events were found: usually Elasticsearch accepts less than the server sends " +
	"(its settings, its queue is full and drops), or the link between them is saturated"

// Confirm counts the documents in the index. Along with an error it may return a result:
// the last count before the store failed.
func (s *session) Confirm(ctx context.Context, acked uint64) (*measure.Indexed, error) {
	x := s.indexed
	r := &measure.Indexed{
		Address: x.cfg.url, Store: x.store, Pattern: x.cfg.pattern,
		Before: x.before, After: x.before, Expected: acked, HealthBefore: x.health, Nodes: x.nodes,
	}
	waiting, cancel := context.WithTimeout(ctx, x.cfg.wait)
	defer cancel()
	began := time.Now()
	changed := began
	seen := false
	var fault error
	tick := time.NewTicker(x.cfg.poll)
	defer tick.Stop()
	for {
		queued := s.queued(waiting) // before the count, which has what was queued no more
		x.refresh(waiting)
		n, err := x.count(waiting)
		now := time.Now()
		switch {
		case waiting.Err() != nil:
		case err != nil:
			fault = err
		default:
			fault = nil
			if n != r.After || !seen {
				r.After, seen, changed = n, true, now
			}
			r.Queued = queued
			// If all expected documents are there, one more count shows whether
			// more are coming.
			enough := x.cfg.still
			if r.Documents() == int64(acked) {
				enough = x.cfg.poll
			}
			r.Stable = now.Sub(changed) >= enough && (r.Queued == nil || *r.Queued == 0)
		}
		if r.Stable || waiting.Err() != nil {
			break
		}
		select {
		case <-waiting.Done():
		case <-tick.C:
		}
	}
	r.Waited = time.Since(began)
	if !s.Wall.IsZero() {
		r.Span = changed.Sub(s.Wall)
	}
	asking, stop := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer stop()
	r.HealthAfter, _ = x.clusterHealth(asking)
	if share, ok := r.Share(); ok && share < measure.LowShare {
		r.Note = lowNote
	}
	if !seen {
		return nil, &protocol.Error{
			Doing: "count the documents at " + x.cfg.url, Err: cmp.Or(fault, context.Cause(waiting)),
			Hint: "the events were sent and are in the report; the number of indexed events is unknown",
		}
	}
	if fault != nil { // the last count is reported, and that it may be old
		return r, &protocol.Error{
			Doing: "count the documents at " + x.cfg.url + " once more", Err: fault,
			Hint: "the report has the last known count",
		}
	}
	return r, nil
}
