package riemann

import (
	"testing"

	"carronade/test/testkit/assert"
)

// TestThreads: with a schedule and many clients, half of the processors are left to the server.
func TestThreads(t *testing.T) {
	for _, tt := range []struct {
		name      string
		scheduled bool
		clients   int
		want      int
	}{
		{"many clients", true, manyClients, 2},
		{"fewer", true, manyClients - 1, 3},
		{"without a schedule", false, manyClients, 3},
	} {
		s := &session{cfg: &config{scheduled: tt.scheduled, clients: tt.clients}}
		assert.Equal(t, s.Threads(3), tt.want, "%s threads on 3 processors", tt.name)
	}
}
