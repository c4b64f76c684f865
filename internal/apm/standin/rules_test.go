package standin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"carronade/internal/apm/wire"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

func publishedSchemas(t testing.TB) map[string][]byte {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/elastic/apm-data").Output()
	assert.OK(t, err, "find Elastic's schemas")
	all := map[string][]byte{}
	for _, name := range []string{"v2/metadata", "v2/transaction", "v2/span", "v2/error", "v2/metricset", "rumv3/metadata", "rumv3/transaction", "rumv3/error"} {
		all[name], err = os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "input/elasticapm/docs/spec", filepath.FromSlash(name)+".json"))
		assert.OK(t, err)
	}
	return all
}

func ruleOf(schema string) *node {
	protocol, name, _ := strings.Cut(schema, "/")
	if protocol != "v2" {
		name = map[string]string{"metadata": "m", "transaction": "x", "error": "e"}[name]
	}
	return allRules().lines[name]
}

// facts are the conditions on each member, by its path.
type facts map[string][]string

func (f facts) add(path, format string, args ...any) {
	f[path] = append(f[path], fmt.Sprintf(format, args...))
}

func (f facts) sort() {
	for _, list := range f {
		slices.Sort(list)
	}
}

// ofSchema collects the conditions of a JSON Schema. It fails at a keyword that it does not know.
func (f facts) ofSchema(t *testing.T, path string, s map[string]any) {
	t.Helper()
	f[path] = []string{}
	strs := func(v any) (all []string) {
		switch v := v.(type) {
		case string:
			all = []string{v}
		case []any:
			for _, e := range v {
				if e, ok := e.(string); ok { // null is ignored
					all = append(all, e)
				}
			}
		}
		return all
	}
	members, _ := s["properties"].(map[string]any)
	// together reads one half of a condition on two members: the presence of a
	// member, with a type that the member must have in any case.
	together := func(v any) string {
		c := v.(map[string]any)
		names := strs(c["required"])
		assert.Must(t, len(c) == 2 && len(names) == 1 && len(c["properties"].(map[string]any)) == 1,
			"%s: a condition of another form: %v", path, c)
		of := c["properties"].(map[string]any)[names[0]].(map[string]any)["type"]
		if is := strs(members[names[0]].(map[string]any)["type"]); !slices.Equal(slices.DeleteFunc(is, func(s string) bool { return s == "null" }), strs(of)) {
			t.Fatalf("%s: a condition on %s that depends on its type", path, names[0])
		}
		return names[0]
	}
	for word, v := range s {
		switch word {
		case "description", "$id", "title", "$schema":
		case "type":
			for _, name := range strs(v) {
				if name != "null" {
					f.add(path, "%s", name)
				}
			}
		case "properties":
			for name, c := range members {
				f.ofSchema(t, path+"."+name, c.(map[string]any))
			}
		case "required":
			for _, name := range strs(v) {
				f.add(path, "%s required", name)
			}
		case "items":
			f.ofSchema(t, path+"[]", v.(map[string]any))
		case "additionalProperties":
			if c, ok := v.(map[string]any); ok {
				f.ofSchema(t, path+".*", c)
			}
		case "patternProperties":
			for pattern, c := range v.(map[string]any) {
				f.add(path, "names %s", pattern)
				f.ofSchema(t, path+".*", c.(map[string]any))
			}
		case "enum":
			f.add(path, "%v", strs(v))
		case "anyOf":
			var names []string
			for _, c := range v.([]any) {
				names = append(names, together(c))
			}
			slices.Sort(names)
			f.add(path, "one of %v", names)
		case "allOf":
			for _, c := range v.([]any) {
				c := c.(map[string]any)
				f.add(path, "%s needs %s", together(c["if"]), together(c["then"]))
			}
		case "maxLength", "minLength", "pattern", "minimum":
			f.add(path, "%s %v", word, v)
		case "minItems":
			if v.(float64) != 0 {
				f.add(path, "%s %v", word, v)
			}
		default:
			t.Fatalf("%s: unknown keyword %s", path, word)
		}
	}
}

