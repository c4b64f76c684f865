package kafka

import (
	"context"
	"net/url"
	"slices"

	"carronade/internal/kafka/cluster"
	"carronade/protocol"
)

// Kind is Apache Kafka. It has no state.
type Kind struct{}

// Name implements protocol.Kind.
func (Kind) Name() string { return "kafka" }

// Schemes implements protocol.Kind.
func (Kind) Schemes() []string { return []string{"kafka"} }

func (Kind) defaultPort(string) string { return cluster.DefaultPort }

// Ops implements protocol.Kind.
func (Kind) Ops() []string {
	return []string{cluster.OpProduce, cluster.OpConsume, cluster.OpRoundTrip, cluster.OpRead, cluster.OpPipeline}
}

// Options implements protocol.Kind.
func (Kind) Options() []protocol.Option { return cluster.Options() }

// limitsInFlight: the library has its own limit.
func (Kind) limitsInFlight(v protocol.Values) bool { return v.String("engine") == cluster.EngineClient }

// unacknowledged: with acks=0 brokers do not answer.
func (Kind) unacknowledged(_ *url.URL, v protocol.Values) bool {
	acks, err := cluster.ParseAcks(v.String("acks"))
	return err == nil && acks == 0
}

func (Kind) presets(u *url.URL, v protocol.Values, given map[string]bool) (map[string]string, []string, error) {
	return cluster.Presets(u, v, given)
}

// Inspects implements protocol.Inspector.
func (Kind) Inspects(o *protocol.Option) bool { return cluster.Inspects(o) }

// Inspect implements protocol.Inspector.
func (Kind) Inspect(ctx context.Context, s protocol.Spec) (protocol.Inspection, error) {
	return cluster.Inspect(ctx, s)
}

// apart: a topic that exists keeps its partitions and settings.
func (Kind) apart(u *url.URL, varied []string, cell string) string {
	if !slices.Contains(varied, "partitions") && !slices.Contains(varied, "create-topic") {
		return ""
	}
	return u.Scheme + "://" + u.Host + cluster.WithSuffix(u.Path, "-"+cell)
}

// Capabilities implements protocol.Kind.
func (k Kind) Capabilities() protocol.KindCapabilities {
	return protocol.KindCapabilities{
		Groups: true, Presets: k.presets, LimitsInFlight: k.limitsInFlight, Unacknowledged: k.unacknowledged,
		Check: k.Check, DefaultPort: k.defaultPort, Needs: k.Needs, Apart: k.apart, Inspector: k,
	}
}
