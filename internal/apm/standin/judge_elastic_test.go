//go:build conformance

package standin

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/elastic/apm-data/input/elasticapm"
	"github.com/elastic/apm-data/model/modelpb"
	"go.elastic.co/apm/v2"
	"go.elastic.co/apm/v2/transport"

	"carronade/internal/apm/wire"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// A freeSemaphore never blocks.
type freeSemaphore struct{}

func (freeSemaphore) Acquire(context.Context, int64) error { return nil }
func (freeSemaphore) TryAcquire(int64) bool                { return true }
func (freeSemaphore) Release(int64)                        {}

var elastic = elasticapm.NewProcessor(elasticapm.Config{MaxEventSize: 1 << 20, Semaphore: freeSemaphore{}})

func decode(lines ...[]byte) (accepted int, err error) {
	var result elasticapm.Result
	none := modelpb.ProcessBatchFunc(func(context.Context, *modelpb.Batch) error { return nil })
	err = elastic.HandleStream(context.Background(), &modelpb.APMEvent{}, bytes.NewReader(append(bytes.Join(lines, []byte("\n")), '\n')), 100, none, &result)
	if err == nil && len(result.Errors) > 0 {
		err = result.Errors[0]
	}
	return result.Accepted, err
}

// samples are lines of all kinds, each after the metadata of its request.
func samples(t testing.TB) map[string][2][]byte {
	t.Helper()
	all := map[string][2][]byte{}
	for _, p := range []wire.Protocol{wire.IntakeV2, wire.RUMV2, wire.RUMV3} {
		mix := [wire.Kinds]int{1, 1, 1, 1, 1}
		if p == wire.RUMV3 {
			mix = [wire.Kinds]int{wire.Transaction: 1, wire.Error: 1}
		}
		mk, err := wire.NewMaker(wire.Makeup{Protocol: p, Events: wire.Range{Min: 40, Max: 40}, Spans: wire.Range{Min: 1, Max: 2}, Frames: wire.Range{Min: 1, Max: 2}, Mix: mix}, 1)
		assert.OK(t, err)
		lines := bytes.Split(bytes.TrimSpace(mk.Make(0).Bytes), []byte("\n"))
		for _, l := range lines {
			kind, _, _ := bytes.Cut(l[2:], []byte(`"`))
			all[fmt.Sprintf("%v %s", p, kind)] = [2][]byte{lines[0], l}
		}
	}
	return all
}

func pathsOf(v any, path []any) (all [][]any) {
	each := func(key, child any) {
		p := append(slices.Clone(path), key)
		all = append(all, p)
		all = append(all, pathsOf(child, p)...)
	}
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			each(k, v[k])
		}
	case []any:
		for i := range min(1, len(v)) {
			each(i, v[i])
		}
	}
	return all
}

// removed as a replacement removes a member.
type removed struct{}

func replaceAt(v any, path []any, by any) any {
	if len(path) == 0 {
		return by
	}
	switch v := v.(type) {
	case map[string]any:
		c := maps.Clone(v)
		k := path[0].(string)
		if c[k] = replaceAt(v[k], path[1:], by); c[k] == any(removed{}) {
			delete(c, k)
		}
		return c
	case []any:
		c := slices.Clone(v)
		if c[path[0].(int)] = replaceAt(c[path[0].(int)], path[1:], by); c[0] == any(removed{}) {
			return c[1:]
		}
		return c
	}
	return v
}

func valueOf(n *node, within []*node) any {
	depth := 0
	for _, w := range within {
		if w == n {
			depth++
		}
	}
	if n == nil || depth > 1 {
		return nil
	}
	within = append(slices.Clone(within), n)
	switch {
	case n.types&tokenBit(wire.BeginObject) != 0:
		v := map[string]any{}
		for name, c := range n.members {
			if w := valueOf(c.node, within); w != nil {
				v[name] = w
			}
		}
		if n.others != nil {
			v["k"] = valueOf(n.others, within)
		}
		if len(v) == 0 {
			v["k"] = 1
		}
		return v
	case n.types&tokenBit(wire.BeginArray) != 0:
		if v := valueOf(n.items, within); v != nil {
			return []any{v}
		}
		return nil
	case len(n.enum) > 0:
		return n.enum[0]
	case n.isTime:
		return "2026-11-21T13:00:00+01:00"
	case n.types&tokenBit(wire.Number) != 0 && n.minimum != nil:
		return *n.minimum
	case n.types&tokenBit(wire.Number) != 0:
		return 3
	case n.types&tokenBit(wire.Bool) != 0:
		return true
	}
	return "a"
}

