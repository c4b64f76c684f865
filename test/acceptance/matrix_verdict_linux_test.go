//go:build conformance

package acceptance

import (
	"encoding/json"
	"fmt"
	"strings"
)

// The levels of trust.
const (
	trusted    = "trusted"
	noisy      = "noisy"
	notTrusted = "not trusted"
)

// A statement is what a report says about the times that are checked.
type statement struct {
	level   string
	reasons []string
	doubts  []string
	lower   map[string]float64 // percentiles, in microseconds
	upper   map[string]float64
	dropped uint64 // rows missing from the trace
}

var percentiles = []struct {
	name string
	p    float64
}{{"p50_us", 50}, {"p90_us", 90}, {"p95_us", 95}, {"p99_us", 99}}

// readTrust reads a report's level of trust. A report without levels is trusted or not trusted.
func readTrust(report string) (s statement, err error) {
	var d struct {
		Trust struct {
			OK      bool
			Level   string
			Reasons []string
			Doubts  []string
		}
		Trace struct {
			Dropped uint64
			Error   string
		}
	}
	if err := json.Unmarshal([]byte(report), &d); err != nil {
		return s, fmt.Errorf("the report: %w", err)
	}
	if d.Trace.Error != "" {
		return s, fmt.Errorf("the trace: %s", d.Trace.Error)
	}
	s.reasons, s.doubts, s.dropped = d.Trust.Reasons, d.Trust.Doubts, d.Trace.Dropped
	switch s.level = d.Trust.Level; s.level {
	case "":
		if s.level = notTrusted; d.Trust.OK {
			s.level = trusted
		}
	case trusted, noisy, notTrusted:
		if d.Trust.OK != (s.level != notTrusted) {
			return s, fmt.Errorf("the report's level is %s, and its trust.ok is %v", s.level, d.Trust.OK)
		}
	default:
		return s, fmt.Errorf("the report's level is %q", s.level)
	}
	return s, nil
}

// readStatement reads a report's level and its times of one kind. Without lower
// values, the values are used for both bounds.
func readStatement(report, what string) (statement, error) {
	s, err := readTrust(report)
	if err != nil {
		return s, err
	}
	var top, totals map[string]json.RawMessage
	if err := json.Unmarshal([]byte(report), &top); err != nil {
		return s, fmt.Errorf("the report: %w", err)
	}
	if err := json.Unmarshal(top["totals"], &totals); err != nil {
		return s, fmt.Errorf("the report's totals: %w", err)
	}
	times := func(names ...string) (map[string]float64, error) {
		for _, name := range names {
			for _, in := range []map[string]json.RawMessage{totals, top} {
				if text, ok := in[name]; ok && string(text) != "null" {
					var all map[string]any
					if err := json.Unmarshal(text, &all); err != nil {
						return nil, fmt.Errorf("the report's %s: %w", name, err)
					}
					out := map[string]float64{}
					for _, q := range percentiles {
						v, ok := all[q.name].(float64)
						if !ok {
							return nil, fmt.Errorf("the report's %s has no %s: %s", name, q.name, text)
						}
						out[q.name] = v
					}
					return out, nil
				}
			}
		}
		return nil, nil
	}
	if s.upper, err = times(what+"_us", what); err != nil {
		return s, err
	}
	if s.upper == nil {
		return s, fmt.Errorf("the report has no %s", what)
	}
	if s.lower, err = times(what+"_lower_us", what+"_lower"); s.lower == nil {
		s.lower = s.upper
	}
	return s, err
}

// breaches says where a report breaks its promise: percentiles that are wrong although the report does not
// say so.
//
// Not trusted promises nothing. Noisy promises that the truth is between the lower and the upper value; 2 %
// and 0.1 ms allow for the buckets of histograms and for the transit to the other process. Trusted promises
// the value, within a tenth or 0.2 ms.
func breaches(s statement, t truth) (out []string) {
	for _, q := range percentiles {
		least, most := t.least.percentile(q.p), t.most.percentile(q.p)
		lower, upper := s.lower[q.name], s.upper[q.name]
		ok := true
		switch s.level {
		case noisy:
			ok = most >= lower*0.98-100 && least <= upper*1.02+100
		case trusted:
			ok = upper <= most+max(most*0.1, 200) && upper >= least-max(least*0.1, 200)
		}
		if !ok {
			out = append(out, fmt.Sprintf("%s, %s: reported are %.3f to %.3f ms, the truth is %.3f to %.3f ms",
				s.level, strings.TrimSuffix(q.name, "_us"), lower/1e3, upper/1e3, least/1e3, most/1e3))
		}
	}
	return out
}
