package otlp

import (
	"context"
	"net/url"
	"strconv"
	"strings"

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

// DefaultPort implements protocol.DefaultPorter.
func (Kind) DefaultPort(scheme string) string {
	if strings.HasPrefix(scheme, schemeGRPC) {
		return portGRPC
	}
	return portHTTP
}

// Ops implements protocol.Kind.
func (Kind) Ops() []string { return []string{"produce"} }

// Options implements protocol.Kind.
func (Kind) Options() []protocol.Option { return options() }

// LimitsInFlight implements protocol.InFlightLimiter: a connection has as many requests in
// flight as were asked for.
func (Kind) LimitsInFlight(protocol.Values) bool { return true }

// Presets implements protocol.Presetter: the content of requests determines the
// events per batch.
func (Kind) Presets(_ *url.URL, v protocol.Values, _ map[string]bool) (set map[string]string, warnings []string, err error) {
	p, err := newPool(v, protocol.Spec{Options: v}, false)
	if err != nil {
		return nil, nil, err
	}
	return map[string]string{"batch-events": strconv.Itoa(p.most)}, nil, nil
}

// Check implements protocol.Checker.
func (Kind) Check(s protocol.Spec) error {
	_, err := parseConfig(s, false)
	return err
}

// Open implements protocol.Kind. It sends each server a request without events of each signal, and makes
// the requests and the connections.
func (Kind) Open(ctx context.Context, s protocol.Spec) (protocol.Session, error) { return open(ctx, s) }

var (
	_ protocol.Checker         = Kind{}
	_ protocol.DefaultPorter   = Kind{}
	_ protocol.Inspector       = Kind{}
	_ protocol.InFlightLimiter = Kind{}
	_ protocol.Presetter       = Kind{}
	_ protocol.Priced          = Kind{}
	_ protocol.Encoded         = (*session)(nil)
	_ protocol.Metered         = (*session)(nil)
)
