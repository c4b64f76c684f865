package apm

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"carronade/measure"
)

// serverFigures are the figures of /debug/vars that are read: counters of
// apm-server (if apm-server.expvar.enabled is set), with the names of Beats, and
// of the Go runtime. Servers have used both nested and flat forms.
var serverFigures = []struct {
	path, name, unit string
	total            bool // cumulative since the server's start
}{
	{"apm-server.server.response.count", "answers", "batches", true},
	{"apm-server.server.response.valid.count", "answers that accept", "batches", true},
	{"apm-server.server.response.errors.count", "answers that refuse", "batches", true},
	{"apm-server.server.request.count", "requests", "batches", true},
	{"apm-server.processor.stream.accepted", "accepted", "events", true},
	{"apm-server.processor.stream.errors.invalid", "invalid", "events", true},
	{"apm-server.processor.stream.errors.toolarge", "too large", "events", true},
	{"apm-server.processor.stream.errors.queue", "queue was full", "events", true},
	{"libbeat.output.events.acked", "output acked", "events", true},
	{"libbeat.output.events.failed", "output failed", "events", true},
	{"libbeat.output.events.active", "output active", "events", false},
	{"libbeat.pipeline.events.active", "pipeline active", "events", false},
	{"output.elasticsearch.indexers.active", "indexers active", "", false},
	{"memstats.HeapAlloc", "heap", "bytes", false},
	{"memstats.Sys", "memory of the runtime", "bytes", false},
	{"memstats.NumGC", "collections", "", true},
}

// vars reads a server's /debug/vars; nil if it does not serve it.
func (s *session) vars(ctx context.Context, base string) (map[string]any, error) {
	status, body, err := s.cfg.ask(ctx, s.client, http.MethodGet, s.cfg.url(base, "/debug/vars"), nil)
	if err != nil {
		return nil, fmt.Errorf("ask %s for its counters: %w", base, err)
	}
	var v map[string]any
	if served := status == http.StatusOK && json.Unmarshal(body, &v) == nil; !served {
		v = nil
	}
	return v, nil
}

// find looks up a dotted path: as one key, or in nested objects, at each level
// the longest key first.
func find(v map[string]any, path string) (float64, bool) {
	for end := len(path); end > 0; end = strings.LastIndexByte(path[:end], '.') {
		x, ok := v[path[:end]]
		if !ok {
			continue
		}
		if end == len(path) {
			switch n := x.(type) {
			case float64:
				return n, true
			case string:
				f, err := strconv.ParseFloat(n, 64)
				return f, err == nil
			}
			return 0, false
		}
		if inner, isMap := x.(map[string]any); isMap {
			return find(inner, path[end+1:])
		}
	}
	return 0, false
}

// Figures are those that the servers report. It adds up the figures of several
// servers.
func (s *session) Figures(ctx context.Context) ([]measure.Figure, error) {
	sums := make([]float64, len(serverFigures))
	known := make([]bool, len(serverFigures))
	for _, base := range s.cfg.bases {
		v, err := s.vars(ctx, base)
		if err != nil {
			return nil, err
		}
		for i, t := range serverFigures {
			if f, ok := find(v, t.path); ok {
				sums[i] += f
				known[i] = true
			}
		}
	}
	var figures []measure.Figure
	for i, t := range serverFigures {
		if known[i] {
			figures = append(figures, measure.Figure{Name: t.name, Unit: t.unit, Value: sums[i], Total: t.total})
		}
	}
	return figures, nil
}

// queued is how many events the servers report as accepted and not yet passed
// on; nil if they do not report it.
func (s *session) queued(ctx context.Context) *float64 {
	var sum *float64
	for _, base := range s.cfg.bases {
		v, err := s.vars(ctx, base)
		if err != nil {
			return nil
		}
		// The pipeline's events include those of the output, which is used only if
		// a server does not report the pipeline.
		for _, path := range []string{"libbeat.pipeline.events.active", "libbeat.output.events.active"} {
			if f, ok := find(v, path); ok {
				if sum == nil {
					sum = new(float64)
				}
				*sum += f
				break
			}
		}
	}
	return sum
}