func (f facts) ofNode(path string, n *node, within []*node) {
	if f[path] = []string{}; slices.Contains(within, n) {
		f.add(path, "object")
		return
	}
	within = append(within, n)
	for i, name := range []string{"object", "array", "string", "number", "boolean"} {
		if name == "number" && n.integer {
			name = "integer"
		}
		if n.types>>i&1 != 0 {
			f.add(path, "%s", name)
		}
	}
	for _, name := range n.namesOf(n.required) {
		f.add(path, "%s required", name)
	}
	if n.anyOf != 0 {
		names := n.namesOf(n.anyOf)
		slices.Sort(names)
		f.add(path, "one of %v", names)
	}
	for _, w := range n.needs {
		for _, name := range n.namesOf(w.required) {
			f.add(path, "%s needs %s", n.namesOf(w.trigger)[0], name)
		}
	}
	if n.otherNames != nil {
		f.add(path, "names %v", n.otherNames)
	}
	if n.maxLength > 0 {
		f.add(path, "maxLength %d", n.maxLength)
	}
	if n.minLength > 0 {
		f.add(path, "minLength %d", n.minLength)
	}
	if n.pattern != nil {
		f.add(path, "pattern %v", n.pattern)
	}
	if n.minimum != nil {
		f.add(path, "minimum %v", *n.minimum)
	}
	if n.minItems > 0 {
		f.add(path, "minItems %d", n.minItems)
	}
	if len(n.enum) > 0 {
		f.add(path, "%v", n.enum)
	}
	for name, c := range n.members {
		f.ofNode(path+"."+name, c.node, within)
	}
	if n.others != nil {
		f.ofNode(path+".*", n.others, within)
	}
	if n.items != nil {
		f.ofNode(path+"[]", n.items, within)
	}
}

// Our rules contain the same conditions as Elastic's schemas.
func TestRulesMatchSchemas(t *testing.T) {
	t.Parallel()
	testkit.OnlyConformance(t, "Elastic's decoder, whose module has the schemas")
	compared := 0
	for name, raw := range publishedSchemas(t) {
		t.Run(name, func(t *testing.T) {
			var schema map[string]any
			assert.OK(t, json.Unmarshal(raw, &schema))
			got, want := facts{}, facts{}
			want.ofSchema(t, "", schema)
			got.ofNode("", ruleOf(name), nil)
			// Where the two may differ.
			for path, list := range want {
				// Every name matches this.
				want[path] = slices.DeleteFunc(list, func(s string) bool { return s == "names [.*]*$" })
			}
			for path, list := range got {
				// The decoder requires that a port given as text is a number.
				if strings.HasSuffix(path, ".url.port") {
					got[path] = slices.DeleteFunc(list, func(s string) bool { return s == "pattern ^[+-]?[0-9]+$" })
				}
				// It accepts a time as text.
				if strings.HasSuffix(path, "timestamp") {
					got[path] = slices.DeleteFunc(got[path], func(s string) bool { return s == "string" })
				}
				// It accepts an empty name of an event's service.
				if i := slices.Index(list, "pattern ^[a-zA-Z0-9 _-]*$"); i >= 0 {
					list[i] = "pattern ^[a-zA-Z0-9 _-]+$"
				}
			}
			got.sort()
			want.sort()
			assert.Same(t, got, want, "rules and the schema")
			compared += len(want)
		})
	}
	assert.True(t, compared >= 700, "%d members compared, want more", compared)
}

func TestLoad(t *testing.T) {
	t.Parallel()
	for _, tt := range testkit.Table[struct{ Name, In, Want string }](t, "testdata/rules.yaml") {
		t.Run(tt.Name, func(t *testing.T) {
			got, err := load(tt.In, "a")
			if tt.Want == "" {
				assert.True(t, err == nil && got["a"] != nil && got["a"].members["y"].items.members["z"].minimum != nil,
					"got %+v, %v", got["a"], err)
			} else if err == nil || !strings.Contains(err.Error(), tt.Want) {
				t.Errorf("got %v, want %q", err, tt.Want)
			}
		})
	}
}

