package null_test

import (
	"testing"

	"carronade/internal/null"
	"carronade/load"
	"carronade/measure"
	"carronade/protocol"
	"carronade/protocol/protocoltest"
	"carronade/test/testkit/assert"
)

func TestTarget(t *testing.T) {
	protocoltest.Run(t, protocoltest.System{Kind: null.Kind{}, URL: "null://"})
}

func TestFreshTarget(t *testing.T) {
	protocoltest.Run(t, protocoltest.System{Kind: null.Kind{}, URL: "null://", Options: map[string]string{"fresh": "true", "size": "10-300", "key": "seq"}})
}

// Keys and headers by expressions are made for each event, unless a pool is asked for.
func TestExpressions(t *testing.T) {
	options := map[string]string{"key": "user-${rnd.nextInt(1000)}", "header": "x-${rnd.nextInt(10)}=${time:nanos()}", "size": "10"}
	protocoltest.Run(t, protocoltest.System{Kind: null.Kind{}, URL: "null://", Options: options})
	v := protocol.Values{}
	for _, o := range (null.Kind{}).Options() {
		if o.Default != "" {
			v[o.Name] = []string{o.Default}
		}
	}
	for name, text := range options {
		v[name] = []string{text}
	}
	s := assert.Value(null.Kind{}.Open(t.Context(), protocol.Spec{Options: v, Seed: 1}))(t)
	assert.Equal(t, s.Capabilities().Encoding().Events, measure.Fresh, "the events")
	r := assert.Value(load.Fire(t.Context(), load.Plan{Measurement: load.Limits{Events: 1000}}, s.Target()))(t)
	// A name of 3 bytes, 19 digits of time, 6 to 8 bytes of key, and the value.
	got := r.Measurement.Bytes
	assert.True(t, got >= 1000*(10+3+19+6) && got <= 1000*(10+3+19+8), "1000 events have %d bytes", got)
	set, _, err := null.Kind{}.Presets(nil, v, nil)
	assert.True(t, err == nil && set["fresh"] == "true", "presets %v, %v", set, err)
	err = null.Kind{}.Check(protocol.Spec{Options: v, Given: map[string]bool{"fresh": true}})
	assert.ErrorHas(t, err, "events are made before the run", "the time in a pool")
}
