package mongoose

import (
	"io"
	"testing"

	"carronade/internal/dropin"
	"carronade/internal/scenario"
	"carronade/test/testkit/assert"
)

// A check has words for every option that has an effect: a setting of the run, or an effect of
// its own.
func TestEveryEffect(t *testing.T) {
	values := map[string]string{
		tBool: "true", tInt: "7", tLong: "7", tDouble: "0.5", tString: "serial", tList: "0.5", tAny: "7", tMap: "",
	}
	for i := range options {
		o := &options[i]
		if o.use != effective || o.name == "run-scenario" {
			continue
		}
		value := values[o.kind]
		switch o.name {
		case "item-type":
			value = "data"
		case "load-op-type":
			value = "create"
		case "storage-driver-type":
			value = "kafka"
		case "storage-driver-compression-type":
			value = "lz4"
		case "item-data-input-seed":
			value = "ff"
		case "item-input-file":
			continue // a file is needed
		}
		of := []scenario.Option{{Name: o.name, Values: []string{value}}}
		if o.kind == tMap {
			of[0].Values = []string{"a", "b"}
		}
		found := false
		for _, base := range [][]scenario.Option{
			{},
			{{Name: "item-type", Values: []string{"path"}}, {Name: "load-op-limit-count", Values: []string{"3"}}},
			{{Name: "load-op-type", Values: []string{"read"}}, {Name: "item-input-path", Values: []string{"t"}}},
			{{Name: "load-op-limit-rate", Values: []string{"5"}}, {Name: "storage-driver-limit-concurrency", Values: []string{"0"}}},
		} {
			r := newRunner(t.Context(), &dropin.Program{Out: io.Discard, Err: io.Discard}, newValues(), nil)
			r.dry = true
			l := &loads{kind: linearLoad}
			if err := r.prepare(l, &scenario.Step{Kind: linearLoad, Options: append(base, of...)}); err != nil {
				continue
			}
			p := l.parts[0]
			for k := range p.paths {
				found = found || p.paths[k].name == o.name && p.becomes(&p.paths[k]) != ""
			}
		}
		if !found {
			t.Errorf("a check does not mention %s", dotted(o.name))
		}
	}
	for name := range effects {
		assert.True(t, find(name) != nil, "there is an effect of %s, which is not an option", name)
	}
}
