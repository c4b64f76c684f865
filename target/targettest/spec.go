package targettest

import (
	"errors"
	"net/url"
	"testing"
	"time"

	"carronade/target"
)

// Spec returns a spec as a workload makes it for a kind with these options: with their
// defaults, the values given, and the names of those. It has 5 ms of linger and up to 5
// batches in flight.
func Spec(t testing.TB, options []target.Option, rawURL string, given map[string][]string) target.Spec {
	t.Helper()
	u, err := url.Parse(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	s := target.Spec{URL: u, Options: target.Values{}, Given: map[string]bool{}, Linger: 5 * time.Millisecond, MaxInFlight: 5, Logf: t.Logf}
	for _, o := range options {
		if o.Default != "" {
			s.Options[o.Name] = []string{o.Default}
		}
	}
	for k, v := range given {
		s.Options[k] = v
		s.Given[k] = true
	}
	return s
}

// HintOf returns the hint of an error for users; "" if it has none.
func HintOf(err error) string {
	if e, ok := errors.AsType[*target.Error](err); ok {
		return e.Hint
	}
	return ""
}
