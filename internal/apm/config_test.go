package apm

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"carronade/internal/apm/standin"
	"carronade/internal/conn/web"
	"carronade/load"
	"carronade/protocol"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// Every wrong option is refused with an error that names it, and a hint.
func TestBadOptions(t *testing.T) {
	t.Setenv("APM_TEST_TOKEN", "kestrel-9271")
	t.Setenv("APM_TEST_BROKEN", "kestrel-9271\r\nX-More: 1")
	for _, tt := range testkit.Table[struct {
		Name, URL  string
		Options    map[string]string
		Want, Hint string // in the error, and in its hint
	}](t, "testdata/bad_options.yaml") {
		t.Run(tt.Name, func(t *testing.T) {
			_, err := parseConfig(spec(t, tt.URL, tt.Options), true)
			if tt.Options["batch-events"] != "" {
				s := spec(t, tt.URL, nil)
				s.Given["batch-events"], s.BatchEvents = true, 7
				_, err = parseConfig(s, true)
			}
			var said *protocol.Error
			assert.Must(t, errors.As(err, &said), "got %v, want an error with a hint", err)
			assert.True(t, strings.Contains(err.Error(), tt.Want), "got %q, want %q in it", err, tt.Want)
			assert.True(t, strings.Contains(said.Hint, tt.Hint), "hint %q, want %q in it", said.Hint, tt.Hint)
			text := err.Error() + said.Hint
			assert.True(t, !strings.Contains(text, "kestrel-9271"), "the secret is in %q", text)
		})
	}
}

// The content of requests determines the events per batch.
func TestPresets(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		options map[string]string
		want    string
	}{
		{"defaults", nil, "40"},
		{"ten transactions of ten spans", map[string]string{"events": "10", "spans": "10"}, "110"},
		{"errors", map[string]string{"events": "7", "spans": "0"}, "7"},
		{"a mix", map[string]string{"events": "5", "spans": "2", "mix": "transaction,error"}, "15"},
		{"logs alone", map[string]string{"events": "5", "mix": "log=1"}, "5"},
		{"metrics alone", map[string]string{"events": "5", "mix": "metricset"}, "5"},
		{"ranges", map[string]string{"events": "1-4", "spans": "0-3"}, "16"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := spec(t, "apm+http://127.0.0.1:1", tt.options)
			set, _, err := Kind{}.Presets(s.URL, s.Options, s.Given)
			got := set["batch-events"]
			assert.True(t, err == nil && got == tt.want, "got %q, %v; want %q", got, err, tt.want)
		})
	}
}

func TestConnections(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name                string
		concurrency         int
		options             map[string]string
		wantLanes, wantEach int
	}{
		{"defaults", 0, nil, 8, 1},
		{"concurrency", 20, nil, 20, 1},
		{"concurrency on a few connections", 20, map[string]string{"clients": "2"}, 2, 1},
		{"pipelined", 0, map[string]string{"clients": "2", "max-in-flight": "4"}, 2, 4},
		{"concurrency on streams", 20, map[string]string{"clients": "3", "http-version": "2"}, 3, 7},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := spec(t, "apm+https://127.0.0.1:1", tt.options)
			s.Concurrency = tt.concurrency
			c := assert.Value(parseConfig(s, true))(t)
			assert.True(t, c.clients == tt.wantLanes && c.depth == tt.wantEach,
				"%d connections with %d in flight, want %d with %d", c.clients, c.depth, tt.wantLanes, tt.wantEach)
		})
	}
}

func TestHead(t *testing.T) {
	t.Setenv("APM_TEST_TOKEN", "kestrel-9271")
	c, err := parseConfig(spec(t, "apm+http://a,b:81/prefix/", map[string]string{
		"secret-token": "env:APM_TEST_TOKEN", "verbose": "true", "gzip": "1", "header": "User-Agent: me\x00X-Tenant: 7\x00Cookie: env:APM_TEST_TOKEN",
	}), true)
	assert.OK(t, err)
	if want := []string{"a:8200", "b:81"}; !slices.Equal(c.bases, want) {
		t.Errorf("bases %v, want %v", c.bases, want)
	}
	want := "POST /prefix/intake/v2/events?verbose HTTP/1.1\r\nHost: a:8200\r\nContent-Type: application/x-ndjson\r\nContent-Encoding: gzip\r\n" +
		"User-Agent: me\r\nX-Tenant: 7\r\nCookie: kestrel-9271\r\nAuthorization: Bearer kestrel-9271\r\nContent-Length: 12\r\n\r\n"
	got := string(c.head("a:8200", 12))
	assert.True(t, got == want, "got\n%q, want\n%q", got, want)
	if got, want := len(c.secrets), 2; got != want {
		t.Errorf("%d secrets are known, want %d", got, want)
	}
}

