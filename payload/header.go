package payload

import (
	"errors"
	"fmt"

	"carronade/units"
)

// A Header is one header of every event. Its Value must not be modified.
type Header struct {
	Key   string
	Value []byte
}

// A madeHeader is a header whose name or value is made for each event.
type madeHeader struct{ name, value *Template }

// parseHeaders compiles the headers. Those that are the same for every event are kept as
// bytes, unless others are not.
func (g *Generator) parseHeaders(s Spec) error {
	o := TemplateOptions{Use: Live}
	if s.Pooled {
		o.Use = Ahead
	}
	constant := true
	for i, h := range s.Headers {
		name, value, ok := CutText(h, '=')
		if !ok || name == "" {
			return fmt.Errorf("header %q has no name and value: want NAME=VALUE, such as source=carronade", h)
		}
		var made madeHeader
		for j, part := range []struct {
			to   **Template
			text string
			at   int
		}{{&made.name, name, 0}, {&made.value, value, len(name) + 1}} {
			o.Seed = mix(mix(s.Seed, saltHeader), uint64(2*i+j))
			t, err := compile(part.text, part.at, o)
			if err != nil {
				return fmt.Errorf("header %q: %w", shortened(h), err)
			}
			*part.to = t
			constant = constant && t.Constant()
		}
		g.made = append(g.made, made)
	}
	if constant {
		for _, m := range g.made {
			g.headers = append(g.headers, Header{Key: string(m.name.Append(nil, 0)), Value: m.value.Append([]byte{}, 0)})
		}
		g.made = nil
	}
	return nil
}

// compile compiles a part of a text, at an offset of the whole text: errors name places in the whole.
func compile(text string, at int, o TemplateOptions) (*Template, error) {
	t, err := ParseTemplate(text, o)
	if wrong, ok := errors.AsType[*TemplateError](err); ok {
		wrong.Column += at
	}
	return t, err
}

// Varies reports whether the key, a header or the offset in a ring is an expression whose
// value is not the same for all events. Such events are worth making when they are sent. It returns false for a
// specification that New refuses.
func (s Spec) Varies() bool {
	g := &Generator{}
	if g.parseHeaders(s) != nil {
		return false
	}
	k, err := parseKeys(orDefault(s.Key, "none"), 0)
	return err == nil && (g.made != nil || k.template != nil && !k.template.Constant() || k.prefix != nil && !k.prefix.Constant() || ringVaries(s.Payload))
}

// HeadersVary reports whether headers differ between events: they are then made by
// AppendHeader, and Headers returns none.
func (g *Generator) HeadersVary() bool { return g.made != nil }

// Headers returns the headers of every event, in the given order. The slice belongs to
// the generator.
func (g *Generator) Headers() []Header { return g.headers }

// NumHeaders returns the number of headers of an event.
func (g *Generator) NumHeaders() int { return max(len(g.headers), len(g.made)) }

// AppendHeader appends the name and the value of header i of event n, and returns how
// many of the appended bytes are the name. If a header contains the time, it differs from
// call to call.
func (g *Generator) AppendHeader(dst []byte, i int, n uint64) (out []byte, name int) {
	if g.made == nil {
		h := g.headers[i]
		return append(append(dst, h.Key...), h.Value...), len(h.Key)
	}
	from := len(dst)
	dst = g.made[i].name.Append(dst, n)
	name = len(dst) - from
	return g.made[i].value.Append(dst, n), name
}

// MaxHeader returns the maximum bytes of the name and of the value of header i, and whether
// it contains the time, so that it is made anew for each call of AppendHeader.
func (g *Generator) MaxHeader(i int) (name, value int, timed bool) {
	if g.made == nil {
		return len(g.headers[i].Key), len(g.headers[i].Value), false
	}
	m := &g.made[i]
	return m.name.MaxLen(), m.value.MaxLen(), m.name.Timed() || m.value.Timed()
}

// describeHeaders describes the headers, for a report: nothing without any.
func (g *Generator) describeHeaders() string {
	n := g.NumHeaders()
	if n == 0 {
		return ""
	}
	text := fmt.Sprintf("; %d headers", n)
	if n == 1 {
		text = "; 1 header"
	}
	if g.made != nil {
		return text + " made for each event"
	}
	bytes := 0
	for _, h := range g.headers {
		bytes += len(h.Key) + len(h.Value)
	}
	return text + ", " + units.FormatSize(int64(bytes))
}