// Each member of each kind of event is removed, and replaced by values of each type. The validator must agree with Elastic's
// decoder. The events are generated ones, and some with all members that the rules have.
func TestJudgeAgreesWithElastic(t *testing.T) {
	t.Parallel()
	testkit.Need(t, "some seconds")
	long, most := strings.Repeat("\u00e4", 1025), strings.Repeat("\u00e4", 1024)
	replacements := []any{
		removed{},
		nil, 1, -1, 0, 1.5, "", "text", "a/b", "17", "2026-11-21T13:00:00Z", "failure", long, most, true,
		[]any{},
		[]any{1},
		[]any{-1},
		[]any{"a"},
		[]any{nil},
		[]any{long},
		[]any{map[string]any{}},
		[]any{[]any{}},
		map[string]any{},
		map[string]any{"a": 1},
		map[string]any{"a": "b"},
		map[string]any{"a": nil},
		map[string]any{"a": long},
		map[string]any{"a": map[string]any{}},
		map[string]any{"a": map[string]any{"b": "c"}},
		map[string]any{"a*": map[string]any{"value": 1}},
	}
	all := samples(t)
	for kind, rule := range allRules().lines {
		meta := all["v2 metadata"][1]
		if len(kind) == 1 {
			meta = all["rum-v3 m"][1]
		}
		line := assert.Value(json.Marshal(map[string]any{kind: valueOf(rule, nil)}))(t)
		all["whole "+kind] = [2][]byte{meta, line}
		if kind == "log" { // nested objects replace names with dots: one without the other
			delete(all, "whole log")
			for _, nested := range []bool{false, true} {
				v := valueOf(rule, nil).(map[string]any)
				maps.DeleteFunc(v, func(name string, w any) bool {
					_, object := w.(map[string]any)
					return nested && strings.Contains(name, ".") || !nested && object && name != "faas" && name != "labels"
				})
				line = assert.Value(json.Marshal(map[string]any{kind: v}))(t)
				all[fmt.Sprintf("whole log, nested %t", nested)] = [2][]byte{meta, line}
			}
		}
	}
	tried, refused := 0, 0
	for name, s := range all {
		t.Run(name, func(t *testing.T) {
			var v any
			assert.OK(t, json.Unmarshal(s[1], &v))
			differ := map[string]int{}
			try := func(path []any, by, v any) (err error) {
				line := assert.Value(json.Marshal(v))(t)
				lines := [][]byte{s[0], line}
				if strings.Contains(name, "metadata") || strings.HasSuffix(name, " m") {
					lines = lines[1:]
				}
				_, want := decode(lines...)
				var j validator
				_, got := j.line(line)
				if (got == nil) != (want == nil) {
					differ[fmt.Sprintf("%v = %.30v: the validator says %v, the decoder %v", path, by, got, want)]++
				}
				tried++
				if want != nil {
					refused++
				}
				return want
			}
			assert.OK(t, try(nil, "as it is", v), "the unchanged event")
			for _, path := range pathsOf(v, nil) {
				if len(path) == 1 {
					continue
				}
				for _, by := range replacements {
					_ = try(path, by, replaceAt(v, path, by))
				}
			}
			for d := range differ {
				t.Error(d)
			}
		})
	}
	t.Logf("%d events tried, %d refused by Elastic's decoder", tried, refused)
	assert.True(t, tried >= 30000 && refused >= 10000, "%d events tried, %d of them refused, want more", tried, refused)
}

// Lines that JSON encoders do not write. The validator is stricter than the decoder
// about JSON itself, so that the mistakes of a generator are found.
func TestJudgeAgreesOnOddLines(t *testing.T) {
	t.Parallel()
	const span = `"id":"1","trace_id":"2","parent_id":"3","name":"n","type":"t","start":1,"duration":1`
	deep := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	const stricter = "stricter: "
	tests := []struct{ name, line string }{
		{"not UTF-8", `{"span":{` + strings.Replace(span, `"n"`, "\"\xff\xfe\"", 1) + `}}`},
		{"not UTF-8 in a long text", `{"span":{` + strings.Replace(span, `"n"`, `"`+strings.Repeat("\xff", 1025)+`"`, 1) + `}}`},
		{"a pair", `{"span":{` + strings.Replace(span, `"n"`, `"`+strings.Repeat(`\ud83d\ude00`, 1024)+`"`, 1) + `}}`},
		{"too many pairs", `{"span":{` + strings.Replace(span, `"n"`, `"`+strings.Repeat(`\ud83d\ude00`, 1025)+`"`, 1) + `}}`},
		{"what is not UTF-8 after the object", `{"span":{` + span + "}}\xff\x00"},
		{"deep in what is free", `{"transaction":{"id":"1","trace_id":"2","type":"t","duration":1,"span_count":{"started":1},"context":{"custom":` + deep(40) + `}}}`},
		{"a log with a long level", `{"log":{"log.level":"` + strings.Repeat("x", 1025) + `"}}`},
		{"a log with a long nested level", `{"log":{"log":{"level":"` + strings.Repeat("x", 1025) + `"}}}`},
		{stricter + "a log with a long level that a nested one replaces", `{"log":{"log.level":"` + strings.Repeat("x", 1025) + `","log":{"level":"INFO"}}}`},
		{"a byte-order mark", "\ufeff" + `{"span":{` + span + `}}`},
		{"a control character", `{"span":{` + span + ",\"subtype\":\"\x01\"}}"},
		{"a control character before an escape", `{"span":{` + span + ",\"subtype\":\"\x01\\n\"}}"},
		{"a control character after an escape", `{"span":{` + span + ",\"subtype\":\"\\n\x01\t\"}}"},
		{"a control character after an escape of an unknown member", `{"span":{` + span + ",\"other\":[\"\\n\x01\t\"]}}"},
		{"a control character after an escape in a label's name", `{"span":{` + span + ",\"context\":{\"tags\":{\"\\n\x01\":1}}}}"},
		{"a control character in a label's name", `{"span":{` + span + ",\"context\":{\"tags\":{\"\x01\":1}}}}"},
		{"a control character in a name", `{"span":{` + span + ",\"\x01\":1}}"},
		{stricter + "a control character in the name of a small object", `{"span":{` + span + ",\"composite\":{\"count\":2,\"sum\":1,\"compression_strategy\":\"a\",\"\x01\":1}}}"},
	}
	for _, row := range testkit.Table[[2]string](t, "testdata/odd_lines.yaml") {
		tests = append(tests, struct{ name, line string }{row[0], strings.Replace(row[1], "SPAN", span, 2)})
	}
	meta := samples(t)["v2 metadata"][1]
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			accepted, want := decode(meta, []byte(tt.line))
			var j validator
			_, got := j.line(bytes.TrimSpace([]byte(tt.line)))
			if got == nil && want == nil {
				assert.Equal(t, j.counts.Events(), accepted, "events")
			}
			if strings.HasPrefix(tt.name, stricter) {
				assert.True(t, got != nil && want == nil,
					"the validator says %v, the decoder %v: want only the validator to refuse it", got, want)
			} else if (got == nil) != (want == nil) {
				t.Errorf("the validator says %v, the decoder %v", got, want)
			}
		})
	}
}

