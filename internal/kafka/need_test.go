package kafka

import (
	"strings"
	"testing"

	"carronade/internal/kafka/cluster"
	"carronade/protocol"
)

// TestStreamNeeds: what depends on partitions and brokers is checked when the cluster has answered.
func TestStreamNeeds(t *testing.T) {
	room := protocol.Room{Memory: 1 << 30, From: "this machine has %s free", Files: 20_000}
	for _, tt := range []struct {
		clients, partitions, brokers int
		want                         string
	}{
		{100, 10_000, 3, ""},
		{6000, 12, 3, ""},
		{1000, 10_000, 3, "--clients 1,000 takes"},
		{1, 2_000_000, 1, "--partitions 2,000,000 takes"},
		{9000, 12, 3, "--clients 9,000 takes about 27032 open files"},
		{9000, 3, 3, ""}, // a broker that leads nothing gets no connection
	} {
		p := &producer{cfg: &cluster.Config{Clients: tt.clients}}
		v := &view{leaders: []int32{noLeader}}
		for i := range tt.partitions - 1 {
			v.leaders = append(v.leaders, int32(i%tt.brokers))
		}
		err := room.Check(p.streamNeeds(v))
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%d clients, %d partitions, %d brokers: got %v, want %q", tt.clients, tt.partitions, tt.brokers, err, tt.want)
		}
	}
}