func TestShowHeader(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, text, want string }{
		{"plain", "X-Tenant: 7", "X-Tenant: 7"},
		{"secret", "Authorization: Bearer kestrel-9271", "Authorization: ***"},
		{"cookie", "cookie: kestrel-9271", "cookie: ***"},
		{"reference", "Authorization: env:TOKEN", "Authorization: env:TOKEN"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			assert.Equal(t, web.ShowField(tt.text), tt.want)
		})
	}
}

// A corpus is sent as it was recorded, except for its ids and times.
func TestCorpus(t *testing.T) {
	t.Parallel()
	const recorded = `{"metadata":{"service":{"name":"a","agent":{"name":"go","version":"1"}}}}
{"transaction":{"id":"0102030405060708","trace_id":"01020304050607080102030405060708","type":"t","duration":1,"span_count":{"started":1},"timestamp":1700000000000000}}
{"span":{"id":"1112131415161718","transaction_id":"0102030405060708","parent_id":"0102030405060708","trace_id":"01020304050607080102030405060708","name":"s","type":"t","duration":1,"timestamp":1700000000000500}}
{"metadata":{"service":{"name":"b","agent":{"name":"go","version":"1"}}}}
{"error":{"id":"01020304050607080102030405060708","log":{"message":"m"},"timestamp":1700000001000000}}
`
	file := filepath.Join(t.TempDir(), "corpus.ndjson")
	assert.OK(t, os.WriteFile(file, []byte(recorded), 0o600))
	options := spec(t, "apm+http://h", map[string]string{"corpus": file}).Options
	m := assert.Value(newBodyPool(options, 1, false))(t) // before it is clear that it fits into the memory
	assert.Must(t, m.most == 2 && len(m.source.(*corpus).bodies) == 1, "%+v: want the sizes and the first request alone", m)
	m = assert.Value(newBodyPool(options, 1, true))(t)
	assert.True(t, m.most == 2 && !m.fixed,
		"up to %d events, all the same: %v; want up to 2, of several sizes", m.most, m.fixed)
	cycles := assert.Value(m.cycles(t.Context(), 3, 1, func(int, int) []byte { return nil }))(t)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := m.cycles(ended, 3, 1, func(int, int) []byte { return nil })
	assert.True(t, errors.Is(err, context.Canceled), "after an interrupt: %v", err)
	// Three lanes share two requests: the third sends the first one again, with
	// other ids.
	var sent [][]byte
	for _, b := range cycles {
		_, left, _ := b.at(0)
		r := assert.Value(b.prepared(0, left))(t)
		sent = append(sent, bytes.Clone(r.bytes))
	}
	assert.True(t, bytes.Count(sent[0], []byte("\n")) == 3 && bytes.Count(sent[1], []byte("\n")) == 2, "sent %q", sent)
	assert.True(t, !bytes.Equal(sent[0], sent[2]) && len(sent[0]) == len(sent[2]),
		"the same request with the same ids twice:\n%s\n%s", sent[0], sent[2])
	assert.True(t, !bytes.Contains(sent[0], []byte("0102030405060708")) && !bytes.Contains(sent[0], []byte("17000000")),
		"recorded ids or times in %s", sent[0])
	// One event of a request of two, where a phase ends within it.
	r, err := cycles[0].prepared(2, 1)
	assert.True(t, err == nil && r.events() == 1 && bytes.Count(r.bytes, []byte("\n")) == 2,
		"got %q, %v; want one event", r.bytes, err)
}

// A remainder of a corpus that no recorded request can be cut to is unsent, and a warning says so.
func TestRemainderOfCorpus(t *testing.T) {
	t.Parallel()
	const recorded = `{"m":{"se":{"n":"a","a":{"n":"b","ve":"1"}}}}
{"x":{"id":"0123456789abcdef","tid":"00000000000000010000000000000002","t":"t","d":1,"yc":{"sd":1},"y":[{"id":"1123456789abcdef","n":"n","t":"t","s":1,"d":1},{"id":"2123456789abcdef","n":"n","t":"t","s":1,"d":1}]}}
`
	file := filepath.Join(t.TempDir(), "corpus.ndjson")
	assert.OK(t, os.WriteFile(file, []byte(recorded), 0o600))
	s := startStandin(t, standin.Options{})
	for _, keep := range []string{"true", "false"} { // the two kinds of lanes
		for _, schedule := range []load.Schedule{nil, load.Constant(1000)} {
			sess := open(t, "apm+http://"+s.Addr(), map[string]string{"intake": "rum-v3", "corpus": file, "clients": "1", "keep-alive": keep})
			p := plan(10)
			p.Schedule = schedule
			r := fire(t, sess, p)
			m := r.Measurement
			assert.True(t, m.Offered == 10 && m.Sent == 9 && m.Acked == 9 && m.Unsent == 1 && m.Counts.Failed == 0, "scheduled %v: %+v, %v", schedule != nil, m.Counts, r.Failures)
			assert.Has(t, strings.Join(sess.Warnings(), "\n"), "1 events were not sent")
		}
	}
}
