package apm

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"

	"carronade/internal/apm/standin"
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
