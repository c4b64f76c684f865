package null

import (
	"context"
	"errors"
	"testing"

	"carronade/protocol"
	"carronade/test/testkit/assert"
)

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
