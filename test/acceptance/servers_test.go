//go:build conformance

package acceptance

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// Variables that name real servers for the tests TestServer*. Without them these tests use stand-ins in processes of their own.
const (
	apmEnv        = "CARRONADE_TEST_APM"                    // HOST:PORT, or a URL
	apmTokenEnv   = "CARRONADE_TEST_APM_TOKEN"              //nolint:gosec // a name; its secret token
	elasticEnv    = "CARRONADE_TEST_ELASTICSEARCH"          // the URL of its Elasticsearch
	elasticKeyEnv = "CARRONADE_TEST_ELASTICSEARCH_API_KEY"  //nolint:gosec // a name; or the next two
	elasticUser   = "CARRONADE_TEST_ELASTICSEARCH_USER"     //
	elasticPass   = "CARRONADE_TEST_ELASTICSEARCH_PASSWORD" //nolint:gosec // a name
	elasticCAEnv  = "CARRONADE_TEST_ELASTICSEARCH_CA"       // a PEM file
	riemannEnv    = "CARRONADE_TEST_RIEMANN"                // HOST:PORT of TCP and UDP
	riemannWebEnv = "CARRONADE_TEST_RIEMANN_WS"             // HOST:PORT of WebSocket; empty: not tested
)

// apmURL makes a target of an address as users give one.
func apmURL(addr string) string {
	scheme, rest, ok := strings.Cut(addr, "://")
	if !ok {
		scheme, rest = "http", addr
	}
	return "apm+" + strings.TrimPrefix(scheme, "apm+") + "://" + rest
}

// riemannHost is the HOST:PORT of an address as users give one.
func riemannHost(addr string) string {
	_, rest, ok := strings.Cut(addr, "://")
	if !ok {
		rest = addr
	}
	if _, _, err := net.SplitHostPort(rest); err != nil {
		rest = net.JoinHostPort(strings.Trim(rest, "[]"), "5555")
	}
	return rest
}

// apmServer is the APM Server under test, the flags to log in to it, and those to
// count what it indexed; without an index there are none of the latter.
func apmServer(t *testing.T) (target string, login, index []string) {
	t.Helper()
	if addr := os.Getenv(elasticEnv); addr != "" {
		index = []string{"--index", addr, "--index-still", "5s", "--index-wait", "2m"}
		for env, flag := range map[string]string{elasticKeyEnv: "--index-api-key", elasticPass: "--index-password"} {
			if os.Getenv(env) != "" {
				index = append(index, flag, "env:"+env)
			}
		}
		for env, flag := range map[string]string{elasticUser: "--index-user", elasticCAEnv: "--index-tls-ca"} {
			if v := os.Getenv(env); v != "" {
				index = append(index, flag, v)
			}
		}
	}
	if addr := os.Getenv(apmEnv); addr != "" {
		if os.Getenv(apmTokenEnv) != "" {
			login = []string{"--secret-token", "env:" + apmTokenEnv}
		}
		return apmURL(addr), login, index
	}
	node := testkit.SharedSearch(t).URL
	return "apm+http://" + startStandin(t, "apm", "--listen", "127.0.0.1:0", "--index", node).addr, nil, []string{"--index", node, "--index-still", "1s"}
}

