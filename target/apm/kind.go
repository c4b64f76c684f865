package apm

import (
	"net/url"
	"strconv"

	"carronade/target"
)

// Kind implements target.Kind for Elastic APM Server. It has no state.
type Kind struct{}

// The schemes.
const (
	schemeHTTP  = "apm+http"
	schemeHTTPS = "apm+https"
)

// Name implements target.Kind.
func (Kind) Name() string { return "apm" }

// Schemes implements target.Kind.
func (Kind) Schemes() []string { return []string{schemeHTTP, schemeHTTPS} }

// DefaultPort implements target.DefaultPorter.
func (Kind) DefaultPort(string) string { return defaultPort }

// Ops implements target.Kind.
func (Kind) Ops() []string { return []string{"produce"} }

// Options implements target.Kind.
func (Kind) Options() []target.Option { return options() }

// LimitsInFlight implements target.InFlightLimiter: a connection has as many requests in
// flight as were asked for.
func (Kind) LimitsInFlight(target.Values) bool { return true }

// Presets implements target.Presetter: the content of requests determines the
// events per batch.
func (Kind) Presets(_ *url.URL, v target.Values, _ map[string]bool) (set map[string]string, warnings []string, err error) {
	m, err := newBodyPool(v, 1, false)
	if err != nil {
		return nil, nil, err
	}
	return map[string]string{"batch-events": strconv.Itoa(m.most)}, nil, nil
}

var (
	_ target.Kind            = Kind{}
	_ target.InFlightLimiter = Kind{}
	_ target.Presetter       = Kind{}
	_ target.Metered         = (*session)(nil)
	_ target.FigureSource    = (*session)(nil)
	_ target.Confirmer       = (*session)(nil)
)
