package apm

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"

	"carronade/internal/apm/standin"
	"carronade/load"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

func startStandin(t testing.TB, o standin.Options) *standin.Server {
	t.Helper()
	o.Listen = "127.0.0.1:0"
	s := assert.Value(standin.Start(o))(t)
	t.Cleanup(func() { s.Close() })
	return s
}

// A report says that its server was a stand-in, and whether it discarded events.
func TestStandinFacts(t *testing.T) {
	t.Parallel()
	for _, discard := range []bool{false, true} {
		s := startStandin(t, standin.Options{Discard: discard})
		f := open(t, "apm+http://"+s.Addr(), nil).Facts()
		_, discards := f["discards"]
		assert.True(t, f["standin"] == true && discards == discard, "discarding %t: the facts are %v", discard, f)
	}
	f := open(t, newIntake(t, false).url(), nil).Facts()
	assert.True(t, f["standin"] == nil, "a server that is not a stand-in: %v", f["standin"])
}

// The stand-in, which checks events, accepts every event of every protocol.
func TestStandinAcceptsAll(t *testing.T) {
	t.Parallel()
	for _, intake := range []string{"v2", "rum-v2", "rum-v3", "v1"} {
		for i, options := range []map[string]string{
			{},
			{"events": "1", "spans": "0", "frames": "0"},
			{"events": "1", "spans": "1", "frames": "1"},
			{"events": "10", "spans": "10", "frames": "10"},
			{"events": "1-9", "spans": "0-9", "frames": "0-9", "durations": "uniform(1ms,1s)", "outcomes": "unknown"},
			{"gzip": "9", "trace-hops": "3"},
			{"verbose": "true", "max-in-flight": "3", "repeat-body": "true"},
			{"keep-alive": "false"},
			{"mix": "transaction=3,error=2,metricset=1,span=1", "events": "7"},
			{"mix": "log=1"},
			{"mix": "transaction=3,log=5,error=1", "gzip": "5", "trace-hops": "2"},
		} {
			if options["mix"] != "" && (intake == "rum-v3" || intake == "v1") {
				continue // they have no such mixes
			}
			t.Run(fmt.Sprintf("%s %d", intake, i), func(t *testing.T) {
				t.Parallel()
				s := startStandin(t, standin.Options{V1: intake == "v1"})
				all := map[string]string{"intake": intake, "clients": "2", "pool": "256KiB"} // 503 events do not use up more
				maps.Copy(all, options)
				sess := open(t, "apm+http://"+s.Addr(), all)
				r := fire(t, sess, plan(503))
				assert.Equal(t, r.Measurement.Acked, 503, "events acked: %v", r.Failures)
			})
		}
	}
}

// Logs count as the others, at the server too.
func TestStandinCountsLogs(t *testing.T) {
	t.Parallel()
	s := startStandin(t, standin.Options{})
	sess := open(t, "apm+http://"+s.Addr(), map[string]string{"mix": "log=1", "events": "10"})
	r := fire(t, sess, plan(200))
	if c := s.Counts(); r.Measurement.Acked != 200 || c.Logs != 200 || c.Accepted != 200 || c.Invalid != 0 {
		t.Errorf("acked %d, the server: %v", r.Measurement.Acked, c)
	}
	w := sess.Warnings()
	assert.True(t, len(w) == 0, "warnings %q", w)
	kinds, _ := sess.Facts()["request"].(map[string]any)["kinds"].(map[string]any)
	assert.Equal(t, kinds["log"], 10.0, "logs of a request with the kinds %v", kinds)
}

