package riemann

import (
	"fmt"
	"strings"
	"testing"

	standinriemann "carronade/internal/riemann/standin"
	"carronade/test/testkit/assert"

	"carronade/load"
)

// A field by an expression arrives at the server, over each transport that encodes events.
func TestExpressionsArrive(t *testing.T) {
	t.Parallel()
	srv := startStandin(t, standinriemann.Options{})
	for i, target := range []string{"riemann://" + srv.AddrOf("tcp"), "riemann+ws://" + srv.AddrOf("ws")} {
		s := openSession(t, specOf(t, target, fmt.Sprintf("service=arrives %d {seq}", i), "attribute=order=o-${string:format('%06d', rnd.nextInt(1000000))}", "pool=4KiB", "ttl=10m"))
		r, err := load.Fire(t.Context(), load.Plan{Measurement: load.Limits{Events: 200}, BatchEvents: 1, MaxInFlight: 100}, s.Target())
		assert.Must(t, err == nil && r.Measurement.Acked == 200, "%s: %v, acked %d", target, err, r.Measurement.Acked)
		found := assert.Value(ask(t, "riemann://"+srv.Addr(), nil, fmt.Sprintf(`service =~ "arrives %d %%"`, i)))(t)
		seen := map[string]bool{}
		for _, e := range found {
			if order := e.Attributes["order"]; strings.HasPrefix(order, "o-") && len(order) == len("o-000000") {
				seen[order] = true
			}
		}
		assert.True(t, len(found) == 200 && len(seen) >= 20, "%s: %d events, %d different orders", target, len(found), len(seen))
	}
}
