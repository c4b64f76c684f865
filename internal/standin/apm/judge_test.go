package apm

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/elastic/apm-data/input/elasticapm"
	"github.com/elastic/apm-data/model/modelpb"

	wire "carronade/internal/wire/apm"
)

// open is a semaphore that never blocks.
type open struct{}

func (open) Acquire(context.Context, int64) error { return nil }
func (open) TryAcquire(int64) bool                { return true }
func (open) Release(int64)                        {}

var elastic = elasticapm.NewProcessor(elasticapm.Config{MaxEventSize: 1 << 20, Semaphore: open{}})

// decoder is what Elastic's decoder says to an event after its metadata.
func decoder(lines ...[]byte) (accepted int, err error) {
	var result elasticapm.Result
	none := modelpb.ProcessBatchFunc(func(context.Context, *modelpb.Batch) error { return nil })
	err = elastic.HandleStream(context.Background(), &modelpb.APMEvent{}, bytes.NewReader(append(bytes.Join(lines, []byte("\n")), '\n')), 100, none, &result)
	if err == nil && len(result.Errors) > 0 {
		err = result.Errors[0]
	}
	return result.Accepted, err
}

// samples are lines of all kinds, the metadata of their request first.
func samples(t testing.TB) map[string][2][]byte {
	t.Helper()
	all := map[string][2][]byte{}
	for _, p := range []wire.Protocol{wire.IntakeV2, wire.RUMV2, wire.RUMV3} {
		mix := [wire.Kinds]int{1, 1, 1, 1}
		if p == wire.RUMV3 {
			mix = [wire.Kinds]int{wire.Transaction: 1, wire.Error: 1}
		}
		mk, err := wire.NewMaker(wire.Makeup{Protocol: p, Events: wire.Range{Min: 40, Max: 40}, Spans: wire.Range{Min: 1, Max: 2}, Frames: wire.Range{Min: 1, Max: 2}, Mix: mix}, 1)
		if err != nil {
			t.Fatal(err)
		}
		lines := bytes.Split(bytes.TrimSpace(mk.Make(0).Bytes), []byte("\n"))
		for _, l := range lines {
			kind, _, _ := bytes.Cut(l[2:], []byte(`"`))
			all[fmt.Sprintf("%v %s", p, kind)] = [2][]byte{lines[0], l}
		}
	}
	return all
}

// places are the paths to all members and items of v.
func places(v any, path []any) (all [][]any) {
	each := func(key, child any) {
		p := append(slices.Clone(path), key)
		all = append(all, p)
		all = append(all, places(child, p)...)
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

// removed stands for no member at all.
type removed struct{}

// with returns a copy of v with what stands at path replaced.
func with(v any, path []any, by any) any {
	if len(path) == 0 {
		return by
	}
	switch v := v.(type) {
	case map[string]any:
		c := maps.Clone(v)
		k := path[0].(string)
		if c[k] = with(v[k], path[1:], by); c[k] == any(removed{}) {
			delete(c, k)
		}
		return c
	case []any:
		c := slices.Clone(v)
		if c[path[0].(int)] = with(c[path[0].(int)], path[1:], by); c[0] == any(removed{}) {
			return c[1:]
		}
		return c
	}
	return v
}

// Each member of each kind of event is removed and replaced by something of
// each type, and the judge has to agree with Elastic's decoder.
func TestJudgeAgreesWithElastic(t *testing.T) {
	replacements := []any{removed{}, nil, 1, -1, 1.5, "", "text", strings.Repeat("x", 1025), true, []any{}, []any{1}, []any{"a"}, []any{nil}, map[string]any{}, map[string]any{"a": 1}, map[string]any{"a": "b"}, map[string]any{"a": nil}}
	tried, refused := 0, 0
	for name, s := range samples(t) {
		t.Run(name, func(t *testing.T) {
			var v any
			if err := json.Unmarshal(s[1], &v); err != nil {
				t.Fatal(err)
			}
			set := allRules().v2
			if strings.HasPrefix(name, "rum-v3") {
				set = allRules().rum
			}
			differ := map[string]int{}
			for _, path := range places(v, nil) {
				if len(path) == 1 {
					continue
				}
				for _, by := range replacements {
					line, err := json.Marshal(with(v, path, by))
					if err != nil {
						t.Fatal(err)
					}
					lines := [][]byte{s[0], line}
					if strings.Contains(name, "metadata") || strings.HasSuffix(name, " m") {
						lines = lines[1:]
					}
					_, want := decoder(lines...)
					var j judge
					_, got := j.line(set, line)
					if (got == nil) != (want == nil) {
						differ[fmt.Sprintf("%v = %.30v: judge says %v, the decoder %v", path, by, got, want)]++
					}
					tried++
					if want != nil {
						refused++
					}
				}
			}
			for d := range differ {
				t.Error(d)
			}
		})
	}
	t.Logf("%d events tried, %d refused by Elastic's decoder", tried, refused)
	if tried < 5000 || refused < 1000 {
		t.Errorf("%d events tried, %d of them bad, want more", tried, refused)
	}
}