// A server that is too old for logs refuses them. The report says so, by its version
// or by its words.
func TestOldServerRefusesLogs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, version, mix string
		refuses            bool
		want               string
	}{
		{"8.4", "8.4.3", "log=1", true, "is version 8.4.3: servers before 8.5 do not know logs"},
		{"7", "7.17.9", "transaction=1,log=1", true, "is version 7.17.9"},
		{"8.4 without logs", "8.4.3", "transaction=1", false, ""},
		{"8.6", "8.6.0", "log=1", false, ""},
		{"8.10", "8.10.1", "log=1", false, ""},
		{"unknown, with its words", "-", "log=1", true, `did not recognize object type: "log": servers before 8.5`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newIntake(t, false)
			s.mu.Lock()
			s.version = tt.version
			s.mu.Unlock()
			if tt.refuses {
				s.reply(func(w http.ResponseWriter, _ int) bool {
					w.WriteHeader(http.StatusBadRequest)
					io.WriteString(w, `{"accepted":0,"errors":[{"message":"did not recognize object type: \"log\"","document":"{}"}]}`)
					return true
				})
			}
			sess := open(t, s.url(), map[string]string{"mix": tt.mix, "spans": "0"})
			assert.Equal(t, fire(t, sess, plan(40)).Measurement.Failed > 0, tt.refuses, "events failed")
			w := strings.Join(sess.Warnings(), "\n")
			assert.True(t, (tt.want != "" || w == "") && strings.Contains(w, tt.want), "warnings %q, want %q", w, tt.want)
		})
	}
}

// Every document that a server indexes is counted, and every lost one is missing.
func TestIndexedThroughStandin(t *testing.T) {
	t.Parallel()
	n := testkit.SharedSearch(t)
	for _, lose := range []uint64{0, 37} {
		t.Run(fmt.Sprintf("%d lost", lose), func(t *testing.T) {
			options := map[string]string{
				"index": n.URL, "index-still": "5s", "index-wait": "10m", "gzip": "1",
				"mix": "transaction=4,error=1,metricset=1,log=4",
			}
			s := startStandin(t, standin.Options{Index: n.URL, Lose: lose})
			sess := open(t, "apm+http://"+s.Addr(), options)
			r := fire(t, sess, plan(2005))
			x := assert.Value(sess.Confirm(t.Context(), r.Measurement.Acked))(t)
			assert.True(t, r.Measurement.Acked == 2005 && x.Expected == 2005 && x.Documents() == 2005-int64(lose) && x.Stable,
				"acked %d, indexed %+v; want 2005 and %d documents", r.Measurement.Acked, x, 2005-lose)
			c := s.Counts()
			assert.True(t, c.Logs > 0, "no logs were sent: %v", c)
			assert.True(t, x.Queued != nil && *x.Queued == 0, "the server still has %v queued", x.Queued)
		})
	}
}

// cut ends an answer whose rest was not kept.
const cut = "aaaaaaaaaaaaaaaa"

