package elastic

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"carronade/internal/secret"
)

// APMIndices matches the indices of an APM Server before version 8.
const APMIndices = "apm-*"

// APMDocuments matches also the data streams of an APM Server since version 8.
const APMDocuments = APMIndices + ",traces-apm*,logs-apm*"

// apmTimeout is the timeout of one method of an APMCluster.
const apmTimeout = 10 * time.Second

// An APMCluster is the address and the login of the Elasticsearch of an APM Server: its health,
// and the indices of APMIndices, their documents and their deletion. It deletes no other index.
// It is safe for concurrent use.
type APMCluster struct {
	URL      string
	User     string
	Password string // env:NAME or file:PATH, "" without a login
}

// Check returns an error if the address is invalid. The error never repeats it if it
// may contain a password.
func (c *APMCluster) Check() error {
	u, err := url.Parse(c.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return errors.New("the address of an Elasticsearch is a URL such as http://localhost:9200")
	case u.User != nil:
		return errors.New("the URL must not contain a login: give user and password after it")
	case u.RawQuery != "" || u.Fragment != "":
		return errors.New("the URL must have neither a query nor a fragment")
	}
	return nil
}

// Status returns the cluster's health (green, yellow, red) and the number of
// documents in the indices of APMDocuments.
func (c *APMCluster) Status(ctx context.Context) (health string, docs int64, err error) {
	var h struct {
		Status string `json:"status"`
	}
	if err := c.ask(ctx, http.MethodGet, "/_cluster/health", &h); err != nil {
		return "", 0, err
	}
	if !slices.Contains([]string{"green", "yellow", "red"}, h.Status) {
		return "", 0, errors.New("its answer is not that of Elasticsearch or OpenSearch")
	}
	docs, err = c.Count(ctx, APMDocuments)
	return h.Status, docs, err
}

// Count returns the number of documents in indices and data streams.
func (c *APMCluster) Count(ctx context.Context, pattern string) (int64, error) {
	var n struct {
		Count int64 `json:"count"`
	}
	err := c.ask(ctx, http.MethodGet, "/"+pattern+"/_count?ignore_unavailable=true&allow_no_indices=true", &n)
	return n.Count, err
}

// Names returns the indices of APMIndices, sorted.
func (c *APMCluster) Names(ctx context.Context) ([]string, error) {
	var list []struct {
		Index string `json:"index"`
	}
	if err := c.ask(ctx, http.MethodGet, "/_cat/indices/"+APMIndices+"?h=index&format=json&expand_wildcards=open,closed", &list); err != nil {
		return nil, err
	}
	var out []string
	for _, i := range list {
		if strings.HasPrefix(i.Index, "apm-") && !strings.ContainsAny(i.Index, "*?,/\\ %#\"<>|") {
			out = append(out, i.Index)
		}
	}
	slices.Sort(out)
	return out, nil
}

// atOnce is how many indices one request deletes: the line of a request is limited.
const atOnce = 20

// Delete deletes indices that Names returned. Those that no longer exist are no
// error.
func (c *APMCluster) Delete(ctx context.Context, names []string) error {
	for _, name := range names {
		if !strings.HasPrefix(name, "apm-") || strings.ContainsAny(name, "*?,/") {
			return fmt.Errorf("%q is not the name of an index of an APM Server", name)
		}
	}
	for part := range slices.Chunk(names, atOnce) {
		var answer any
		if err := c.ask(ctx, http.MethodDelete, "/"+strings.Join(part, ",")+"?ignore_unavailable=true", &answer); err != nil {
			return err
		}
	}
	return nil
}

// ask sends a request and reads its answer.
func (c *APMCluster) ask(ctx context.Context, method, path string, to any) error {
	if err := c.Check(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, apmTimeout)
	defer cancel()
	cl := client{http: newHTTP(nil), base: strings.TrimRight(c.URL, "/")}
	defer cl.http.CloseIdleConnections()
	if c.User != "" {
		password, referred, err := secret.Read(c.Password)
		if err == nil && !referred {
			err = errors.New("it must be env:NAME or file:PATH")
		}
		if err != nil {
			return fmt.Errorf("read the password: %w", err)
		}
		cl.login(c.User, password)
	}
	return cl.do(ctx, method, path, nil, "", to)
}