// The validator, and in conformance Elastic's schemas, as a library reads them, accept every
// event that is made, over the ranges of a request's make-up, including 0 and 1.
func TestMadeEventsAreAccepted(t *testing.T) {
	t.Parallel()
	compiled, published := map[string]*jsonschema.Schema{}, map[string][]byte{}
	if testkit.Conformance {
		published = publishedSchemas(t)
	}
	for name, raw := range published {
		doc := assert.Value(jsonschema.UnmarshalJSON(bytes.NewReader(raw)))(t)
		c := jsonschema.NewCompiler()
		assert.OK(t, c.AddResource(name, doc))
		compiled[name] = assert.Value(c.Compile(name))(t)
	}
	rum := map[string]string{"m": "rumv3/metadata", "x": "rumv3/transaction", "e": "rumv3/error"}
	ranges := []wire.Range{{}, {Min: 1, Max: 1}, {Min: 0, Max: 3}}
	tried := 0
	try := func(t *testing.T, m wire.Makeup) {
		t.Helper()
		mk := assert.Value(wire.NewMaker(m, 9))(t)
		for n := range uint64(4) {
			b := mk.Make(n)
			if m.Protocol == wire.V1 && b.Events() == 0 {
				continue // an empty document is refused, by the real server too
			}
			tried++
			got := wire.Counts{}
			var j validator
			if m.Protocol == wire.V1 {
				rule := allRules().transactions
				if m.Spans.Max == 0 {
					rule = allRules().errors
				}
				err := j.document(rule, b.Bytes)
				assert.True(t, err == nil, "%v", err)
				got = j.counts
			} else {
				for i, line := range bytes.Split(bytes.TrimSpace(b.Bytes), []byte("\n")) {
					var v map[string]json.RawMessage
					err := json.Unmarshal(line, &v)
					assert.Must(t, err == nil && len(v) == 1, "%d members: %v", len(v), err)
					kind := slices.Collect(maps.Keys(v))[0]
					schema := compiled["v2/"+kind]
					if m.Protocol == wire.RUMV3 {
						schema = compiled[rum[kind]]
					}
					value, _ := jsonschema.UnmarshalJSON(bytes.NewReader(v[kind]))
					assert.Must(t, !testkit.Conformance || schema != nil || kind == "log", "no schema of %s", kind) // Elastic publishes none for logs
					if schema != nil {
						err := schema.Validate(value)
						assert.True(t, err == nil, "%s: %v", kind, err)
					}
					_, err = j.line(line)
					assert.True(t, err == nil, "%v", err)
					_, ok := wire.KindOfLine(line)
					assert.True(t, ok || i <= 0, "line %d is not an event", i)
					for k, v := range j.counts {
						got[k] += v
					}
				}
			}
			assert.Equal(t, got, b.Counts, "%+v: the validator counts", m)
		}
	}
	for _, p := range []wire.Protocol{wire.IntakeV2, wire.RUMV2, wire.RUMV3, wire.V1} {
		for _, e := range ranges {
			for _, s := range ranges {
				for _, f := range ranges {
					try(t, wire.Makeup{Protocol: p, Events: e, Spans: s, Frames: f})
				}
			}
		}
	}
	for _, p := range []wire.Protocol{wire.IntakeV2, wire.RUMV2} {
		try(t, wire.Makeup{Protocol: p, Events: wire.Range{Min: 30, Max: 30}, Spans: ranges[2], Frames: ranges[2], Mix: [wire.Kinds]int{1, 1, 1, 1, 1}})
	}
	assert.True(t, tried >= 300, "%d bodies tried, want more", tried)
}

func TestDocumentsOfV1Refused(t *testing.T) {
	t.Parallel()
	service := `"service":{"name":"a","agent":{"name":"b","version":"1"}}`
	tx := `{"id":"945254c5-67a5-417e-8a4e-aa29efcbfb79","timestamp":"2026-11-21T13:00:00.000Z","name":"n","type":"t","duration":1`
	tests := []struct{ name, in, want string }{
		{"good", `{` + service + `,"transactions":[` + tx + `}]}`, ""},
		{"text after it", `{` + service + `,"transactions":[` + tx + `}]}]`, ""},
		{"no service", `{"transactions":[` + tx + `}]}`, "service: required"},
		{"no transactions", `{` + service + `,"transactions":[]}`, "at least 1"},
		{"an invalid id", `{` + service + `,"transactions":[` + strings.Replace(tx, "945254c5-", "", 1) + `}]}`, "transactions[0].id"},
		{"a parent without id", `{` + service + `,"transactions":[` + tx + `,"spans":[{"name":"n","type":"t","start":1,"duration":1,"parent":3}]}]}`, "parent requires id"},
		{"not JSON", `{` + service + `,`, "not JSON"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var j validator
			err := j.document(allRules().transactions, []byte(tt.in))
			assert.True(t, (err == nil) == (tt.want == "") && (err == nil || strings.Contains(err.Error(), tt.want)),
				"got %v, want %q", err, tt.want)
		})
	}
}