// The validator returns for every input, and accepts only JSON that Elastic's decoder accepts too.
func FuzzJudge(f *testing.F) {
	all := samples(f)
	for _, s := range all {
		f.Add(s[1])
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var j validator
		if kind, err := j.line(in); err == nil {
			assert.True(t, json.Valid(escapeControls(in[:j.end])), "%q is accepted", in)
			lines := [][]byte{all["v2 metadata"][1], in}
			if kind == "metadata" || kind == "m" {
				lines = lines[1:]
			}
			_, err := decode(lines...)
			assert.True(t, err == nil || bytes.ContainsAny(in, "\r\n"), "%q is accepted, and Elastic's decoder says %v", in, err)
		}
		_ = j.document(allRules().transactions, in)
	})
}

// Everything that Elastic's agent sends is accepted.
func TestElasticAgent(t *testing.T) {
	t.Parallel()
	files, _ := certificate(t)
	for _, tt := range []struct {
		name   string
		o      Options
		scheme string
	}{{"plain", Options{}, "http"}, {"token over TLS", Options{SecretToken: "canary", NoRUM: true, TLS: files}, "https"}} {
		t.Run(tt.name, func(t *testing.T) {
			s := start(t, tt.o)
			base, _ := url.Parse(tt.scheme + "://" + s.Addr())
			tr, err := transport.NewHTTPTransport(transport.HTTPTransportOptions{
				ServerURLs: []*url.URL{base}, SecretToken: string(tt.o.SecretToken),
				TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // the test's certificate
			})
			assert.OK(t, err)
			tracer := assert.Value(apm.NewTracerOptions(apm.TracerOptions{ServiceName: "shop", ServiceVersion: "1", ServiceEnvironment: "test", Transport: tr}))(t)
			defer tracer.Close()
			tracer.SetSpanCompressionEnabled(false)
			tracer.SetExitSpanMinDuration(0)
			tracer.SetSpanStackTraceMinDuration(0)
			const transactions, spans = 20, 5
			for range transactions {
				tx := tracer.StartTransaction("GET /orders/{id}", "request")
				ctx := apm.ContextWithTransaction(context.Background(), tx)
				req, _ := http.NewRequestWithContext(ctx, http.MethodPost, "http://shop.example.com/orders/7?x=y", nil)
				tx.Context.SetHTTPRequest(req)
				tx.Context.SetHTTPStatusCode(201)
				tx.Context.SetLabel("tier", "gold")
				tx.Context.SetCustom("cart", map[string]any{"lines": 3})
				tx.Context.SetUsername("ada")
				for range spans {
					span, _ := apm.StartSpan(ctx, "SELECT FROM orders", "db.postgresql.query")
					span.Context.SetDatabase(apm.DatabaseSpanContext{Instance: "shop", Statement: "SELECT 1", Type: "sql"})
					span.Context.SetDestinationAddress("db.example.internal", 5432)
					span.End()
				}
				apm.CaptureError(ctx, errors.New("no such order")).Send()
				tx.End()
			}
			tracer.SendMetrics(nil)
			tracer.Flush(nil)
			testkit.Until(t, "all have arrived", func() bool {
				c := s.Counts()
				return c.Transactions == transactions && c.Spans == transactions*spans && c.Errors == transactions && c.Metricsets > 0
			})
			c := s.Counts()
			assert.True(t, c.Invalid+c.TooLarge+c.Unauthorized == 0, "it refused some: %v", c)
		})
	}
}
