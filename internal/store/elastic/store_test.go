package elastic

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"carronade/internal/host"
	"carronade/internal/place"
	"carronade/internal/store"
	"carronade/load"
	"carronade/protocol"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/reporttest"
)

func TestMain(m *testing.M) { os.Exit(testkit.SearchMain(m)) }

// address is the address of indices that no other test uses. They are deleted when the test ends.
func address(t *testing.T, base string) string {
	t.Helper()
	prefix := testkit.SearchIndex(t, "st")
	node := testkit.SharedSearch(t)
	t.Cleanup(func() {
		for _, path := range []string{"/" + prefix + "-reports", "/" + prefix + "-intervals", "/_index_template/" + prefix} {
			r, _ := http.NewRequest(http.MethodDelete, node.URL+path, nil)
			if resp, err := http.DefaultClient.Do(r); err == nil {
				resp.Body.Close()
			}
		}
	})
	return "elasticsearch://" + strings.TrimPrefix(base, "http://") + "/" + prefix
}

// parsed reads an address.
func parsed(t *testing.T, address string) *place.Address {
	t.Helper()
	p := assert.Value(place.Store(address))(t)
	return p.Address
}

func open(t *testing.T, address string) *Store {
	t.Helper()
	s := assert.Value(Open(t.Context(), parsed(t, address)))(t)
	t.Cleanup(func() { s.Close() })
	return s
}

func TestStore(t *testing.T) {
	at := address(t, testkit.SharedSearch(t).URL) // one for all, since making indices takes long
	reporttest.RunStore(t, func(t *testing.T) store.Store {
		s := open(t, at)
		empty(t, s)
		return s
	})
}

// Elasticsearch behaves like OpenSearch; make conformance PART=stores runs every test of this package with every release.
func TestStoreOfElasticsearch(t *testing.T) {
	if name := os.Getenv(testkit.SearchVariable); name != "" {
		t.Skip("all tests are against " + name)
	}
	at := "elasticsearch://" + strings.TrimPrefix(testkit.StartSearch(t, "elasticsearch-8").URL, "http://")
	reporttest.RunStore(t, func(t *testing.T) store.Store {
		s := open(t, at)
		empty(t, s)
		return s
	})
}

// empty deletes all documents, without delete by query, which is a separate module.
func empty(t *testing.T, s *Store) {
	t.Helper()
	assert.OK(t, s.do(t.Context(), http.MethodPost, "/"+s.intervals()+"/_refresh?ignore_unavailable=true", nil, "", nil))
	for index, sort := range map[string][]map[string]any{s.reports(): newestFirst, s.intervals(): {{"report": "asc"}, {"n": "asc"}}} {
		var actions []action
		err := s.search(t.Context(), index, object{"match_all": object{}}, sort, []string{"id"}, func(h *hit) (bool, error) {
			actions = append(actions, action{verb: "delete", index: index, id: h.ID})
			return true, nil
		})
		if err == nil {
			err = s.bulk(t.Context(), true, actions...)
		}
		assert.OK(t, err)
	}
}

// A reader gets an error if no report was stored.
func TestOpenExisting(t *testing.T) {
	at := address(t, testkit.SharedSearch(t).URL)
	s, err := OpenExisting(t.Context(), parsed(t, at))
	said, _ := errors.AsType[*protocol.Error](err)
	assert.Must(t, s == nil && errors.Is(err, store.ErrAbsent) && strings.Contains(said.Hint, "prefix"),
		"got %v (%+v), want %v", err, said, store.ErrAbsent)
	assert.OK(t, open(t, at).Put(t.Context(), reporttest.Document(0, 1)))
	s = assert.Value(OpenExisting(t.Context(), parsed(t, at)))(t)
	s.Close()
	forbidden := intercept(t, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodHead {
			w.WriteHeader(http.StatusForbidden)
		}
		return r.Method == http.MethodHead
	})
	s, err = OpenExisting(t.Context(), parsed(t, address(t, forbidden)))
	assert.Must(t, err == nil, "got %v without permission to ask", err)
	s.Close()
}

