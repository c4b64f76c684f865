package null

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"carronade/internal/kafka/wire"
	"carronade/measure"
	"carronade/protocol"
	"carronade/test/testkit/assert"
)

// TestPool: batches of any size take no more memory than the size of the pool, and the
// lane never offers room for more events than a template has.
func TestPool(t *testing.T) {
	for _, tt := range []struct {
		name     string
		perBatch int
		size     string
	}{
		{"as many as fit", 0, "100"},
		{"one event a batch", 1, "100"},
		{"of many sizes", 30, "10-3000"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := protocol.Values{}
			for _, o := range (Kind{}).Options() {
				if o.Default != "" {
					v[o.Name] = []string{o.Default}
				}
			}
			v["size"], v["batch-size"] = []string{tt.size}, []string{"32KiB"}
			opened := assert.Value(Kind{}.Open(t.Context(), protocol.Spec{Options: v, Seed: 1, BatchEvents: tt.perBatch}))(t)
			l := opened.(*session).lanes[0]
			total := 0
			for i := range l.encoder.templates {
				d := &l.encoder.templates[i]
				total += cap(d.batch)
				room := l.Room(0, 0)
				assert.Must(t, tt.perBatch <= 0 || room <= d.events(), "room for %d events in a template of %d", room, d.events())
			}
			most := 3 << 19
			assert.True(t, total <= most, "a pool of 1 MiB takes %d bytes in %d batches, want at most %d", total, len(l.encoder.templates), most)
		})
	}
}

// Fresh events of different clients are different events.
func TestFreshEventsOfClients(t *testing.T) {
	v := protocol.Values{}
	for _, o := range (Kind{}).Options() {
		if o.Default != "" {
			v[o.Name] = []string{o.Default}
		}
	}
	v["fresh"], v["clients"] = []string{"true"}, []string{"3"}
	opened := assert.Value(Kind{}.Open(t.Context(), protocol.Spec{Options: v, Seed: 1}))(t)
	e := opened.Capabilities().Encoding()
	assert.True(t, e.Events == measure.Fresh && e.Distinct == 0, "encoding %+v, want fresh events", e)
	v["fresh"] = []string{"false"}
	pooled := assert.Value(Kind{}.Open(t.Context(), protocol.Spec{Options: v, Seed: 1}))(t)
	e = pooled.Capabilities().Encoding()
	assert.True(t, e.Events == measure.Pooled && e.Distinct != 0, "encoding %+v, want pooled events", e)
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

// TestOpenEnds: an interrupt ends the making of clients and of their pools.
func TestOpenEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	v := protocol.Values{}
	for _, o := range (Kind{}).Options() {
		if o.Default != "" {
			v[o.Name] = []string{o.Default}
		}
	}
	_, err := (Kind{}).Open(ctx, protocol.Spec{Options: v, Seed: 1})
	assert.True(t, errors.Is(err, context.Canceled), "got %v", err)
}
