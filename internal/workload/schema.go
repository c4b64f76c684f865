package workload

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"

	"carronade/protocol"
)

// Schema is the JSON schema of workload files for the kinds, which editors use for completion
// and checks. A file is one workload or a list of them. The schema is made from the table and
// ends with a newline.
func Schema(kinds []protocol.Kind) []byte {
	var b bytes.Buffer
	b.WriteString(`{"$schema":"https://json-schema.org/draft/2020-12/schema","title":"carronade workload",`)
	b.WriteString(`"anyOf":[{"$ref":"#/$defs/workload"},{"type":"array","minItems":1,"items":{"$ref":"#/$defs/workload"}}],`)
	b.WriteString(`"$defs":{"workload":{"type":"object","additionalProperties":false,"properties":{`)
	b.WriteString(`"target":`)
	b.Write(quote(map[string]string{"type": "string", "description": "URL of the system under test, such as " + examples(kinds)}))
	seen := map[string]bool{"target": true}
	for _, k := range append([]protocol.Kind{nil}, kinds...) {
		table := Table(k)
		for i := range table {
			s := &table[i]
			if seen[s.Name] || s.FlagOnly {
				continue
			}
			seen[s.Name] = true
			b.WriteByte(',')
			b.Write(quote(s.Name))
			b.WriteByte(':')
			b.Write(quote(s.schema()))
		}
	}
	b.WriteString(`,"parts":{"type":"array","minItems":1,"maxItems":` + strconv.Itoa(mostParts) +
		`,"description":"several loads that run as one, each with a share of all events","items":{"$ref":"#/$defs/part"}}`)
	b.WriteString(`}},"part":{"type":"object","additionalProperties":false,"properties":{`)
	for _, s := range PartTable() {
		b.Write(quote(s.Name))
		b.WriteByte(':')
		b.Write(quote(s.schema()))
		b.WriteByte(',')
	}
	for i, name := range partSettings(kinds) {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(quote(name))
		b.WriteString(`:{"$ref":"#/$defs/workload/properties/` + name + `"}`)
	}
	b.WriteString("}}}}")
	var out bytes.Buffer
	if err := json.Indent(&out, b.Bytes(), "", "  "); err != nil {
		panic(err) // a bug in the table
	}
	out.WriteByte('\n')
	return out.Bytes()
}

// partSettings are the settings of a workload that a part may have, too, each once.
func partSettings(kinds []protocol.Kind) []string {
	out := []string{"target", "op"}
	for _, k := range kinds {
		for _, s := range Table(k) {
			if s.Kind != "" && !slices.Contains(out, s.Name) {
				out = append(out, s.Name)
			}
		}
	}
	return out
}

func (s *Setting) schema() map[string]any {
	m := map[string]any{"description": s.Help}
	if s.Kind != "" {
		m["description"] = s.Kind + ": " + s.Help
	}
	switch s.Type {
	case protocol.Bool:
		m["type"] = "boolean"
	case protocol.List:
		text := map[string]any{"type": []string{"string", "number", "boolean"}}
		m["anyOf"] = []any{
			text,
			map[string]any{"type": "array", "items": text},
			map[string]any{"type": "object", "additionalProperties": text},
		}
	case protocol.Int, protocol.Float, protocol.Size, protocol.Rate, protocol.Share:
		m["type"] = []string{"number", "string"}
	case protocol.Duration:
		m["type"] = "string"
	default:
		m["type"] = []string{"string", "number", "boolean"}
	}
	if len(s.Choices) > 0 && s.Type != protocol.List {
		var choices []any
		for _, c := range s.Choices {
			choices = append(choices, c)
			if n, err := strconv.Atoi(c); err == nil {
				choices = append(choices, n)
			}
		}
		m["enum"] = choices
		delete(m, "type")
	}
	if s.Default != "" && s.Name != "op" {
		m["default"] = s.Default
		if s.Type == protocol.Bool {
			m["default"] = s.Default == "true"
		}
	}
	return m
}
