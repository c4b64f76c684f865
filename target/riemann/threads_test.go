package riemann

import "testing"

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
		if got := s.Threads(3); got != tt.want {
			t.Errorf("%s: got %d threads on 3 processors, want %d", tt.name, got, tt.want)
		}
	}
}