// intercept starts a proxy in front of the real cluster, which does to a
// request what a test wants: handled is true if it answered itself.
func intercept(t *testing.T, do func(w http.ResponseWriter, r *http.Request) (handled bool)) string {
	t.Helper()
	to, _ := url.Parse(testkit.SharedSearch(t).URL)
	proxy := httputil.NewSingleHostReverseProxy(to)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !do(w, r) {
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// A cluster that fails during a run does not affect the run: what was not stored then is stored at its end.
func TestClusterFailsDuringARun(t *testing.T) {
	var away atomic.Bool
	s := open(t, address(t, intercept(t, func(w http.ResponseWriter, _ *http.Request) bool {
		if away.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		return away.Load()
	})))
	want := reporttest.Document(0, 20)
	w := assert.Value(s.Begin(t.Context(), want))(t)
	for i := range want.Intervals {
		if i == 5 {
			away.Store(true)
		}
		e := assert.Value(want.Intervals[i].Encode())(t)
		w.Interval(e)
	}
	for w.(*writer).queue.Failed() == 0 {
		runtime.Gosched()
	}
	away.Store(false)
	assert.OK(t, w.Finish(t.Context(), want))
	got := assert.Value(s.Get(t.Context(), want.ID))(t)
	assert.True(t, got.Hash == want.Hash && len(got.Intervals) == len(want.Intervals) && got.Check() == nil,
		"got %d intervals and hash %s, want %d and %s", len(got.Intervals), got.Hash, len(want.Intervals), want.Hash)
}

// No failure of a deletion leaves intervals without a report, which could not
// be deleted any more: the report stays until they are gone.
func TestDeleteLeavesNoIntervals(t *testing.T) {
	for _, fails := range []string{"intervals", "reports"} {
		t.Run(fails+" fail", func(t *testing.T) {
			var away atomic.Bool
			s := open(t, address(t, intercept(t, func(w http.ResponseWriter, r *http.Request) bool {
				if !away.Load() || !strings.HasSuffix(r.URL.Path, "_bulk") {
					return false
				}
				body, err := io.ReadAll(r.Body)
				assert.True(t, err == nil, "%v", err)
				r.Body = io.NopCloser(bytes.NewReader(body))
				failed := bytes.Contains(body, []byte("-"+fails+`"`))
				if failed {
					w.WriteHeader(http.StatusServiceUnavailable)
				}
				return failed
			})))
			d := reporttest.Document(0, 20)
			assert.OK(t, s.Put(t.Context(), d))
			away.Store(true)
			assert.True(t, s.Delete(t.Context(), d.ID) != nil, "the deletion did not fail, so the case tests nothing")
			if rows, err := s.Rows(t.Context(), store.Query{}); err != nil || len(rows) != 1 {
				t.Errorf("%d reports are listed after it, %v; want the one that can be deleted again", len(rows), err)
			}
			away.Store(false)
			assert.OK(t, s.Delete(t.Context(), d.ID))
			left := 0
			err := s.eachInterval(t.Context(), d.ID, []string{"n"}, func(*hit) (bool, error) { left++; return true, nil })
			assert.True(t, err == nil && left <= 0, "%d intervals are left, %v", left, err)
		})
	}
}

// There are more reports than one page of a search.
func TestPages(t *testing.T) {
	s := open(t, address(t, testkit.SharedSearch(t).URL))
	assert.OK(t, s.ready(t.Context()))
	const n = pageHits + 50
	var actions []action
	for i := range n {
		doc := assert.Value(reportDocOf(reporttest.Document(i, 0)))(t)
		actions = append(actions, action{verb: "create", index: s.reports(), id: doc.ID, doc: doc})
	}
	assert.OK(t, s.bulk(t.Context(), true, actions...))
	rows, err := s.Rows(t.Context(), store.Query{})
	assert.Must(t, err == nil && len(rows) == n, "got %d rows and %v, want %d", len(rows), err, n)
	for i := 1; i < n; i++ {
		assert.Must(t, !rows[i].At.After(rows[i-1].At), "row %d is newer than the one before it", i)
	}
	rows, err = s.Rows(t.Context(), store.Query{Limit: 7})
	assert.True(t, err == nil && len(rows) == 7, "got %d rows and %v, want 7", len(rows), err)
}

// An error of a cluster has a hint, and no secret.
func TestFaults(t *testing.T) {
	t.Setenv("STORE_PASSWORD", "canary-1")
	t.Setenv("STORE_KEY", "canary-2")
	answers := func(code int, body string) string {
		return intercept(t, func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(code)
			io.WriteString(w, body)
			return true
		})
	}
	refuses := func(kind, reason string) string {
		return intercept(t, func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodGet || !strings.Contains(r.URL.Path, "_bulk") {
				return false
			}
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprintf(w, `{"error":{"type":%q,"reason":%q},"status":403}`, kind, reason)
			return true
		})
	}
	for _, tt := range []struct {
		name, address string
		want          []string
		is            error
	}{
		{"no server", "elasticsearch://127.0.0.1:1", []string{"refused", "127.0.0.1:1/carronade", "/ check that"}, nil},
		{"no such host", "elasticsearch://no-such-host.invalid", []string{"no-such-host.invalid:9200"}, nil},
		{"an unset reference", "elasticsearch://h:1?api-key=env:STORE_NOTHING", []string{"variable STORE_NOTHING is not set"}, nil},
		{"no such ca", "elasticsearch+https://h:1?ca=/nowhere.pem", []string{"no such file"}, nil},
		{"unauthorized", answers(401, `{"error":{"type":"security_exception","reason":"missing authentication credentials"}}`) + "?user=a&password=env:STORE_PASSWORD", []string{"401: missing authentication", "api-key"}, nil},
		{"another server", answers(200, `<html>hello</html>`), []string{"not that of Elasticsearch"}, nil},
		{"another server of JSON", answers(200, `{}`), []string{"neither Elasticsearch nor OpenSearch"}, nil},
		{"read-only", refuses("cluster_block_exception", "index [x] blocked by: [FORBIDDEN/12/index read-only / allow delete (api)]"), []string{"read-only", "full disk"}, store.ErrReadOnly},
		{"not allowed", refuses("security_exception", "no permissions for [indices:data/write/bulk]"), []string{"no permissions", "manage index templates"}, nil},
		{"another mapping", refuses("strict_dynamic_mapping_exception", "mapping set to strict"), []string{"another prefix"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			address := tt.address
			if after, ok := strings.CutPrefix(address, "http://"); ok {
				address = "elasticsearch://" + after
			}
			s, err := Open(t.Context(), parsed(t, address))
			if err == nil {
				defer s.Close()
				err = s.Put(t.Context(), reporttest.Document(0, 1))
			}
			said, ok := errors.AsType[*protocol.Error](err)
			assert.Must(t, ok, "got %v, want a *target.Error", err)
			text := said.Error() + " / " + said.Hint
			assert.Has(t, text, tt.want...)
			assert.True(t, !strings.Contains(text, "canary"), "a secret in the error: %s", text)
			assert.True(t, tt.is == nil || errors.Is(err, tt.is), "got %v, want %v", err, tt.is)
		})
	}
}

