package null

import (
	"context"
	"errors"
	"testing"

	"carronade/protocol"
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
	if _, err := (Kind{}).Open(ctx, protocol.Spec{Options: v, Seed: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
