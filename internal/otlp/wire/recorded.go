package wire

import (
	"encoding/json"
	"strings"
)

// Recorded counts what requests in OTLP's JSON are made of.
type Recorded struct {
	Requests, Events [Signals]uint64
	Resource, Scope  uint64 // attributes of all requests
	Attributes       uint64 // of events
	ValueBytes       uint64 // of the values that are texts
	Values           uint64 // of them
	Traces           uint64 // of a request each
	SpanEvents       uint64
	SpanLinks        uint64
	Statuses         [3]uint64
	Severities       [6]uint64
	BodyBytes        uint64
	Metrics          [MetricKinds]uint64 // data points
	Services, Series map[string]bool     // names; up to mostNames of each
}

const mostNames = 1 << 20

type object = map[string]any

func list(o object, name string) []any    { l, _ := o[name].([]any); return l }
func inside(o object, name string) object { m, _ := o[name].(object); return m }

// Add counts a request. at is called with the time of each event that has one, in nanoseconds since 1970.
func (c *Recorded) Add(line []byte, at func(int64)) (events int, err error) {
	s, _, err := FromJSON(line) // which checks it
	if err != nil {
		return 0, err
	}
	var request object
	if err := json.Unmarshal(line, &request); err != nil {
		return 0, err
	}
	if c.Services == nil {
		c.Services, c.Series = map[string]bool{}, map[string]bool{}
	}
	ofResource := signals[s].request.fields[0].of
	scopes := ofResource.fields[1]
	traces, before := map[any]bool{}, c.Events[s]
	for _, r := range list(request, signals[s].list) {
		r, _ := r.(object)
		c.Resource += uint64(len(list(inside(r, "resource"), "attributes")))
		c.values(list(inside(r, "resource"), "attributes"), func(key, value string) {
			if key == "service.name" && len(c.Services) < mostNames {
				c.Services[value] = true
			}
		})
		for _, k := range list(r, scopes.name) {
			k, _ := k.(object)
			c.Scope += uint64(len(list(inside(k, "scope"), "attributes")))
			for _, e := range list(k, scopes.of.fields[1].name) {
				e, _ := e.(object)
				switch s {
				case Traces:
					traces[e["traceId"]] = true
					c.SpanEvents += uint64(len(list(e, "events")))
					c.SpanLinks += uint64(len(list(e, "links")))
					code, _ := inside(e, "status")["code"].(float64)
					c.Statuses[min(max(0, int(code)), 2)]++
					c.event(s, e, "endTimeUnixNano", at)
				case Metrics:
					c.metric(e, at)
				default:
					number, _ := e["severityNumber"].(float64)
					c.Severities[min(max(0, (int(number)-1)/4), 5)]++
					text, _ := inside(e, "body")["stringValue"].(string)
					c.BodyBytes += uint64(len(text))
					c.event(s, e, "timeUnixNano", at)
				}
			}
		}
	}
	c.Requests[s]++
	c.Traces += uint64(len(traces))
	return int(c.Events[s] - before), nil
}

// metric counts the data points of a metric. Summaries, which SDKs no longer make, count as gauges.
func (c *Recorded) metric(m object, at func(int64)) {
	for kind, name := range []string{"gauge", "sum", "", "histogram", "", "exponentialHistogram", "", "summary"} {
		of := inside(m, name)
		if delta, _ := of["aggregationTemporality"].(float64); delta == 1 {
			kind++
		}
		for _, p := range list(of, "dataPoints") {
			p, _ := p.(object)
			c.Metrics[kind%MetricKinds]++
			if text, err := json.Marshal([]any{m["name"], p["attributes"]}); err == nil && len(c.Series) < mostNames {
				c.Series[string(text)] = true
			}
			c.event(Metrics, p, "timeUnixNano", at)
		}
	}
}

// event counts an event.
func (c *Recorded) event(s Signal, e object, time string, at func(int64)) {
	c.Events[s]++
	c.Attributes += uint64(len(list(e, "attributes")))
	c.values(list(e, "attributes"), func(_, value string) {
		c.Values++
		c.ValueBytes += uint64(len(value))
	})
	var ns int64
	switch v := e[time].(type) {
	case string:
		_ = json.Unmarshal([]byte(v), &ns)
	case float64:
		ns = int64(v)
	}
	if ns > 0 {
		at(ns)
	}
}

// values calls f with the attributes that are texts.
func (c *Recorded) values(attributes []any, f func(key, value string)) {
	for _, a := range attributes {
		a, _ := a.(object)
		key, _ := a["key"].(string)
		if value, ok := inside(a, "value")["stringValue"].(string); ok {
			f(key, value)
		}
	}
}

// IsJSON reports whether a file with this beginning has requests in OTLP's JSON, one a line.
func IsJSON(head []byte) bool {
	text, begins := strings.CutPrefix(strings.TrimSpace(string(head[:min(len(head), 64)])), "{")
	for s := range signals {
		if begins && strings.HasPrefix(strings.TrimSpace(text), `"`+signals[s].list+`"`) {
			return true
		}
	}
	return false
}
