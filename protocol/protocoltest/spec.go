package protocoltest

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

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

// HintOf returns the hint of an error for users; "" if it has none.
func HintOf(err error) string {
	if e, ok := errors.AsType[*protocol.Error](err); ok {
		return e.Hint
	}
	return ""
}

// Explained checks an error for users: a part of its text, and of its hint, which must not
// be empty.
func Explained(t testing.TB, err error, text, hint string) {
	if h := HintOf(err); h == "" || !strings.Contains(err.Error(), text) || !strings.Contains(h, hint) {
		t.Helper()
		t.Errorf("got %v with the hint %q, want %q and a hint with %q", err, h, text, hint)
	}
}
