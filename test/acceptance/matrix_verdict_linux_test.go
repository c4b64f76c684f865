//go:build conformance

package acceptance

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"carronade/test/testkit/assert"
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

// TestBreaches: the check of the matrix can fail a report, and pass one.
func TestBreaches(t *testing.T) {
	same := func(v float64) map[string]float64 {
		m := map[string]float64{}
		for _, q := range percentiles {
			m[q.name] = v
		}
		return m
	}
	for _, tt := range []struct {
		name         string
		level        string
		lower, upper float64 // us
		least, most  int64   // us
		want         int
	}{
		{"trusted and right", trusted, 5000, 5000, 5000, 5100, 0},
		{"trusted within a tenth", trusted, 5400, 5400, 5000, 5000, 0},
		{"trusted within 0.2 ms", trusted, 300, 300, 120, 120, 0},
		{"trusted and too high", trusted, 433_000, 433_000, 5000, 5200, 4},
		{"trusted and too low", trusted, 5000, 5000, 400_000, 400_000, 4},
		{"trusted at its upper value", trusted, 5000, 433_000, 5000, 5200, 4},
		{"noisy and in between", noisy, 5000, 433_000, 5100, 5200, 0},
		{"noisy and at the edge", noisy, 5100, 5300, 5000, 5000, 0},
		{"noisy and below", noisy, 100_000, 433_000, 5000, 5200, 4},
		{"noisy and above", noisy, 5000, 6000, 400_000, 400_000, 4},
		{"not trusted", notTrusted, 5000, 433_000, 1, 1, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var actual truth
			actual.add(tt.least*1000, tt.most*1000, 10)
			got := breaches(statement{level: tt.level, lower: same(tt.lower), upper: same(tt.upper)}, actual)
			assert.Equal(t, len(got), tt.want, "got %q breaches", got)
		})
	}
}

// TestPercentile: ranks count events, not times.
func TestPercentile(t *testing.T) {
	var s distribution
	s.add(9000, 1)
	s.add(1000, 98)
	s.add(5000, 1)
	for p, want := range map[float64]float64{50: 1, 98: 1, 98.5: 5, 99: 5, 99.5: 9} {
		assert.Equal(t, s.percentile(p), want, "p%v us", p)
	}
}

// TestStated reads both formats of a report.
func TestStated(t *testing.T) {
	const times = `{"p50_us":1,"p90_us":2,"p95_us":3,"p99_us":4}`
	for _, tt := range []struct {
		name, report, level string
		lower, upper        float64
		fails               string
	}{
		{"without levels", `{"trust":{"ok":true},"totals":{"acked":1},"response":` + times + `}`, trusted, 4, 4, ""},
		{"not ok", `{"trust":{"ok":false},"totals":{"acked":1},"response":` + times + `}`, notTrusted, 4, 4, ""},
		{"with bounds", `{"trust":{"ok":true,"level":"noisy"},"totals":{"acked":1,"response_us":` + strings.Replace(times, "4", "9", 1) + `,"response_lower_us":` + times + `}}`, noisy, 4, 9, ""},
		{"contradiction", `{"trust":{"ok":false,"level":"noisy"},"totals":{"acked":1},"response":` + times + `}`, "", 0, 0, "trust.ok"},
		{"no times", `{"trust":{"ok":true},"totals":{"acked":1},"response":null}`, "", 0, 0, "no response"},
		{"no percentile", `{"trust":{"ok":true},"totals":{"acked":1},"response":{"p50_us":1}}`, "", 0, 0, "no p90_us"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := readStatement(tt.report, ofResponse)
			if tt.fails != "" {
				assert.ErrorHas(t, err, tt.fails)
				return
			}
			assert.True(t, err == nil && got.level == tt.level && got.lower["p99_us"] == tt.lower &&
				got.upper["p99_us"] == tt.upper, "got %+v and %v", got, err)
		})
	}
}
