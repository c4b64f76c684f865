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

// DefaultPort implements protocol.DefaultPorter.
func (Kind) DefaultPort(string) string { return defaultPort }

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
	m, err := newBodyPool(v, 1, false)
	if err != nil {
		return nil, nil, err
	}
	return map[string]string{"batch-events": strconv.Itoa(m.most)}, nil, nil
}

var (
	_ protocol.Kind            = Kind{}
	_ protocol.InFlightLimiter = Kind{}
	_ protocol.Presetter       = Kind{}
	_ protocol.Metered         = (*session)(nil)
	_ protocol.FigureSource    = (*session)(nil)
	_ protocol.Confirmer       = (*session)(nil)
)
