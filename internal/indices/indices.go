// Package indices looks after the indices of an APM Server in Elasticsearch or
// OpenSearch: the cluster's health, the number of documents, and their deletion.
//
// It deletes nothing but indices whose names begin with apm-.
package indices

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"carronade/internal/secret"
)

// Pattern matches the indices of an APM Server before version 8.
const Pattern = "apm-*"

// Limits of a request.
const (
	within     = 10 * time.Second
	mostAnswer = 4 << 20
)

// A Cluster is the address and the login of an Elasticsearch. It is safe for
// concurrent use.
type Cluster struct {
	URL      string
	User     string
	Password string // env:NAME or file:PATH, "" without a login
}

// Check returns an error if the address is invalid. The error never repeats it if it
// may contain a password.
func (c *Cluster) Check() error {
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
// documents in the indices of Pattern.
func (c *Cluster) Status(ctx context.Context) (health string, docs int64, err error) {
	var h struct {
		Status string `json:"status"`
	}
	if err := c.ask(ctx, http.MethodGet, "/_cluster/health", &h); err != nil {
		return "", 0, err
	}
	if !slices.Contains([]string{"green", "yellow", "red"}, h.Status) {
		return "", 0, errors.New("its answer is not that of Elasticsearch or OpenSearch")
	}
	var n struct {
		Count int64 `json:"count"`
	}
	if err := c.ask(ctx, http.MethodGet, "/"+Pattern+"/_count?ignore_unavailable=true&allow_no_indices=true", &n); err != nil {
		return "", 0, err
	}
	return h.Status, n.Count, nil
}

// Names returns the indices of Pattern, sorted.
func (c *Cluster) Names(ctx context.Context) ([]string, error) {
	var list []struct {
		Index string `json:"index"`
	}
	if err := c.ask(ctx, http.MethodGet, "/_cat/indices/"+Pattern+"?h=index&format=json&expand_wildcards=open,closed", &list); err != nil {
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
func (c *Cluster) Delete(ctx context.Context, names []string) error {
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

// password reads the password.
func (c *Cluster) password() (string, error) {
	if name, ok := strings.CutPrefix(c.Password, "env:"); ok {
		return os.Getenv(name), nil
	}
	if path, ok := strings.CutPrefix(c.Password, "file:"); ok {
		data, err := os.ReadFile(path)
		if err != nil {
			return "", fmt.Errorf("read the password: %w", err)
		}
		return strings.TrimRight(string(data), "\r\n"), nil
	}
	return "", errors.New("the password must be env:NAME or file:PATH")
}

// ask sends a request and reads its answer, which is JSON.
func (c *Cluster) ask(ctx context.Context, method, path string, to any) error {
	if err := c.Check(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimRight(c.URL, "/")+path, http.NoBody)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	var mask secret.Mask
	if c.User != "" {
		password, err := c.password()
		if err != nil {
			return err
		}
		mask.Add(password)
		req.SetBasicAuth(c.User, password)
	}
	client := http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true, Proxy: http.ProxyFromEnvironment},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	res, err := client.Do(req)
	if err != nil {
		if u := (*url.Error)(nil); errors.As(err, &u) {
			err = u.Err
		}
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, mostAnswer))
	if err != nil {
		return fmt.Errorf("read its answer: %w", err)
	}
	if res.StatusCode/100 != 2 {
		return &StatusError{Code: res.StatusCode, Reason: mask.Text(reason(body))}
	}
	if err := json.Unmarshal(body, to); err != nil {
		return errors.New("its answer is not that of Elasticsearch or OpenSearch")
	}
	return nil
}

// A StatusError is an error answer.
type StatusError struct {
	Code   int
	Reason string // of the cluster; may be empty
}

func (e *StatusError) Error() string {
	text := fmt.Sprintf("it answered %d %s", e.Code, http.StatusText(e.Code))
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	return text
}

// mostReason limits a cluster's reason, in bytes.
const mostReason = 300

func reason(body []byte) string {
	var a struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(body, &a) != nil {
		return ""
	}
	var e struct {
		Reason string `json:"reason"`
	}
	if json.Unmarshal(a.Error, &e) != nil {
		_ = json.Unmarshal(a.Error, &e.Reason)
	}
	return strings.ToValidUTF8(e.Reason[:min(len(e.Reason), mostReason)], "")
}
