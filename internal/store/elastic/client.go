package elastic

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"carronade/internal/secret"
)

// A client sends requests to a cluster. It may be used by several goroutines.
type client struct {
	http           *http.Client
	base           string // URL without a path
	place          string // for people
	prefix         string // of the indices
	user, password string
	auth           string      // header, instead of them
	secrets        secret.Mask // the password or the key: an error must not repeat it
}

// login makes requests name a user.
func (c *client) login(user, password string) {
	c.user, c.password = user, password
	c.secrets.Add(password)
}

func (c *client) reports() string   { return c.prefix + "-reports" }
func (c *client) intervals() string { return c.prefix + "-intervals" }

// A statusError is an answer with a status other than success.
type statusError struct {
	status int
	kind   string // "cluster_block_exception"
	reason string
}

func (r *statusError) Error() string {
	if r.reason == "" {
		return fmt.Sprintf("it answered %d %s", r.status, http.StatusText(r.status))
	}
	return fmt.Sprintf("it answered %d: %s", r.status, r.reason)
}

// status is the code of a statusError, 0 for another error.
func status(err error) int {
	if r, ok := errors.AsType[*statusError](err); ok {
		return r.status
	}
	return 0
}

const (
	jsonType  = "application/json"
	linesType = "application/x-ndjson"
)

// mostAnswer limits an answer, in bytes: a page of rows or of intervals.
const mostAnswer = 512 << 20

// do sends a request and decodes the answer. A nil body is none; if into is
// nil, the answer is ignored.
func (c *client) do(ctx context.Context, method, path string, body []byte, contentType string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var r io.Reader
	if body != nil {
		r = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, r)
	if err != nil {
		return err
	}
	if body != nil {
		req.Header.Set("Content-Type", contentType)
	}
	req.Header.Set("Accept", jsonType)
	switch {
	case c.auth != "":
		req.Header.Set("Authorization", c.auth)
	case c.user != "":
		req.SetBasicAuth(c.user, c.password)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err // the place is in the error already
		}
		return err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, mostAnswer))
	if err != nil {
		return fmt.Errorf("read its answer: %w", err)
	}
	if resp.StatusCode/100 != 2 {
		e := parseError(resp.StatusCode, data)
		e.reason = c.secrets.Text(e.reason)
		return e
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("its answer is not that of Elasticsearch or OpenSearch: %w", err)
	}
	return nil
}

// parseError reads the error in an answer, whose format depends on the server.
func parseError(code int, data []byte) *statusError {
	r := &statusError{status: code}
	var body struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(data, &body) != nil {
		return r
	}
	var c clusterError
	if json.Unmarshal(body.Error, &c) == nil {
		r.kind, r.reason = c.Type, c.words()
		return r
	}
	var text string
	if json.Unmarshal(body.Error, &text) == nil {
		r.reason = short(text)
	}
	return r
}

// A clusterError is an error reported by a cluster.
type clusterError struct {
	Type   string        `json:"type"`
	Reason string        `json:"reason"`
	Cause  *clusterError `json:"caused_by"`
}

func (f *clusterError) words() string {
	text := f.Reason
	if f.Cause != nil && f.Cause.Reason != "" && !strings.Contains(text, f.Cause.Reason) {
		text += ": " + f.Cause.Reason
	}
	return short(text)
}

func short(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > 300 {
		s = strings.ToValidUTF8(s[:300], "") + "..."
	}
	return s
}

// An action is one or two lines of a bulk request.
type action struct {
	verb, index, id string
	doc             any // nil: none
	ifAt            *version
}

// A version is the version of a document, for changes that must not overwrite
// others.
type version struct {
	Number int64 `json:"_seq_no"`
	Term   int64 `json:"_primary_term"`
}

// bulkBytes is the size at which a bulk request is sent: below the limit of
// clusters (100 MB), and large enough that the round trip does not matter.
const bulkBytes = 4 << 20

// bulk executes actions in several requests; with refresh their effects are
// visible to searches. The first failure ends it; deleting a missing document
// is not one.
func (c *client) bulk(ctx context.Context, refresh bool, actions ...action) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	send := func() error {
		if b.Len() == 0 {
			return nil
		}
		path := "/_bulk"
		if refresh {
			path += "?refresh=true"
		}
		var answer struct {
			Errors bool `json:"errors"`
			Items  []map[string]struct {
				Status int          `json:"status"`
				Error  clusterError `json:"error"`
			} `json:"items"`
		}
		err := c.do(ctx, http.MethodPost, path, b.Bytes(), linesType, &answer)
		b.Reset()
		if err != nil || !answer.Errors {
			return err
		}
		for _, item := range answer.Items {
			for verb, res := range item {
				if res.Status/100 != 2 && (verb != "delete" || res.Status != http.StatusNotFound) {
					return &statusError{status: res.Status, kind: res.Error.Type, reason: res.Error.words()}
				}
			}
		}
		return nil
	}
	for _, a := range actions {
		meta := map[string]any{"_index": a.index, "_id": a.id}
		if a.ifAt != nil {
			meta["if_seq_no"], meta["if_primary_term"] = a.ifAt.Number, a.ifAt.Term
		}
		if err := enc.Encode(map[string]any{a.verb: meta}); err != nil {
			return err
		}
		if a.doc != nil {
			if err := enc.Encode(a.doc); err != nil {
				return err
			}
		}
		if b.Len() >= bulkBytes {
			if err := send(); err != nil {
				return err
			}
		}
	}
	return send()
}

// A hit is a document found by a search.
type hit struct {
	ID     string          `json:"_id"`
	Source json.RawMessage `json:"_source"`
	Sort   []any           `json:"sort"`
	version
}

// pageHits is the number of documents per page of a search.
const pageHits = 1000

// search calls f with the documents of an index that match a query, in the
// order of the sort, which must be total, until f returns false. source names
// the requested fields, nil all. A missing index is empty.
func (c *client) search(ctx context.Context, index string, query any, sort []map[string]any, source []string, f func(h *hit) (more bool, err error)) error {
	var after []any
	for {
		body := map[string]any{
			"size": pageHits, "query": query, "sort": sort,
			"seq_no_primary_term": true, "track_total_hits": false,
		}
		if source != nil {
			body["_source"] = source
		}
		if after != nil {
			body["search_after"] = after
		}
		data, err := json.Marshal(body)
		if err != nil {
			return err
		}
		var answer struct {
			Hits struct {
				Hits []json.RawMessage `json:"hits"`
			} `json:"hits"`
			TimedOut bool `json:"timed_out"`
			Shards   struct {
				Failed int `json:"failed"`
			} `json:"_shards"`
		}
		err = c.do(ctx, http.MethodPost, "/"+index+"/_search?ignore_unavailable=true", data, jsonType, &answer)
		switch {
		case err != nil:
			return err
		case answer.TimedOut || answer.Shards.Failed > 0:
			return errors.New("it answered in part: some shards failed")
		}
		for _, raw := range answer.Hits.Hits {
			d := json.NewDecoder(bytes.NewReader(raw))
			d.UseNumber() // for sort values, which are sent back unchanged
			var h hit
			if err := d.Decode(&h); err != nil {
				return err
			}
			more, err := f(&h)
			if err != nil || !more {
				return err
			}
			after = h.Sort
		}
		if len(answer.Hits.Hits) < pageHits {
			return nil
		}
	}
}
