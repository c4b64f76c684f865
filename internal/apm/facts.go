package apm

import (
	"maps"
	"math"
	"slices"

	"carronade/internal/apm/wire"
	"carronade/measure"
)

// Encoding says when the bytes of events are made. The few bodies that are made during a run, of
// fewer events where a phase ends, do not count.
func (s *session) Encoding() *measure.Encoding {
	m := s.cfg.bodyPool
	e := &measure.Encoding{Events: measure.Pooled, Distinct: uint64(math.Round(m.mean * float64(m.count))), Except: "ids and times"}
	if m.repeat {
		e.Except = ""
	}
	if m.level > 0 {
		e.Compressed("gzip", 0)
	}
	return e
}

// Facts implements protocol.Session.
func (s *session) Facts() map[string]any {
	c, m := s.cfg, s.cfg.bodyPool
	servers := make([]map[string]any, 0, len(s.servers))
	for _, v := range s.servers {
		f := map[string]any{"address": v.Base}
		for name, text := range map[string]string{"version": v.Version, "build": v.Build, "built": v.Built} {
			if text != "" {
				f[name] = text
			}
		}
		if v.Ready != nil {
			f["publish_ready"] = *v.Ready
		}
		servers = append(servers, f)
	}
	kinds := map[string]any{}
	for k, n := range m.kinds {
		if n > 0 {
			kinds[wire.Kind(k).String()] = float64(n) / float64(max(1, m.count))
		}
	}
	request := map[string]any{
		"path": c.prefix + m.source.Path(), "events": m.mean, "kinds": kinds,
		"bytes": float64(m.bytes) / float64(max(1, m.count)), "distinct": m.count, "fresh": !m.repeat,
	}
	if m.level > 0 {
		request["gzip"] = m.level
		request["compressed_to"] = m.ratio
	}
	f := map[string]any{
		"servers": servers, "request": request, "connections": len(s.All), "login": c.login,
		"keep_alive": c.keepAlive, "http": map[bool]string{false: "1.1", true: "2"}[c.http2],
	}
	allServers := func(so func(server) bool) bool {
		return len(s.servers) > 0 && !slices.ContainsFunc(s.servers, func(v server) bool { return !so(v) })
	}
	if allServers(func(v server) bool { return v.Standin }) {
		f["standin"] = true
	}
	if allServers(func(v server) bool { return v.Discards }) {
		f["discards"] = true
	}
	if v := versions(s.servers); v != "" {
		f["version"] = v
	}
	if s.Sink != nil { // the run has started
		f["io"] = s.Method()
	}
	if c.proxy != nil {
		f["proxy"] = c.proxy.String()
	}
	if c.tls && c.dialer.TLS.InsecureSkipVerify {
		f["tls_verified"] = false
	}
	if k, ok := m.source.(*corpus); ok {
		replay := map[string]any{"requests": len(k.bodies), "events_without_fresh_ids": k.unstamped}
		if k.cut {
			replay["cut_at_bytes"] = mostCorpus
		}
		f["corpus"] = replay
	}
	if said := s.errors.All(); len(said) > 0 {
		f["server_said"] = said // of documents and requests, each text with how often
	}
	if s.indexed != nil {
		maps.Copy(f, s.indexed.facts())
	}
	return f
}