// Indices of another program, or of a newer carronade, are not changed.
func TestForeignAndNewer(t *testing.T) {
	node := testkit.SharedSearch(t)
	for _, tt := range []struct {
		name, mapping string
		want          error
	}{
		{"foreign", `{"mappings":{}}`, store.ErrForeign},
		{"newer", fmt.Sprintf(`{"mappings":{"_meta":{"carronade":%d}}}`, schemaVersion+1), store.ErrNewer},
	} {
		t.Run(tt.name, func(t *testing.T) {
			at := address(t, node.URL)
			s := open(t, at)
			assert.OK(t, s.do(t.Context(), http.MethodPut, "/"+s.reports(), []byte(tt.mapping), jsonType, nil))
			err := s.Put(t.Context(), reporttest.Document(0, 1))
			assert.True(t, errors.Is(err, tt.want), "got %v, want %v", err, tt.want)
			_, err = s.Begin(t.Context(), reporttest.Document(0, 1))
			assert.True(t, errors.Is(err, tt.want), "got %v, want %v", err, tt.want)
		})
	}
}

// TestOlderSchema: the indices of an older program get the fields that came later, before anything is written
// or a killed run is finished; its documents are read as before.
func TestOlderSchema(t *testing.T) {
	at := address(t, testkit.SharedSearch(t).URL)
	old := open(t, at)
	assert.OK(t, old.Put(t.Context(), reporttest.Document(0, 2)))
	first := open(t, at)
	var found map[string]struct {
		Mappings map[string]any `json:"mappings"`
	}
	assert.OK(t, old.do(t.Context(), http.MethodGet, "/"+old.reports()+","+old.intervals()+"/_mapping", nil, "", &found))
	for name, index := range found { // as version 1 made them
		m := index.Mappings
		m["_meta"] = object{"carronade": 1}
		for _, field := range []string{"unread", "within_s", "arrived"} {
			delete(m["properties"].(map[string]any), field)
		}
		body := assert.Value(json.Marshal(object{"mappings": m, "settings": object{"number_of_replicas": 0}}))(t)
		assert.OK(t, old.do(t.Context(), http.MethodDelete, "/"+name, nil, "", nil))
		assert.OK(t, old.do(t.Context(), http.MethodPut, "/"+name, body, jsonType, nil))
	}
	doc := assert.Value(reportDocOf(reporttest.Document(1, 0)))(t)
	doc.Schema = 1
	assert.OK(t, old.bulk(t.Context(), true, action{verb: "create", index: old.reports(), id: doc.ID, doc: doc}))
	got := assert.Value(first.Get(t.Context(), doc.ID))(t)
	assert.True(t, got.Hash == doc.Hash, "the report of the older program has hash %s, want %s", got.Hash, doc.Hash)
	assert.OK(t, first.Put(t.Context(), reporttest.Document(2, 3)))
	var hits struct {
		Hits struct {
			Hits []struct {
				Source map[string]any `json:"_source"`
			}
		}
	}
	query := assert.Value(json.Marshal(object{"query": object{"exists": object{"field": "within_s"}}}))(t)
	assert.OK(t, first.do(t.Context(), http.MethodPost, "/"+first.intervals()+"/_search", query, jsonType, &hits))
	assert.True(t, len(hits.Hits.Hits) == 3 && hits.Hits.Hits[0].Source["arrived"] != nil, "found %v by within_s, want 3 intervals", hits)
	assert.OK(t, open(t, at).Put(t.Context(), reporttest.Document(3, 1)))
}

