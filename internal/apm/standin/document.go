package standin

import (
	"cmp"
	"encoding/json"
	"maps"
	"strings"
	"time"

	"carronade/internal/apm/wire"
)

// A document is what is written for one event: its stack and the fields that
// queries and dashboards of APM start from, under the names that the real server
// gives them. Contexts are left out.
type document struct {
	index  string
	id     uint64
	source []byte
}

// A metadata is what all documents of a request have in common.
type metadata struct {
	service string
	shared  map[string]any
}

type nameVersion struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	N       string `json:"n,omitempty"`
	Ve      string `json:"ve,omitempty"`
}

func (v nameVersion) object() map[string]string {
	m := map[string]string{"name": v.Name + v.N}
	if version := v.Version + v.Ve; version != "" {
		m["version"] = version
	}
	return m
}

type service struct {
	nameVersion
	Environment string
	En          string
	Agent, A    nameVersion
	Language    nameVersion
	La          nameVersion
}

// readMetadata reads a line of metadata, or a document of v1. The validator has
// accepted it, so a missing field is an absent one.
func readMetadata(p []byte) *metadata {
	var in struct {
		Metadata, M struct {
			Service, Se service
			System      struct{ Hostname, DetectedHostname, ConfiguredHostname string }
		}
		Service service
		System  struct{ Hostname string }
	}
	_ = json.Unmarshal(escapeControls(p), &in)
	s := in.Metadata.Service
	switch {
	case s.Name != "":
	case in.M.Se.N != "":
		s = in.M.Se
		s.Agent, s.Environment, s.Language = s.A, s.En, s.La
	default:
		s = in.Service
	}
	host := in.Metadata.System.Hostname + in.System.Hostname
	m := &metadata{service: s.Name + s.N}
	of := s.object()
	if s.Environment != "" {
		of["environment"] = s.Environment
	}
	m.shared = map[string]any{
		"service": of, "agent": s.Agent.object(),
		"observer": map[string]string{"type": "apm-server", "version": Version},
	}
	if host != "" {
		m.shared["host"] = map[string]string{"hostname": host, "name": host}
	}
	return m
}

// A textOrNumber is an id. In v1's spans it is a number.
type textOrNumber string

// UnmarshalJSON accepts a string or a number.
func (l *textOrNumber) UnmarshalJSON(b []byte) error {
	if b[0] == '"' {
		return json.Unmarshal(b, (*string)(l))
	}
	if string(b) != "null" {
		*l = textOrNumber(b)
	}
	return nil
}

// A source is an event under v2's names, whatever the protocol of its request.
type source struct {
	ID            textOrNumber    `json:"id"`
	TraceID       string          `json:"trace_id"`
	ParentID      string          `json:"parent_id"`
	TransactionID string          `json:"transaction_id"`
	Timestamp     json.RawMessage `json:"timestamp"`
	Start         float64         `json:"start"`
	Name          string          `json:"name"`
	Type          string          `json:"type"`
	Subtype       string          `json:"subtype"`
	Action        string          `json:"action"`
	Result        string          `json:"result"`
	Outcome       string          `json:"outcome"`
	Duration      float64         `json:"duration"`
	Stacktrace    json.RawMessage `json:"stacktrace"`
	Culprit       string          `json:"culprit"`
	Exception     json.RawMessage `json:"exception"`
	Log           json.RawMessage `json:"log"`
	Samples       map[string]struct {
		Value *float64 `json:"value"`
	} `json:"samples"`
	Spans []source `json:"spans"`

	// RUM v3's names of the same fields.
	TID string          `json:"tid"`
	PID string          `json:"pid"`
	XID string          `json:"xid"`
	N   string          `json:"n"`
	T   string          `json:"t"`
	Su  string          `json:"su"`
	Ac  string          `json:"ac"`
	RT  string          `json:"rt"`
	O   string          `json:"o"`
	D   float64         `json:"d"`
	S   float64         `json:"s"`
	St  json.RawMessage `json:"st"`
	Cl  string          `json:"cl"`
	Ex  json.RawMessage `json:"ex"`
	Y   []source        `json:"y"`
	Me  []breakdown     `json:"me"`
	Sa  map[string]rumSample
}

// expandNames sets the fields with long names from those with short names.
func (s *source) expandNames() {
	for _, p := range []struct{ to, from *string }{
		{&s.TraceID, &s.TID},
		{&s.ParentID, &s.PID},
		{&s.TransactionID, &s.XID},
		{&s.Name, &s.N},
		{&s.Type, &s.T},
		{&s.Subtype, &s.Su},
		{&s.Action, &s.Ac},
		{&s.Result, &s.RT},
		{&s.Outcome, &s.O},
		{&s.Culprit, &s.Cl},
	} {
		if *p.to == "" {
			*p.to = *p.from
		}
	}
	s.Duration += s.D
	s.Start += s.S
	if s.St != nil {
		s.Stacktrace = s.St
	}
	if s.Ex != nil {
		s.Exception = s.Ex
	}
}

// at is when the event happened; now if it does not say.
func (s *source) at(now time.Time) time.Time {
	var us int64
	var text string
	if json.Unmarshal(s.Timestamp, &us) == nil && us > 0 {
		return time.UnixMicro(us)
	}
	if json.Unmarshal(s.Timestamp, &text) == nil {
		if t, ok := wire.ParseTime(text); ok {
			return t
		}
	}
	return now
}

