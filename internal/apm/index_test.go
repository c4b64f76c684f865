package apm

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	embedded "carronade/internal/apm/standin"
	"carronade/internal/standin"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

func TestMain(m *testing.M) {
	standin.Hook(embedded.Kind) // the test of memory starts this program as its stand-in
	testkit.MostlyWaiting()
	os.Exit(testkit.SearchMain(m))
}

func openIndexed(t *testing.T, s *intake, options map[string]string) *session {
	t.Helper()
	all := map[string]string{"events": "10", "spans": "0", "clients": "2", "index-still": "5s", "index-wait": "10m"}
	maps.Copy(all, options)
	return open(t, s.url(), all)
}

// On a real store, exactly the documents of a run are counted.
func TestConfirm(t *testing.T) {
	t.Parallel()
	n := testkit.SharedSearch(t)
	for _, tt := range []struct {
		name   string
		before int
		put    int // of 200 accepted
		note   bool
	}{
		{"all of it", 0, 200, false},
		{"next to older documents", 300, 200, false},
		{"all but a few", 0, 190, false},
		{"too little", 0, 150, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel() // two of them wait until the count has not changed for five seconds
			// Not apm: another test counts what the default pattern matches, in the same store.
			index := testkit.SearchIndex(t, "confirm")
			if tt.before > 0 {
				n.Add(t, index, tt.before)
			}
			s := newIntake(t, false)
			sess := openIndexed(t, s, map[string]string{"index": n.URL, "index-pattern": index + "*"})
			r := fire(t, sess, plan(200))
			n.Add(t, index, tt.put/2)
			later := make(chan struct{})
			time.AfterFunc(100*time.Millisecond, func() { // while it is being waited for
				defer close(later)
				n.Add(t, index, tt.put-tt.put/2)
			})
			x, err := sess.Confirm(t.Context(), r.Measurement.Acked)
			<-later
			assert.OK(t, err)
			assert.True(t, x.Before == uint64(tt.before) && x.Documents() == int64(tt.put) && x.Expected == 200 && x.Stable,
				"got %+v, want %d before and %d more", x, tt.before, tt.put)
			assert.True(t, x.Store == "OpenSearch "+testkit.SearchVersion && x.HealthBefore != "" && x.HealthAfter != "",
				"store %q, health %q and %q", x.Store, x.HealthBefore, x.HealthAfter)
			assert.Equal(t, (x.Note != ""), tt.note, "note %q", x.Note)
			assert.True(t, x.Span > 0 && x.Rate() > 0, "%v documents/s over %v", x.Rate(), x.Span)
		})
	}
}

// A count is not the last one if the server still had events queued when it was made, however long the
// count had been the same: a store that makes its indices first takes long.
func TestConfirmAfterTheQueue(t *testing.T) {
	t.Parallel()
	const still = 200 * time.Millisecond
	var first atomic.Int64 // when Confirm counted first
	var confirming, written atomic.Bool
	store := testkit.HTTP(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/":
			io.WriteString(w, `{"version":{"number":"8.19.21"}}`)
		case !strings.HasSuffix(r.URL.Path, "/_count"):
			io.WriteString(w, "{}")
		case written.Load():
			io.WriteString(w, `{"count":10}`)
		default:
			now := time.Now().UnixNano()
			if confirming.Load() && !first.CompareAndSwap(0, now) && now-first.Load() > int64(2*still) {
				written.Store(true) // just after it was counted
			}
			io.WriteString(w, `{"count":0}`)
		}
	})
	in := newIntake(t, false)
	server := testkit.HTTP(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/debug/vars":
			in.serve(w, r)
		case written.Load():
			io.WriteString(w, `{"libbeat.pipeline.events.active":0}`)
		default:
			io.WriteString(w, `{"libbeat.pipeline.events.active":10}`)
		}
	})
	sess := open(t, "apm+"+server.URL, map[string]string{"index": store.URL, "index-still": still.String(), "index-wait": "10m"})
	confirming.Store(true)
	x := assert.Value(sess.Confirm(t.Context(), 10))(t)
	assert.True(t, x.Stable && x.Documents() == 10 && x.Queued != nil && *x.Queued == 0,
		"got %+v, want 10 documents, and nothing queued", x)
}

