package elastic

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"carronade/test/testkit/assert"
)

func TestAPMCluster(t *testing.T) {
	t.Setenv("ES_PASSWORD", "s3cret-pw")
	var deleted []string
	many := make([]string, 0, 2*atOnce+1)
	for i := range cap(many) {
		many = append(many, fmt.Sprintf(`{"index":"apm-%02d"}`, i))
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		switch {
		case user != "ann" || password != "s3cret-pw":
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error":{"reason":"no user with password %s"}}`, password)
		case r.Method == http.MethodDelete:
			deleted = append(deleted, strings.TrimPrefix(r.URL.Path, "/"))
			fmt.Fprint(w, `{}`)
		case r.URL.Path == "/_cluster/health":
			fmt.Fprint(w, `{"status":"green"}`)
		case r.URL.Path == "/"+APMDocuments+"/_count":
			fmt.Fprint(w, `{"count":12}`)
		case r.URL.Path == "/_cat/indices/apm-*":
			fmt.Fprintf(w, `[%s,{"index":"other"},{"index":"apm-*"}]`, strings.Join(many, ","))
		default:
			t.Errorf("request %s %s", r.Method, r.URL)
		}
	}))
	defer s.Close()
	c := &APMCluster{URL: s.URL + "/", User: "ann", Password: "env:ES_PASSWORD"}
	health, docs, err := c.Status(t.Context())
	assert.True(t, health == "green" && docs == 12 && err == nil, "status %s %d %v", health, docs, err)
	names, err := c.Names(t.Context())
	assert.Must(t, err == nil && len(names) == len(many) && names[0] == "apm-00", "names %v %v", names, err)
	if err := c.Delete(t.Context(), names); err != nil || len(deleted) != 3 || strings.Join(deleted, ",") != strings.Join(names, ",") {
		t.Errorf("deleted %q, %v", deleted, err)
	}
	deleted = nil
	for _, bad := range []string{"other", "apm-*", "apm-x,other", "*"} {
		err := c.Delete(t.Context(), []string{bad})
		assert.True(t, err != nil && len(deleted) == 0, "deleted %q: %v", bad, err)
	}
	t.Setenv("ES_PASSWORD", "wr0ng-secret")
	if _, _, err = c.Status(t.Context()); err == nil || !strings.Contains(err.Error(), "it answered 401: no user") || strings.Contains(err.Error(), "wr0ng") {
		t.Errorf("error %v", err)
	}
}

func TestNoAPMCluster(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }))
	defer s.Close()
	var errs []string
	for _, url := range []string{"", "localhost:9200", "ftp://x", "http://a:b@x", "http://x?y", s.URL} {
		_, _, err := (&APMCluster{URL: url}).Status(t.Context())
		assert.True(t, err != nil && !strings.Contains(err.Error(), "a:b"), "%s: error %v", url, err)
		errs = append(errs, err.Error())
	}
	assert.True(t, strings.HasPrefix(errs[len(errs)-1], "its answer is not that of Elasticsearch or OpenSearch"), "errors %q", errs)
}