func TestEvaluate(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		status int
		body   string
		want   verdict
	}{
		{"accepted", 202, "", verdict{acked: 10}},
		{"200, as v1 and gateways answer", 200, "", verdict{acked: 10}},
		{"verbose", 202, `{"accepted":10}`, verdict{acked: 10}},
		{"verbose and spaced", 202, "{\"accepted\":10}\n", verdict{acked: 10}},
		{"verbose and with more", 202, `{"accepted":10,"errors":[]}`, verdict{acked: 10}},
		{"verbose and fewer", 202, `{"accepted":1}`, verdict{acked: 1, failed: 9, class: load.Rejected, text: "202 Accepted"}},
		{"verbose and broken", 202, `{"accepted":}`, verdict{acked: 10}},
		{"accepted in part", 202, `{"accepted":7,"errors":[{"message":"a"}]}`, verdict{acked: 7, failed: 3, class: load.Rejected, text: "202 Accepted: a"}},
		{"a page of a gateway", 200, `<html>ok</html>`, verdict{acked: 10}},
		{"invalid events", 400, `{"accepted":8,"errors":[{"message":"invalid","document":"{}"},{"message":"invalid"}]}`, verdict{acked: 8, failed: 2, class: load.Rejected, text: "400 Bad Request: invalid"}},
		{"none accepted", 400, `{"accepted":0,"errors":[{"message":"bad metadata"}]}`, verdict{failed: 10, class: load.Rejected, text: "400 Bad Request: bad metadata"}},
		{"more than there were", 400, `{"accepted":11}`, verdict{acked: 10}},
		{"a negative number", 202, `{"accepted":-1}`, verdict{acked: 10}},
		{"a document too long to keep", 400, `{"accepted":8,"errors":[{"message":"too long","document":"{` + cut, verdict{acked: 8, failed: 2, class: load.Rejected, text: "400 Bad Request: too long"}},
		{"the second one", 400, `{"accepted":8,"errors":[{"document":"{}","message":"a"},{"message":"b","document":"` + cut, verdict{acked: 8, failed: 2, class: load.Rejected, text: "400 Bad Request: a"}},
		{"a number that was not kept", 400, `{"errors":[{"message":"too long","document":"{` + cut, verdict{unknown: 10, class: load.Rejected, text: "400 Bad Request: too long"}},
		{"an error of v1", 400, `{"error":"data validation error"}`, verdict{failed: 10, class: load.Rejected, text: "400 Bad Request: data validation error"}},
		{"plain text on two lines", 400, "no\r\ngood", verdict{failed: 10, class: load.Rejected, text: "400 Bad Request: no good"}},
		{"wrong token", 401, `{"accepted":0,"errors":[{"message":"unauthorized"}]}`, verdict{failed: 10, class: load.Unauthorized, text: "401 Unauthorized: unauthorized"}},
		{"forbidden", 403, "", verdict{failed: 10, class: load.Unauthorized, text: "403 Forbidden"}},
		{"too large", 413, "", verdict{failed: 10, class: load.TooLarge, text: "413 Request Entity Too Large"}},
		{"too many", 429, `{"accepted":0,"errors":[{"message":"rate limit exceeded"}]}`, verdict{failed: 10, class: load.Throttled, text: "429 Too Many Requests: rate limit exceeded"}},
		{"the queue filled on the way", 503, `{"accepted":4,"errors":[{"message":"queue is full"}]}`, verdict{acked: 4, failed: 6, class: load.Throttled, text: "503 Service Unavailable: queue is full"}},
		{"a fault inside", 500, "", verdict{failed: 10, class: load.Rejected, text: "500 Internal Server Error"}},
		{"too slow for it", 408, "", verdict{failed: 10, class: load.Timeout, text: "408 Request Timeout"}},
		{"a gateway whose server closed the connection", 502, "<html>", verdict{unknown: 10, class: load.Refused, text: "502 Bad Gateway"}},
		{"a gateway whose server was silent", 504, "", verdict{unknown: 10, class: load.Timeout, text: "504 Gateway Timeout"}},
		{"elsewhere", 302, "", verdict{failed: 10, class: load.Protocol, text: "302 Found"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &session{cfg: &config{}}
			got := s.evaluate(tt.status, []byte(tt.body), !strings.HasSuffix(tt.body, cut), 10)
			assert.Equal(t, got, tt.want)
			assert.Equal(t, got.acked+got.failed+got.unknown, 10, "events that are accounted for")
		})
	}
}

func FuzzEvaluate(f *testing.F) {
	f.Add(202, []byte(`{"accepted":3}`))
	f.Add(400, []byte(`{"accepted":1e9,"errors":[{"message":"\u0000x"}]}`))
	f.Add(503, []byte("\xff\xfe"))
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		if status < 200 || status > 599 {
			return
		}
		s := &session{cfg: &config{}}
		v := s.evaluate(status, body, len(body)%2 == 0, 7)
		assert.Must(t, v.acked >= 0 && v.failed >= 0 && v.unknown >= 0 && v.acked+v.failed+v.unknown == 7, "%+v does not add up to 7", v)
		assert.Must(t, (v.acked < 7) == (v.class != load.OK), "%+v: a class without a failure, or the reverse", v)
		assert.Must(t, !strings.ContainsAny(v.text, "\r\n\x00") && len(v.text) <= mostText+60,
			"a text of %d bytes: %q", len(v.text), v.text)
	})
}

// Errors of documents are counted by text, in bounded memory.
func TestTally(t *testing.T) {
	t.Parallel()
	var y tally
	for i := range 3 * mostTexts {
		y.add(strings.Repeat("x", i))
		y.add("always")
	}
	all := y.all()
	assert.Equal(t, all["always"], 3*mostTexts, "counted")
	if got, want := all["..."], uint64(2*mostTexts+1); len(all) != mostTexts+1 || got != want {
		t.Errorf("%d texts and %d others, want %d and %d", len(all), got, mostTexts+1, want)
	}
}