// TestServerAPM runs against an APM Server that the test does not control.
func TestServerAPM(t *testing.T) {
	t.Parallel()
	countsDocuments.Lock()
	defer countsDocuments.Unlock()
	server, login, index := apmServer(t)
	send := func(t *testing.T, target string, args ...string) ended {
		t.Helper()
		return run(t, append(append([]string{"run", target, "--json"}, login...), args...)...)
	}
	// First, because documents of earlier runs may arrive late.
	t.Run("indexed", func(t *testing.T) {
		if index == nil {
			t.Skip("no " + elasticEnv)
		}
		for name, args := range map[string][]string{
			"transactions": {"--count", "4000"},
			"errors":       {"--count", "2000", "--spans", "0"},
			"logs":         {"--count", "2000", "--mix", "log=1"},
		} {
			t.Run(name, func(t *testing.T) {
				d := send(t, server, append(args, index...)...).document(t)
				if name == "logs" && strings.Contains(strings.Join(d.Warnings, "\n"), "servers before 8.5") {
					t.Skip("the server is too old for logs")
				}
				x := d.Indexed
				assert.True(t, x != nil && x.Expected == d.wholeRun().Acked && x.Expected != 0 &&
					x.Documents == int64(x.Expected) && x.Still, "acked %d, indexed %+v", d.wholeRun().Acked, x)
			})
		}
	})
	t.Run("about", func(t *testing.T) {
		d := send(t, server, "--count", "40").succeeded(t).document(t)
		t.Logf("%s: version %v, a stand-in: %v", server, d.Facts["version"], d.Facts["standin"] == true)
	})
	for name, args := range map[string][]string{
		"open loop":   {"--rate", "2000/s", "--for", "2s"},
		"closed loop": {"--concurrency", "4", "--count", "4000", "--verbose"},
		"compressed":  {"--count", "4000", "--gzip", "6", "--verbose"},
		"every kind":  {"--count", "4000", "--mix", "transaction=4,error=1,metricset=1,span=1", "--verbose"},
		"errors":      {"--count", "2000", "--spans", "0", "--frames", "0-10", "--verbose"},
		"one body":    {"--count", "4000", "--repeat-body"},
		"logs":        {"--count", "2000", "--mix", "log=1", "--verbose"},
	} {
		t.Run(name, func(t *testing.T) {
			e := send(t, server, args...)
			if name != "logs" {
				e.succeeded(t)
			}
			d := e.document(t)
			if name == "logs" && d.failed("rejected") > 0 && strings.Contains(strings.Join(d.Warnings, "\n"), "servers before 8.5") {
				t.Skip("the server is too old for logs, as the report says")
			}
			all := d.wholeRun()
			assert.True(t, all.Acked == all.Offered && all.Acked > 0 && len(all.Statuses) == 1 && all.Statuses[0].Code == 202,
				"acked %d of %d, by status %+v, failures %+v", all.Acked, all.Offered, all.Statuses, d.Failures)
		})
	}

	// The server refuses what its rules forbid, and accepts the rest of the request.
	t.Run("refusals", func(t *testing.T) {
		const (
			meta = `{"metadata":{"service":{"name":"carronade-test","agent":{"name":"go","version":"1"}}}}`
			good = `{"transaction":{"id":"0123456789abcdef","trace_id":"0123456789abcdef0123456789abcdef","type":"request","duration":1,"span_count":{"started":0}}}`
			bad  = `{"span":{"id":"0123456789abcdef"}}`
		)
		large := strings.Replace(good, `"type"`, `"context":{"custom":{"text":"`+strings.Repeat("x", 400<<10)+`"}},"type"`, 1)
		for name, refused := range map[string]string{"invalid": bad, "too large": large} {
			t.Run(name, func(t *testing.T) {
				file := filepath.Join(t.TempDir(), "corpus.ndjson")
				writeFile(t, file, strings.Join([]string{meta, good, refused, ""}, "\n"))
				d := send(t, server, "--corpus", file, "--count", "40", "--rate", "40/s").document(t)
				assert.True(t, d.Totals.Acked == 20 && d.failed("rejected") == 20,
					"acked %d, failed %+v; want half of 40", d.Totals.Acked, d.Failures)
			})
		}
		t.Run("another path", func(t *testing.T) {
			send(t, strings.TrimRight(server, "/")+"/no-such-path", "--count", "10").want(t, 2).says(t, "404", "hint:")
		})
		t.Run("another token", func(t *testing.T) {
			if login == nil {
				t.Skip("the server wants no token")
			}
			s := prepare(t, "run", server, "--count", "10", "--secret-token", "env:CARRONADE_TEST_WRONG_TOKEN")
			s.env = []string{"CARRONADE_TEST_WRONG_TOKEN=no-such-token"}
			s.begin()
			s.wait(runTimeout).want(t, 2).says(t, "401", "hint:")
		})
		t.Run("browsers", func(t *testing.T) { // which servers refuse by default
			if e := send(t, server, "--intake", "rum-v2", "--count", "40").wantOneOf(t, 0, 2, 3); e.code == 2 {
				e.says(t, "rum", "hint:")
			}
		})
	})
}

