package standin

import (
	"cmp"
	"encoding/json"
	"strings"
)

// A logRecord is the members of a log, as JSON decodes them.
type logRecord map[string]any

// text finds a text by its name with dots. Like the real server it prefers nested
// objects to names with dots.
func (r logRecord) text(name string) string {
	var v any = map[string]any(r)
	for part := range strings.SplitSeq(name, ".") {
		in, _ := v.(map[string]any)
		v = in[part]
	}
	if s, ok := v.(string); ok {
		return s
	}
	s, _ := r[name].(string)
	return s
}

// set puts the texts of the record into a document under their own names.
func (r logRecord) set(d object, names ...string) {
	for _, name := range names {
		v := r.text(name)
		if v == "" {
			continue
		}
		parts := strings.Split(name, ".")
		in := d
		for _, part := range parts[:len(parts)-1] {
			below, ok := in[part].(object)
			if !ok {
				below = object{}
				in[part] = below
			}
			in = below
		}
		in[parts[len(parts)-1]] = v
	}
}

// logEvent makes the document of a log. One with an error is an error to the real
// server, whatever its level.
func (m *maker) logEvent(p []byte) {
	var line map[string]logRecord
	if json.Unmarshal(p, &line) != nil {
		return // queue.put counts what is missing
	}
	r := line["log"]
	s := &source{TraceID: r.text("trace.id")}
	s.Timestamp, _ = json.Marshal(r["@timestamp"])
	d := object{}
	r.set(d, "message", "log.level", "log.logger", "log.origin.function", "log.origin.file.name",
		"process.thread.name", "event.dataset", "error.type", "error.message", "error.stack_trace", "span.id", "transaction.id")
	if d["error"] != nil {
		m.put("logs-apm.error", s, s.at(m.now), "error", d)
		return
	}
	service := r.text("service.name")
	service = cmp.Or(service, m.meta.service)
	m.put("logs-apm.app."+streamName(service), s, s.at(m.now), "", d)
}