// The credentials are sent, and older clusters get the older form of templates.
func TestRequests(t *testing.T) {
	t.Setenv("STORE_KEY", "canary")
	var older atomic.Bool
	var keys, templates atomic.Int64
	base := intercept(t, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") == "ApiKey canary" {
			keys.Add(1)
		}
		r.Header.Del("Authorization")
		if strings.HasPrefix(r.URL.Path, "/_index_template/") && older.Load() {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return true
		}
		if strings.HasPrefix(r.URL.Path, "/_template/") {
			templates.Add(1)
			var body map[string]any
			err := json.NewDecoder(r.Body).Decode(&body)
			assert.True(t, err == nil && body["mappings"] != nil, "the older template is %v (%v)", body, err)
			io.WriteString(w, `{"acknowledged":true}`)
			return true
		}
		return false
	})
	older.Store(true)
	s := open(t, address(t, base)+"?api-key=env:STORE_KEY")
	assert.OK(t, s.ready(context.Background()))
	assert.True(t, keys.Load() >= 2 && templates.Load() == 1,
		"%d requests had the key, %d templates of the older form were put", keys.Load(), templates.Load())
	assert.True(t, !strings.Contains(s.Place(), "canary") && !strings.Contains(s.Place(), "STORE_KEY"), "the place is %s", s.Place())
}

