package kafka

import (
	"context"
	"net/url"

	"carronade/internal/kafka/cluster"
	"carronade/protocol"
)

// Kind is Apache Kafka. It has no state.
type Kind struct{}

// Name implements protocol.Kind.
func (Kind) Name() string { return "kafka" }

// Schemes implements protocol.Kind.
func (Kind) Schemes() []string { return []string{"kafka"} }

// DefaultPort implements protocol.DefaultPorter.
func (Kind) DefaultPort(string) string { return cluster.DefaultPort }

// Ops implements protocol.Kind.
func (Kind) Ops() []string {
	return []string{cluster.OpProduce, cluster.OpConsume, cluster.OpRoundTrip, cluster.OpRead, cluster.OpPipeline}
}

// Options implements protocol.Kind.
func (Kind) Options() []protocol.Option { return cluster.Options() }

// LimitsInFlight implements protocol.InFlightLimiter: the library has its own limit.
func (Kind) LimitsInFlight(v protocol.Values) bool { return v.String("engine") == cluster.EngineClient }

// Unacknowledged implements protocol.Unacknowledger: with acks=0 brokers do not answer.
func (Kind) Unacknowledged(_ *url.URL, v protocol.Values) bool {
	acks, err := cluster.ParseAcks(v.String("acks"))
	return err == nil && acks == 0
}

// Presets implements protocol.Presetter.
func (Kind) Presets(_ *url.URL, v protocol.Values, given map[string]bool) (map[string]string, []string, error) {
	return cluster.Presets(v, given)
}

// Inspects implements protocol.Inspector.
func (Kind) Inspects(o *protocol.Option) bool { return cluster.Inspects(o) }

// Inspect implements protocol.Inspector.
func (Kind) Inspect(ctx context.Context, s protocol.Spec) (protocol.Inspection, error) {
	return cluster.Inspect(ctx, s)
}

var (
	_ protocol.Kind            = Kind{}
	_ protocol.Unacknowledger  = Kind{}
	_ protocol.InFlightLimiter = Kind{}
	_ protocol.Presetter       = Kind{}
	_ protocol.Inspector       = Kind{}
	_ protocol.Metered         = (*session)(nil)
	_ protocol.Finisher        = (*session)(nil)
	_ protocol.Leading         = (*session)(nil)
	_ protocol.Seekable        = (*wireSource)(nil)
	_ protocol.RemovalDetector = (*wireSource)(nil)
)
