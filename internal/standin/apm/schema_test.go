package apm

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	wire "carronade/internal/wire/apm"
)

// Every event that is made is accepted by the schemas as a library reads them
// and by the judge, over the ranges of a request's make-up, 0 and 1 among them.
func TestSchemasAcceptWhatIsMade(t *testing.T) {
	compiled := map[string]*jsonschema.Schema{}
	entries, err := schemas.ReadDir("schema")
	if err != nil || len(entries) < 10 {
		t.Fatalf("%d schemas, %v: want all", len(entries), err)
	}
	for _, e := range entries {
		raw, _ := schemas.ReadFile("schema/" + e.Name())
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		c := jsonschema.NewCompiler()
		if err := c.AddResource(e.Name(), doc); err != nil {
			t.Fatal(err)
		}
		if compiled[strings.TrimSuffix(e.Name(), ".json")], err = c.Compile(e.Name()); err != nil {
			t.Fatal(err)
		}
	}
	rum := map[string]string{"m": "metadata", "x": "transaction", "e": "error"}
	check := func(t *testing.T, name string, v any) {
		t.Helper()
		s := compiled[name]
		if s == nil {
			t.Fatalf("no schema %s", name)
		}
		if err := s.Validate(v); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	ranges := []wire.Range{{}, {Min: 1, Max: 1}, {Min: 0, Max: 3}}
	tried := 0
	for _, p := range []wire.Protocol{wire.IntakeV2, wire.RUMV2, wire.RUMV3, wire.V1} {
		for _, e := range ranges {
			for _, s := range ranges {
				for _, f := range ranges {
					mk, err := wire.NewMaker(wire.Makeup{Protocol: p, Events: e, Spans: s, Frames: f}, 9)
					if err != nil {
						t.Fatal(err)
					}
					for n := range uint64(4) {
						b := mk.Make(n)
						if p == wire.V1 && b.Events() == 0 {
							continue // a document of nothing is refused, by the real one too
						}
						tried++
						got := wire.Counts{}
						var j judge
						if p == wire.V1 {
							name, rule := "v1-transactions", allRules().transactions
							if s.Max == 0 {
								name, rule = "v1-errors", allRules().errors
							}
							v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b.Bytes))
							if err != nil {
								t.Fatal(err)
							}
							check(t, name, v)
							if err := j.document(rule, b.Bytes); err != nil {
								t.Error(err)
							}
							got = j.counts
						} else {
							for i, line := range bytes.Split(bytes.TrimSpace(b.Bytes), []byte("\n")) {
								var m map[string]json.RawMessage
								if err := json.Unmarshal(line, &m); err != nil {
									t.Fatal(err)
								}
								set := allRules().v2
								for kind, raw := range m {
									name := "v2-" + kind
									if p == wire.RUMV3 {
										name, set = "rumv3-"+rum[kind], allRules().rum
									}
									v, _ := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
									check(t, name, v)
								}
								if _, err := j.line(set, line); err != nil {
									t.Error(err)
								}
								if k, ok := wire.KindOfLine(line); ok {
									j.counts[k]++
								} else if i > 0 {
									t.Errorf("line %d is no event", i)
								}
								for k, v := range j.counts {
									got[k] += v
								}
							}
						}
						if got != b.Counts {
							t.Errorf("%v %v %v %v: the judge counts %v, want %v", p, e, s, f, got, b.Counts)
						}
					}
				}
			}
		}
	}
	if tried < 300 {
		t.Errorf("%d bodies tried, want more", tried)
	}
}

func TestDocumentsOfV1Refused(t *testing.T) {
	service := `"service":{"name":"a","agent":{"name":"b","version":"1"}}`
	tx := `{"id":"945254c5-67a5-417e-8a4e-aa29efcbfb79","timestamp":"2026-11-21T13:00:00.000Z","name":"n","type":"t","duration":1`
	tests := []struct{ name, in, want string }{
		{"good", `{` + service + `,"transactions":[` + tx + `}]}`, ""},
		{"no service", `{"transactions":[` + tx + `}]}`, "service: required"},
		{"no transactions", `{` + service + `,"transactions":[]}`, "at least 1"},
		{"an id that is none", `{` + service + `,"transactions":[` + strings.Replace(tx, "945254c5-", "", 1) + `}]}`, "transactions[0].id"},
		{"a parent without id", `{` + service + `,"transactions":[` + tx + `,"spans":[{"name":"n","type":"t","start":1,"duration":1,"parent":3}]}]}`, "parent requires id"},
		{"no JSON", `{` + service + `,`, "not JSON"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var j judge
			err := j.document(allRules().transactions, []byte(tt.in))
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// Whatever comes, the judge ends, and takes only JSON.
func FuzzJudge(f *testing.F) {
	for _, s := range samples(f) {
		f.Add(s[1])
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var j judge
		_, err := j.line(allRules().v2, in)
		if err == nil && !json.Valid(in) {
			t.Errorf("%q is taken", in)
		}
		_, _ = j.line(allRules().rum, in)
		_ = j.document(allRules().transactions, in)
	})
}

func BenchmarkJudge(b *testing.B) {
	mk, err := wire.NewMaker(wire.Makeup{Events: wire.Range{Min: 10, Max: 10}, Spans: wire.Range{Min: 10, Max: 10}, Frames: wire.Range{Min: 10, Max: 10}}, 1)
	if err != nil {
		b.Fatal(err)
	}
	body := mk.Make(0)
	lines := bytes.Split(bytes.TrimSpace(body.Bytes), []byte("\n"))
	b.Run("ours", func(b *testing.B) {
		b.SetBytes(int64(len(body.Bytes)))
		b.ReportAllocs()
		var j judge
		for range b.N {
			for _, l := range lines {
				if _, err := j.line(allRules().v2, l); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("Elastic's", func(b *testing.B) {
		b.SetBytes(int64(len(body.Bytes)))
		b.ReportAllocs()
		for range b.N {
			if n, err := decoder(body.Bytes); err != nil || n != body.Events() {
				b.Fatal(n, err)
			}
		}
	})
}
