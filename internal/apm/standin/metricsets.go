package standin

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// A metricset that names a transaction holds the server's own breakdown of its time. The real server
// keeps one only if it names a span too and has one of the samples that it knows. It drops others without
// an error and does not count them as accepted.

// keptMetricsets returns how many of the metricsets in a valid line the real server keeps.
func keptMetricsets(kind string, p []byte) (n int) {
	p = escapeControls(p)
	switch kind {
	case "metricset":
		var in struct {
			Metricset struct {
				Transaction struct{ Name, Type *string }
				Span        struct{ Type, Subtype *string }
				Samples     map[string]json.RawMessage
			}
		}
		_ = json.Unmarshal(p, &in) // the validator has accepted it
		m := &in.Metricset
		if m.Transaction.Name == nil && m.Transaction.Type == nil {
			return 1
		}
		_, count := m.Samples["span.self_time.count"]
		_, sum := m.Samples["span.self_time.sum.us"]
		if (m.Span.Type != nil || m.Span.Subtype != nil) && (count || sum) {
			return 1
		}
	case "x":
		var in struct{ X struct{ Me []breakdown } }
		_ = json.Unmarshal(p, &in)
		for i := range in.X.Me {
			if in.X.Me[i].kept() {
				n++
			}
		}
	}
	return n
}

// A breakdown is a metricset within a transaction of RUM v3.
type breakdown struct {
	Y  struct{ T, Su *string } // the span
	Sa map[string]rumSample
}

type rumSample struct{ V *float64 }

func (b *breakdown) kept() bool {
	return (b.Y.T != nil || b.Y.Su != nil) && (b.Sa["ysc"].V != nil || b.Sa["yss"].V != nil)
}

// escapeControls escapes the control characters in the strings of a valid line, which wire.Tokens accepts
// with LooseText and JSON does not.
func escapeControls(p []byte) []byte {
	if bytes.IndexFunc(p, func(c rune) bool { return c < ' ' }) < 0 {
		return p
	}
	out := make([]byte, 0, len(p)+64)
	inString := false
	for i := 0; i < len(p); i++ {
		c := p[i]
		switch {
		case inString && c < ' ':
			out = fmt.Appendf(out, `\u%04x`, c)
			continue
		case inString && c == '\\' && i+1 < len(p):
			out = append(out, c)
			i++
			c = p[i]
		case c == '"':
			inString = !inString
		}
		out = append(out, c)
	}
	return out
}
