package cli

import (
	"strings"
	"testing"

	"carronade/internal/fleet"
	"carronade/test/testkit/assert"
)

// TestUnusable: each node that cannot take part is named.
func TestUnusable(t *testing.T) {
	fine := fleet.Info{Name: "a", Version: fleetVersion()}
	busy := fleet.Info{Name: "b", Version: fleetVersion(), Busy: "7"}
	old := fleet.Info{Name: "c", Version: "0"}
	assert.OK(t, unusable([]fleet.Info{fine}))
	var got []string
	for _, err := range splitErrors(unusable([]fleet.Info{busy, fine, old})) {
		got = append(got, err.Error()+" | "+hintOf(err))
	}
	want := "node b is busy with run 7 | wait for its end, or use other nodes\n" +
		"node c has version 0 of carronade, this machine " + fleetVersion() + " | use the same version everywhere"
	assert.Equal(t, strings.Join(got, "\n"), want, "got %q", got)
}
