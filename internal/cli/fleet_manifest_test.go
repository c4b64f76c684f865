package cli

import (
	"testing"

	"carronade/internal/fleet"
	"carronade/internal/fleet/bus"
	"carronade/internal/serve"
	"carronade/test/testkit/assert"
)

// TestManifestTarget checks that agents which may load the default target may also connect to
// what the brokers there announce.
func TestManifestTarget(t *testing.T) {
	rules := &serve.Rules{Agent: true, Targets: []string{fleet.DefaultTarget}}
	for address, want := range map[string]bool{
		"kafka://my-cluster-kafka-bootstrap.kafka.svc:9092/orders":     true,
		"my-cluster-kafka-0.my-cluster-kafka-brokers.kafka.svc:9092":   true,
		"kafka://my-cluster-kafka-bootstrap.elsewhere.svc:9092/orders": false,
		"my-cluster-kafka-0.my-cluster-kafka-brokers.kafka.svc:9093":   false,
	} {
		err := rules.Address(address)
		assert.True(t, (err == nil) == want, "%s: got %v, want allowed: %v", address, err, want)
	}
}

// TestManifestAgents checks that a manifest may have as many agents as can be connected to a coordinator.
func TestManifestAgents(t *testing.T) {
	for agents, want := range map[int]bool{bus.MaxAgents: true, bus.MaxAgents + 1: false} {
		_, err := fleet.Manifest(fleet.ManifestOptions{Agents: agents})
		assert.True(t, (err == nil) == want, "%d agents: got %v, want allowed: %v", agents, err, want)
	}
}
