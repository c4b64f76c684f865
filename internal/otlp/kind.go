package otlp

import (
	"context"
	"net/url"
	"strconv"
	"strings"

	"carronade/measure"
	"carronade/protocol"
)

// Kind implements protocol.Kind for OTLP. It has no state.
type Kind struct{}

// The schemes.
const (
	schemeHTTP  = "otlp+http"
	schemeHTTPS = "otlp+https"
	schemeGRPC  = "otlp+grpc"
	schemeGRPCS = "otlp+grpcs"
)

// Default ports, as OpenTelemetry's specification has them.
const (
	portHTTP = "4318"
	portGRPC = "4317"
)

// Name implements protocol.Kind.
func (Kind) Name() string { return "otlp" }

// Schemes implements protocol.Kind.
func (Kind) Schemes() []string { return []string{schemeHTTP, schemeHTTPS, schemeGRPC, schemeGRPCS} }

func (Kind) defaultPort(scheme string) string {
	if strings.HasPrefix(scheme, schemeGRPC) {
		return portGRPC
	}
	return portHTTP
}

// Ops implements protocol.Kind.
func (Kind) Ops() []string { return []string{"produce"} }

// Options implements protocol.Kind.
func (Kind) Options() []protocol.Option { return options() }

// limitsInFlight: a connection has as many requests in flight as were asked for.
func (Kind) limitsInFlight(protocol.Values) bool { return true }

// Presets are the events per batch, which the content of requests determines.
func (Kind) Presets(_ *url.URL, v protocol.Values, _ map[string]bool) (set map[string]string, warnings []string, err error) {
	p, err := newPool(v, protocol.Spec{Options: v}, false)
	if err != nil {
		return nil, nil, err
	}
	return map[string]string{"batch-events": strconv.Itoa(p.most)}, nil, nil
}

// Check finds what is wrong with a spec by itself.
func (Kind) Check(s protocol.Spec) error {
	_, err := parseConfig(s, false)
	return err
}

// Open implements protocol.Kind. It sends each server a request without events of each signal, and makes
// the requests and the connections.
func (Kind) Open(ctx context.Context, s protocol.Spec) (protocol.Session, error) { return open(ctx, s) }

// Capabilities implements protocol.Kind.
func (k Kind) Capabilities() protocol.KindCapabilities {
	return protocol.KindCapabilities{
		Presets: k.Presets, LimitsInFlight: k.limitsInFlight, Check: k.Check, DefaultPort: k.defaultPort, Needs: k.Needs, Inspector: k, Recorded: recorded,
		Stages: []measure.Stage{{Name: "refused", Metrics: "otelcol_receiver_refused_*"}, {Name: "accepted by the receiver", Metrics: "otelcol_receiver_accepted_*"}, {Name: "exported", Metrics: "otelcol_exporter_sent_*"}},
	}
}
