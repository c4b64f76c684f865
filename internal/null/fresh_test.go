package null

import (
	"bytes"
	"testing"

	"carronade/internal/kafka/wire"
	"carronade/measure"
	"carronade/protocol"
	"carronade/test/testkit/assert"
)

// Fresh events of different clients are different events.
func TestFreshEventsOfClients(t *testing.T) {
	v := protocol.Values{}
	for _, o := range (Kind{}).Options() {
		if o.Default != "" {
			v[o.Name] = []string{o.Default}
		}
	}
	v["fresh"], v["clients"] = []string{"true"}, []string{"3"}
	opened, err := Kind{}.Open(t.Context(), protocol.Spec{Options: v, Seed: 1})
	assert.OK(t, err)
	if e := opened.(protocol.Encoded).Encoding(); e.Events != measure.Fresh || e.Distinct != 0 {
		t.Errorf("encoding %+v, want fresh events", e)
	}
	v["fresh"] = []string{"false"}
	pooled, err := Kind{}.Open(t.Context(), protocol.Spec{Options: v, Seed: 1})
	assert.OK(t, err)
	if e := pooled.(protocol.Encoded).Encoding(); e.Events != measure.Pooled || e.Distinct == 0 {
		t.Errorf("encoding %+v, want pooled events", e)
	}
	var made [][]byte
	for _, l := range opened.(*session).lanes {
		for first := range uint64(5) {
			l.encoder.encode(1, first, true, 0)
			made = append(made, bytes.Clone(l.encoder.scratch[wire.HeaderSize:]))
		}
	}
	for i, a := range made {
		for k, b := range made[:i] {
			assert.True(t, !bytes.Equal(a, b), "events %d and %d are equal", k, i)
		}
	}
}