// documents makes the documents of a line, or of a document of v1.
func documents(meta *metadata, kind string, p []byte, now time.Time) (docs []document) {
	m := &maker{meta: meta, now: now}
	p = escapeControls(p)
	if kind == "v1" {
		m.v1 = true
		var in struct{ Transactions, Errors []source }
		if json.Unmarshal(p, &in) != nil {
			return nil
		}
		for i := range in.Transactions {
			m.transaction(&in.Transactions[i])
		}
		for i := range in.Errors {
			m.errorEvent(&in.Errors[i])
		}
		return m.docs
	}
	if kind == "log" {
		m.logEvent(p)
		return m.docs
	}
	var line map[string]source
	if json.Unmarshal(p, &line) != nil {
		return nil
	}
	s := line[kind]
	s.expandNames()
	switch kind {
	case "transaction", "x":
		m.transaction(&s)
	case "span":
		m.span(&s, nil)
	case "error", "e":
		m.errorEvent(&s)
	case "metricset":
		if keptMetricsets(kind, p) > 0 {
			m.metricset(&s)
		}
	}
	return m.docs
}

type maker struct {
	meta *metadata
	now  time.Time
	docs []document
	v1   bool // of a document of v1, whose servers had no data streams
}

type object = map[string]any

func id(v string) object { return object{"id": v} }

// lastWithV1 is the last release of the real server that accepts v1. It is a part of the names
// of its indices.
const lastWithV1 = "6.8.23"

// put completes a document and adds it to docs. event is what the real server calls
// it in its field processor, which logs do not have.
func (m *maker) put(stream string, s *source, at time.Time, event string, d object) {
	maps.Copy(d, m.meta.shared)
	d["@timestamp"] = at.UTC().Format("2006-01-02T15:04:05.000Z")
	d["timestamp"] = object{"us": at.UnixMicro()}
	if event != "" {
		d["processor"] = object{"event": event, "name": event}
	}
	index := stream + "-default"
	if m.v1 {
		index = "apm-" + lastWithV1 + "-" + event + "-" + at.UTC().Format("2006.01.02")
	} else {
		kind, rest, _ := strings.Cut(stream, "-")
		d["data_stream"] = object{"type": kind, "dataset": rest, "namespace": "default"}
	}
	if s.TraceID != "" {
		d["trace"] = id(s.TraceID)
	}
	if s.ParentID != "" {
		d["parent"] = id(s.ParentID)
	}
	if s.Outcome != "" {
		d["event"] = object{"outcome": s.Outcome}
	}
	text, err := json.Marshal(d)
	if err != nil {
		return // queue.put counts what is missing
	}
	m.docs = append(m.docs, document{index: index, source: text})
}

func micros(ms float64) object { return object{"us": int64(ms * 1000)} }

func (m *maker) transaction(s *source) {
	at := s.at(m.now)
	m.put("traces-apm", s, at, "transaction", object{
		"transaction": object{"id": s.ID, "name": s.Name, "type": s.Type, "result": s.Result, "duration": micros(s.Duration), "sampled": true},
	})
	for _, spans := range [][]source{s.Spans, s.Y} {
		for i := range spans {
			c := &spans[i]
			c.expandNames()
			c.TraceID = s.TraceID
			c.TransactionID = string(s.ID)
			c.ParentID = cmp.Or(c.ParentID, string(s.ID))
			start := at.Add(time.Duration(c.Start * 1e6))
			m.span(c, &start)
		}
	}
	for i := range s.Me {
		if c := &s.Me[i]; c.kept() {
			m.metricset(&source{TraceID: s.TraceID, Timestamp: s.Timestamp, Sa: c.Sa})
		}
	}
}

func (m *maker) span(s *source, start *time.Time) {
	at := s.at(m.now)
	if start != nil {
		at = *start
	}
	span := object{"id": s.ID, "name": s.Name, "type": s.Type, "duration": micros(s.Duration)}
	for name, v := range map[string]string{"subtype": s.Subtype, "action": s.Action} {
		if v != "" {
			span[name] = v
		}
	}
	if s.Stacktrace != nil {
		span["stacktrace"] = s.Stacktrace
	}
	d := object{"span": span}
	if s.TransactionID != "" {
		d["transaction"] = id(s.TransactionID)
	}
	m.put("traces-apm", s, at, "span", d)
}

func (m *maker) errorEvent(s *source) {
	e := object{"id": s.ID}
	if s.Culprit != "" {
		e["culprit"] = s.Culprit
	}
	if s.Exception != nil {
		e["exception"] = s.Exception
	}
	if s.Log != nil {
		e["log"] = s.Log
	}
	d := object{"error": e}
	if s.TransactionID != "" {
		d["transaction"] = id(s.TransactionID)
	}
	m.put("logs-apm.error", s, s.at(m.now), "error", d)
}

func (m *maker) metricset(s *source) {
	d := object{"metricset": object{"name": "app"}}
	values := object{}
	for name, v := range s.Samples {
		if v.Value != nil {
			values[name] = *v.Value
		}
	}
	for name, v := range s.Sa {
		if v.V != nil {
			values[name] = *v.V
		}
	}
	// An index makes objects of names with dots, and one name is often the
	// beginning of another, which would be a value and an object at once.
	for name, v := range values {
		d[strings.ReplaceAll(name, ".", "_")] = v
	}
	m.put("metrics-apm.app."+streamName(m.meta.service), s, s.at(m.now), "metric", d)
}

// streamName turns a service's name into a valid part of a data stream's name.
func streamName(service string) string {
	out := []byte(strings.ToLower(service))
	for i, c := range out {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			out[i] = '_'
		}
	}
	return string(out[:min(len(out), 100)])
}
