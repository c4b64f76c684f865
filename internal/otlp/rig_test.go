package otlp

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"carronade/internal/otlp/standin"
	"carronade/load"
	"carronade/protocol"
	"carronade/protocol/protocoltest"
	"carronade/test/testkit/assert"
)

// start starts a stand-in on free ports.
func start(t testing.TB, o standin.Options) *standin.Server {
	t.Helper()
	o.Listen, o.GRPCListen = "127.0.0.1:0", "127.0.0.1:0"
	s, err := standin.Start(o)
	assert.OK(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// specOf is a spec with options, each with one value.
func specOf(t testing.TB, url string, given map[string]string) protocol.Spec {
	t.Helper()
	lists := map[string][]string{}
	for k, v := range given {
		lists[k] = []string{v}
	}
	return protocoltest.Spec(t, options(), url, lists)
}

// openSpec opens a session that ends with the test.
func openSpec(t testing.TB, s protocol.Spec) *session {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	sess, err := Kind{}.Open(ctx, s)
	assert.OK(t, err)
	t.Cleanup(func() { _ = sess.Close() })
	return sess.(*session)
}

// fire runs a plan with requests as the options make them.
func fire(t testing.TB, s *session, p load.Plan) *load.Result {
	t.Helper()
	p.BatchEvents = s.cfg.pool.most
	r, err := load.Fire(t.Context(), p, s.Target())
	assert.OK(t, err)
	return r
}

// send sends a number of events, and returns the result.
func send(t testing.TB, url string, events uint64, given map[string]string) *load.Result {
	t.Helper()
	s := openSpec(t, specOf(t, url, given))
	r := fire(t, s, load.Plan{Measurement: load.Limits{Events: events}})
	assert.OK(t, s.Close())
	return r
}

// counted checks the counts of events.
func counted(t testing.TB, r *load.Result, acked, failed, unknown uint64) {
	t.Helper()
	type counts struct{ acked, failed, unknown uint64 }
	m := &r.Measurement
	assert.Equal(t, counts{m.Acked, m.Counts.Failed, m.Unknown}, counts{acked, failed, unknown}, "events")
}

// A front answers instead of a stand-in while refuse is set.
type front struct {
	*httptest.Server
	delay  atomic.Int64
	refuse atomic.Bool
}

// newFront puts a front before a stand-in.
func newFront(t testing.TB, s *standin.Server, secure bool) *front {
	t.Helper()
	f := &front{}
	f.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if d := f.delay.Load(); d > 0 {
			<-time.After(time.Duration(d))
		}
		if f.refuse.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		s.ServeHTTP(w, r)
	}))
	f.Config.Protocols = new(http.Protocols)
	f.Config.Protocols.SetHTTP1(true)
	f.Config.Protocols.SetHTTP2(true)
	f.Config.Protocols.SetUnencryptedHTTP2(true)
	if secure {
		f.EnableHTTP2 = true
		f.StartTLS()
	} else {
		f.Start()
	}
	t.Cleanup(f.Close)
	return f
}