// Elasticsearch before 7.0 has mappings with types, so a store there is refused at once, by its version.
func TestTooOld(t *testing.T) {
	t.Parallel()
	for version, refused := range map[string]bool{`"number":"6.8.23"`: true, `"number":"5.6.16"`: true, `"number":"7.0.0"`: false, `"number":"1.3.2","distribution":"opensearch"`: false, `"number":"next"`: false} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"name":"a","cluster_name":"b","version":{%s,"lucene_version":"7.7.3"},"tagline":"You Know, for Search"}`, version)
		}))
		t.Cleanup(server.Close)
		_, err := Open(t.Context(), parsed(t, "elasticsearch://"+strings.TrimPrefix(server.URL, "http://")))
		assert.Equal(t, errors.Is(err, store.ErrTooOld), refused, "%s: %v", version, err)
		if e := (*protocol.Error)(nil); refused && errors.As(err, &e) {
			assert.Has(t, e.Hint, "7.0 or later")
		}
	}
}

// If writing is forbidden, a killed run is still listed with its numbers.
func TestKilledWithoutWritePermission(t *testing.T) {
	var sealed atomic.Bool
	s := open(t, address(t, intercept(t, func(w http.ResponseWriter, r *http.Request) bool {
		if !sealed.Load() || r.Method == http.MethodGet || strings.HasSuffix(r.URL.Path, "/_search") {
			return false
		}
		w.WriteHeader(http.StatusForbidden)
		io.WriteString(w, `{"error":{"type":"cluster_block_exception","reason":"index [x] blocked"},"status":403}`)
		return true
	})))
	begun := assert.Value(s.Begin(t.Context(), reporttest.Head(0)))(t)
	whole := reporttest.Document(0, 5)
	for i := range whole.Intervals {
		e := assert.Value(whole.Intervals[i].Encode())(t)
		begun.Interval(e)
	}
	reporttest.Await(t, s, whole.ID, len(whole.Intervals))
	begun.(*writer).queue.Close()
	owner := host.Self()
	owner.PID = 1 << 30
	text := assert.Value(json.Marshal(owner))(t)
	body := assert.Value(json.Marshal(object{"doc": object{"owner": string(text)}}))(t)
	assert.OK(t, s.do(t.Context(), http.MethodPost, "/"+s.reports()+"/_update/"+whole.ID+"?refresh=true", body, jsonType, nil))
	sealed.Store(true)
	rows, err := s.Rows(t.Context(), store.Query{Fields: []string{"throughput", "stopped"}})
	assert.Must(t, err == nil && len(rows) == 1 && !rows[0].Running, "got %+v and %v, want a row of a run that ended", rows, err)
	if v, ok := rows[0].Num("throughput"); !ok || v != 10_000 || rows[0].Text("stopped") != string(load.Killed) {
		t.Errorf("got a throughput of %v and %q, want 10,000 of a killed run", v, rows[0].Text("stopped"))
	}
}

// A run that lost contact to the cluster, and whose report was taken for a killed run's, writes nothing into that report; at its
// end it stores the complete one.
func TestTakenForKilled(t *testing.T) {
	var away atomic.Bool
	s := open(t, address(t, intercept(t, func(w http.ResponseWriter, _ *http.Request) bool {
		if away.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		return away.Load()
	})))
	want := reporttest.Document(0, 6)
	begun := assert.Value(s.Begin(t.Context(), reporttest.Head(0)))(t)
	w := begun.(*writer)
	send := func(from, to int) {
		for i := from; i < to; i++ {
			e := assert.Value(want.Intervals[i].Encode())(t)
			w.Interval(e)
		}
	}
	send(0, 2)
	reporttest.Await(t, s, want.ID, 2)
	away.Store(true)
	send(2, 4)
	for w.queue.Failed() == 0 {
		runtime.Gosched()
	}
	away.Store(false)
	// Another process finishes the report.
	there := assert.Value(s.head(t.Context(), want.ID))(t)
	part := assert.Value(s.load(t.Context(), there))(t)
	doc := assert.Value(reportDocOf(part))(t)
	assert.OK(t, s.putIntervals(t.Context(), part))
	assert.OK(t, s.bulk(t.Context(), true, action{verb: "index", index: s.reports(), id: want.ID, doc: doc}))
	for w.queue.Failed() == 1 { // until the next attempt notices it
		send(4, 5)
		runtime.Gosched()
	}
	got, err := s.Get(t.Context(), want.ID)
	assert.True(t, err == nil && got.Hash == part.Hash, "the partial report was changed: %v", err)
	assert.OK(t, w.Finish(t.Context(), want))
	got, err = s.Get(t.Context(), want.ID)
	assert.True(t, err == nil && got.Hash == want.Hash, "the complete report is missing: %v", err)
}
