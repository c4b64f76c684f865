package protocoltest

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"carronade/internal/advice"
	"carronade/protocol"
)

// Spec returns a spec as a workload makes it for a kind with these options: with their
// defaults, the values given, and the names of those. It has 5 ms of linger and up to 5
// batches in flight.
func Spec(t testing.TB, options []protocol.Option, rawURL string, given map[string][]string) protocol.Spec {
	t.Helper()
	u, err := url.Parse(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	s := protocol.Spec{URL: u, Options: protocol.Values{}, Given: map[string]bool{}, Linger: 5 * time.Millisecond, MaxInFlight: 5, Logf: t.Logf}
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

// Explained checks an error for users: a part of its text, and of its hint, which must not
// be empty.
func Explained(t testing.TB, err error, text, hint string) {
	if h := advice.Hint(err); h == "" || !strings.Contains(err.Error(), text) || !strings.Contains(h, hint) {
		t.Helper()
		t.Errorf("got %v with the hint %q, want %q and a hint with %q", err, h, text, hint)
	}
}
