package kafka

import (
	"context"
	"net/url"

	"carronade/target"
	"carronade/target/kafka/cluster"
)

// Kind is Apache Kafka. It has no state.
type Kind struct{}

// Name implements target.Kind.
func (Kind) Name() string { return "kafka" }

// Schemes implements target.Kind.
func (Kind) Schemes() []string { return []string{"kafka"} }

// DefaultPort implements target.DefaultPorter.
func (Kind) DefaultPort(string) string { return cluster.DefaultPort }

// Ops implements target.Kind.
func (Kind) Ops() []string {
	return []string{cluster.OpProduce, cluster.OpConsume, cluster.OpRoundTrip, cluster.OpRead, cluster.OpPipeline}
}

// Options implements target.Kind.
func (Kind) Options() []target.Option { return cluster.Options() }

// LimitsInFlight implements target.InFlightLimiter: the library has its own limit.
func (Kind) LimitsInFlight(v target.Values) bool { return v.String("engine") == cluster.EngineClient }

// Unacknowledged implements target.Unacknowledger: with acks=0 brokers do not answer.
func (Kind) Unacknowledged(_ *url.URL, v target.Values) bool {
	acks, err := cluster.ParseAcks(v.String("acks"))
	return err == nil && acks == 0
}

// Presets implements target.Presetter.
func (Kind) Presets(_ *url.URL, v target.Values, given map[string]bool) (map[string]string, []string, error) {
	return cluster.Presets(v, given)
}

// Inspects implements target.Inspector.
func (Kind) Inspects(o *target.Option) bool { return cluster.Inspects(o) }

// Inspect implements target.Inspector.
func (Kind) Inspect(ctx context.Context, s target.Spec) (target.Inspection, error) {
	return cluster.Inspect(ctx, s)
}

var (
	_ target.Kind            = Kind{}
	_ target.Unacknowledger  = Kind{}
	_ target.InFlightLimiter = Kind{}
	_ target.Presetter       = Kind{}
	_ target.Inspector       = Kind{}
	_ target.Metered         = (*session)(nil)
	_ target.Finisher        = (*session)(nil)
	_ target.Leading         = (*session)(nil)
	_ target.Seekable        = (*wireSource)(nil)
	_ target.RemovalDetector = (*wireSource)(nil)
)
