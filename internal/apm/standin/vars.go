package standin

import (
	"encoding/json"
	"net/http"
	"runtime"
	"time"
)

var startTime = time.Now()

// about answers "/" as the real server does: without the required credentials,
// only by a status.
func (s *Server) about(w http.ResponseWriter, r *http.Request) {
	if s.wantsCredentials() && !s.authenticated(r) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.WriteHeader(http.StatusOK)
		return
	}
	about := map[string]any{
		"build_date": startTime.UTC().Format(time.RFC3339), "build_sha": "0000000000000000000000000000000000000000",
		"version": Version,
	}
	if s.opts.V1 {
		about["version"] = lastWithV1
		about = map[string]any{"ok": about}
	} else {
		about["publish_ready"] = true
	}
	about["standin"] = "carronade"
	answerJSON(w, http.StatusOK, about)
}

// serverVars are the counters under the real server's names.
func serverVars(c Counts) map[string]any {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	refused := c.Invalid + c.TooLarge
	return map[string]any{
		"memstats": map[string]any{"TotalAlloc": m.TotalAlloc, "HeapAlloc": m.HeapAlloc, "Mallocs": m.Mallocs, "NumGC": m.NumGC, "Sys": m.Sys},

		"apm-server.server.request.count":                  c.Requests,
		"apm-server.server.response.errors.unauthorized":   c.Unauthorized,
		"apm-server.server.response.errors.queue":          c.Full,
		"apm-server.processor.stream.accepted":             c.Accepted,
		"apm-server.processor.stream.errors.invalid":       c.Invalid,
		"apm-server.processor.stream.errors.toolarge":      c.TooLarge,
		"apm-server.processor.transaction.transformations": c.Transactions,
		"apm-server.processor.span.transformations":        c.Spans,
		"apm-server.processor.error.transformations":       c.Errors,
		"apm-server.processor.metric.transformations":      c.Metricsets,

		"libbeat.pipeline.events.active":    c.Waiting,
		"libbeat.pipeline.events.total":     c.Accepted + refused,
		"libbeat.pipeline.events.published": c.Accepted,
		"libbeat.output.events.active":      c.Waiting,
		"libbeat.output.events.acked":       c.Indexed,
		"libbeat.output.events.failed":      c.Failed,
		"libbeat.output.events.dropped":     c.Lost,

		"standin": c,
	}
}

// vars answers /debug/vars.
func (s *Server) vars(w http.ResponseWriter, _ *http.Request) {
	answerJSON(w, http.StatusOK, serverVars(s.Counts()))
}

// sinkVars are the counters of a server that discards, which answers every GET with them.
func (s *Server) sinkVars() (media string, text []byte) {
	f := serverVars(s.Counts())
	f["standin"] = "carronade"
	f["discards"] = true      // so that its limit is not mistaken for a real server's
	text, _ = json.Marshal(f) // cannot fail
	return "application/json", text
}
