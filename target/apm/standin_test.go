package apm

import (
	"fmt"
	"testing"

	standin "carronade/internal/standin/apm"

	"carronade/internal/elastictest"
)

func startStandin(t testing.TB, o standin.Options) *standin.Server {
	t.Helper()
	o.Listen = "127.0.0.1:0"
	s, err := standin.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// The stand-in, which checks events, accepts every event of every protocol.
func TestStandinAcceptsAll(t *testing.T) {
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
		} {
			if options["mix"] != "" && (intake == "rum-v3" || intake == "v1") {
				continue // they have no such mixes
			}
			t.Run(fmt.Sprintf("%s %d", intake, i), func(t *testing.T) {
				t.Parallel()
				s := startStandin(t, standin.Options{})
				all := map[string]string{"intake": intake, "clients": "2"}
				for k, v := range options {
					all[k] = v
				}
				sess := open(t, "apm+http://"+s.Addr(), all)
				r := fire(t, sess, plan(503))
				if r.Measurement.Acked != 503 {
					t.Errorf("acked %d of 503: %v", r.Measurement.Acked, r.Failures)
				}
			})
		}
	}
}

// Every document that a server indexes is counted, and every lost one is missing.
func TestIndexedThroughStandin(t *testing.T) {
	n := elastictest.Shared(t)
	for _, lose := range []uint64{0, 37} {
		t.Run(fmt.Sprintf("%d lost", lose), func(t *testing.T) {
			s := startStandin(t, standin.Options{Index: n.URL, Lose: lose})
			sess := open(t, "apm+http://"+s.Addr(), map[string]string{
				"index": n.URL, "index-pattern": "traces-apm*,logs-apm*,metrics-apm*", "index-still": "1s", "index-wait": "1m", "gzip": "1",
			})
			r := fire(t, sess, plan(2005))
			x, err := sess.Confirm(t.Context(), r.Measurement.Acked)
			if err != nil {
				t.Fatal(err)
			}
			if r.Measurement.Acked != 2005 || x.Expected != 2005 || x.Documents() != 2005-int64(lose) || !x.Stable {
				t.Errorf("acked %d, indexed %+v; want 2005 and %d documents", r.Measurement.Acked, x, 2005-lose)
			}
			if x.Queued == nil || *x.Queued != 0 {
				t.Errorf("the server still has %v queued", x.Queued)
			}
		})
	}
}