// riemannServer is the Riemann under test: HOST:PORT of TCP and UDP, and that of WebSocket, if any.
func riemannServer(t *testing.T) (host, web string) {
	t.Helper()
	if addr := os.Getenv(riemannEnv); addr != "" {
		return riemannHost(addr), os.Getenv(riemannWebEnv)
	}
	host, web = "127.0.0.1:"+freePort(t), "127.0.0.1:"+freePort(t)
	startStandin(t, "riemann", "--listen", host, "--udp", host, "--ws", web)
	return host, web
}

// TestServerRiemann runs against a Riemann that the test does not control. Its streams must index everything: (streams (index)).
func TestServerRiemann(t *testing.T) {
	t.Parallel()
	host, web := riemannServer(t)
	for name, args := range map[string][]string{
		"open loop":   {"--rate", "1000/s", "--for", "2s"},
		"closed loop": {"--concurrency", "10", "--count", "5000"},
		"bulk":        {"--batch-events", "100", "--count", "20000"},
	} {
		t.Run(name, func(t *testing.T) {
			d := run(t, append([]string{"run", "riemann://" + host, "--json"}, args...)...).succeeded(t).document(t)
			all := d.wholeRun()
			assert.True(t, all.Acked == all.Offered && all.Acked > 0, "acked %d of %d: %+v", all.Acked, all.Offered, d.Failures)
		})
	}
	for name, target := range map[string]string{"TCP": "riemann://" + host, "UDP": "riemann+udp://" + host, "WebSocket": "riemann+ws://" + web} {
		t.Run("verify over "+name, func(t *testing.T) {
			args := []string{"run", target, "--verify", "--rate", "1000/s", "--count", "2000", "--json"}
			if name == "WebSocket" {
				if web == "" {
					t.Skip("no " + riemannWebEnv)
				}
				args = append(args, "--query-address", host)
			}
			d := run(t, args...).succeeded(t).document(t)
			l := d.Ledger
			switch {
			case l == nil:
				t.Fatal("nothing was verified")
			case l.Lost+l.Corrupted+l.Inexact > 0:
				t.Errorf("%+v", *l)
			case name == "UDP" && (l.Recovered == 0 || l.Recovered != l.Read), name != "UDP" && (l.Read != 2000 || l.Acked != 2000):
				t.Errorf("%+v, want every event found", *l)
			}
		})
	}
	t.Run("query", func(t *testing.T) {
		run(t, "run", "riemann://"+host, "--count", "20", "--host", "carronade-test", "--service", "query {uniform(2)}", "--state", "ok").wantOneOf(t, 0, 3)
		e := run(t, "query", "riemann://"+host, `host = "carronade-test"`).want(t, 0)
		assert.True(t, strings.Contains(e.stdout, "query 0") || strings.Contains(e.stdout, "query 1"),
			"the query does not find what was sent:\n%s", e.stdout)
	})
	t.Run("refusals", func(t *testing.T) {
		run(t, "query", "riemann://"+host, `host = `).want(t, 2).says(t, "hint:")
		run(t, "run", "riemann://"+testkit.ClosedPort, "--count", "10").want(t, 2).says(t, "refused", "hint:")
		run(t, "run", "riemann+ws://"+host, "--count", "10", "--connect-timeout", "5s").want(t, 2).says(t, "hint:")
	})
}