// Facts describe the store behind the system: its address, version and size, as far as it says.
func TestIndexFacts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, root, health string
		want               map[string]any
	}{
		{
			"all", `{"cluster_name":"docs","version":{"number":"8.19.21"}}`, `{"status":"green","number_of_nodes":3}`,
			map[string]any{"store": "Elasticsearch 8.19.21", "version": "8.19.21", "cluster": "docs", "nodes": 3},
		},
		{"OpenSearch", `{"version":{"number":"2.19.1","distribution":"opensearch"}}`, `{"status":"green"}`, map[string]any{"store": "OpenSearch 2.19.1", "version": "2.19.1"}},
		{"a user without rights", "", "", map[string]any{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			store := testkit.HTTP(t, func(w http.ResponseWriter, r *http.Request) {
				text := map[string]string{"/": tt.root, "/_cluster/health": tt.health}[r.URL.Path]
				if strings.HasSuffix(r.URL.Path, "/_count") {
					text = `{"count":1}`
				}
				if text == "" {
					w.WriteHeader(http.StatusForbidden)
				}
				io.WriteString(w, text)
			})
			sess := openIndexed(t, newIntake(t, false), map[string]string{"index": store.URL})
			tt.want["address"], tt.want["pattern"] = store.URL, defaultPattern
			assert.Same(t, sess.Facts()["index"], tt.want)
		})
	}
}

// Without --index there is nothing to confirm.
func TestConfirmNothing(t *testing.T) {
	t.Parallel()
	s := newIntake(t, false)
	assert.True(t, open(t, s.url(), nil).Capabilities().Confirm == nil, "a run without --index may confirm")
}

// The wait is bounded, for a store whose count never becomes stable, and for one that fails.
func TestConfirmIsBounded(t *testing.T) {
	testkit.Need(t, "some seconds")
	t.Parallel()
	var n, last atomic.Int64 // counts so far, and the last before the store fails; 0: it does not
	var gone, silent atomic.Bool
	store := testkit.HTTP(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case gone.Load() || last.Load() > 0 && n.Load() >= last.Load():
			w.WriteHeader(http.StatusServiceUnavailable)
		case silent.Load():
			<-r.Context().Done()
		case strings.HasSuffix(r.URL.Path, "/_count"):
			fmt.Fprintf(w, `{"count":%d}`, n.Add(1))
		case r.URL.Path == "/":
			io.WriteString(w, `{"version":{"number":"8.19.21"}}`)
		case r.URL.Path == "/_cluster/health":
			io.WriteString(w, `{"status":"green"}`)
		default:
			w.WriteHeader(http.StatusForbidden) // no permission to refresh
		}
	})
	s := newIntake(t, false)
	const wait = 3 * time.Second // a stall of the machine leaves time for a count
	waiting := map[string]string{"index": store.URL, "index-wait": wait.String(), "index-still": "1s"}
	sess := openIndexed(t, s, waiting)
	began := time.Now()
	x, err := sess.Confirm(t.Context(), 1000)
	took := time.Since(began)
	assert.True(t, err == nil && !x.Stable && x.Store == "Elasticsearch 8.19.21" && took >= wait, "got %+v, %v after %v", x, err, took)
	sess = openIndexed(t, s, waiting)
	gone.Store(true)
	x, err = sess.Confirm(t.Context(), 1000)
	assert.True(t, err != nil && strings.Contains(err.Error(), "503"), "got %+v, %v; want a 503", x, err)
	gone.Store(false)
	// A store that fails later: the last count is reported, along with the error.
	sess = openIndexed(t, s, waiting)
	last.Store(n.Load() + 3)
	x, err = sess.Confirm(t.Context(), 1000)
	assert.True(t, x != nil && !x.Stable && x.Documents() > 0 && err != nil && strings.Contains(err.Error(), "503"),
		"got %+v, %v; want the last count and a 503", x, err)
	last.Store(0)
	silent.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	x, err = sess.Confirm(ctx, 1000)
	assert.True(t, err != nil, "got %+v; want an error without an answer", x)
	silent.Store(false)
}

