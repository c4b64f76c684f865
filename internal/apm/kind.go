package apm

import (
	"net/url"
	"strconv"

	"carronade/protocol"
)

// Kind implements protocol.Kind for Elastic APM Server. It has no state.
type Kind struct{}

// The schemes.
const (
	schemeHTTP  = "apm+http"
	schemeHTTPS = "apm+https"
)

// Name implements protocol.Kind.
func (Kind) Name() string { return "apm" }

// Schemes implements protocol.Kind.
func (Kind) Schemes() []string { return []string{schemeHTTP, schemeHTTPS} }

func (Kind) defaultPort(string) string { return defaultPort }

// Ops implements protocol.Kind.
func (Kind) Ops() []string { return []string{"produce"} }

// Options implements protocol.Kind.
func (Kind) Options() []protocol.Option { return options() }

// limitsInFlight: a connection has as many requests in flight as were asked for.
func (Kind) limitsInFlight(protocol.Values) bool { return true }

// Presets are the events per batch, which the content of requests determines.
func (Kind) Presets(_ *url.URL, v protocol.Values, _ map[string]bool) (set map[string]string, warnings []string, err error) {
	m, err := newBodyPool(v, 1, false)
	if err != nil {
		return nil, nil, err
	}
	return map[string]string{"batch-events": strconv.Itoa(m.most)}, nil, nil
}

// Capabilities implements protocol.Kind.
func (k Kind) Capabilities() protocol.KindCapabilities {
	return protocol.KindCapabilities{
		Presets: k.Presets, LimitsInFlight: k.limitsInFlight, Check: k.Check, DefaultPort: k.defaultPort, Needs: k.Needs, Inspector: k,
	}
}