// Open reports what is wrong with a store.
func TestIndexRefuses(t *testing.T) {
	t.Setenv("APM_TEST_SECRET", "kestrel-9271")
	s := newIntake(t, false)
	answering := func(status int, body string) string {
		x := testkit.HTTP(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status); io.WriteString(w, body) })
		return x.URL
	}
	login := map[string]string{"index-user": "me", "index-password": "env:APM_TEST_SECRET"}
	for _, tt := range []struct {
		name, url  string
		options    map[string]string
		want, hint string
	}{
		{"nothing listens", "http://127.0.0.1:1", login, "refused", "is Elasticsearch running"},
		{"no password", answering(401, `{"error":{"reason":"missing authentication"}}`), nil, "missing authentication", "--index-password"},
		{"a wrong password", answering(401, `{"error":"no: a2VzdHJlbC05Mjcx, bWU6a2VzdHJlbC05Mjcx, kestrel-9271"}`), login, "401", "check --index-user"},
		{"no permission", answering(403, `{}`), login, "403", "permission to read"},
		{"something else", answering(200, `hello`), nil, "not JSON", "9200"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			options := map[string]string{"index": tt.url}
			maps.Copy(options, tt.options)
			said := refused(t, s.url(), options)
			assert.True(t, strings.Contains(said.Error(), tt.want) && strings.Contains(said.Hint, tt.hint),
				"got %q (hint: %q), want %q (hint: %q)", said, said.Hint, tt.want, tt.hint)
			if strings.Contains(said.Error()+said.Hint, "kestrel-9271") || strings.Contains(said.Error(), "a2VzdHJlbC05Mjcx") || strings.Contains(said.Error(), "bWU6a2VzdHJlbC05Mjcx") {
				t.Errorf("the secret is in %q", said)
			}
		})
	}
}

// Figures are found in both forms that servers have used.
func TestFind(t *testing.T) {
	var v map[string]any
	assert.OK(t, json.Unmarshal([]byte(`{"a.b":{"c":1,"d.e":2},"a":{"b":{"f":3}},"g.h.i":4,"j":"5","k":{}}`), &v))
	for _, tt := range []struct {
		name, path string
		want       float64
		ok         bool
	}{
		{"object in a flat name", "a.b.c", 1, true},
		{"flat in a flat name", "a.b.d.e", 2, true},
		{"flat", "g.h.i", 4, true},
		{"text", "j", 5, true},
		{"an object", "k", 0, false},
		{"missing", "x.y", 0, false},
	} {
		got, ok := find(v, tt.path)
		assert.True(t, got == tt.want && ok == tt.ok, "%s: got %v, %v; want %v, %v", tt.name, got, ok, tt.want, tt.ok)
	}
}

func TestFigures(t *testing.T) {
	t.Parallel()
	s := testkit.HTTP(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/debug/vars" {
			io.WriteString(w, `{"libbeat.pipeline.events.active":7,"libbeat.output.events.active":3,"memstats":{"HeapAlloc":1000}}`)
			return
		}
		io.WriteString(w, "{}")
	})
	sess := open(t, "apm+"+s.URL, nil)
	figures, err := sess.Figures(t.Context())
	assert.True(t, err == nil && len(figures) == 3 && figures[1].Value == 7 && figures[2].Unit == "bytes", "got %v, %v", figures, err)
	q := sess.queued(t.Context())
	assert.True(t, q != nil && *q == 7, "queued %v, want 7", q)
}
