package workload

import (
	"strings"
	"testing"

	"carronade/protocol"
	"carronade/test/testkit/assert"
)

// post uses HTTP, and has a default port.
type post struct{ cannon }

func (post) Name() string              { return "post" }
func (post) Schemes() []string         { return []string{"post+http", "post+https"} }
func (post) DefaultPort(string) string { return "8200" }

// mail also uses HTTP, and has no default port.
type mail struct{ cannon }

func (mail) Name() string      { return "mail" }
func (mail) Schemes() []string { return []string{"mail+http"} }

// For an unknown scheme, the error suggests the address that was most likely
// meant.
func TestUnknownScheme(t *testing.T) {
	all := []protocol.Kind{cannon{}, gun{}, mail{}, post{}}
	for _, tt := range []struct{ name, typed, hint string }{
		{"as in browsers, with the port", "http://127.0.0.1:8200", "did you mean post+http://127.0.0.1:8200?"},
		{"with the port, and a path", "https://apm:8200/intake", "did you mean post+https://apm:8200/intake?"},
		{"with another port", "http://h:80", "did you mean mail+http://h:80 or post+http://h:80?"},
		{"without a port", "http://h", "did you mean mail+http://h or post+http://h?"},
		{"a transport of only one kind", "https://h", "did you mean post+https://h?"},
		{"the port of one", "tcp://h:1415", "did you mean gun://h:1415?"},
		{"of several hosts", "tcp://h:1415,i:1415/x", "did you mean gun://h:1415,i:1415/x?"},
		{"mistyped", "gnu://h:8200", "did you mean gun://h:8200?"},
		{"a password", "http://me:pw@h:8200", "did you mean post+http://h:8200?"},
		{"nothing near", "amqp://h:1", "targets look like cannon:// or gun://127.0.0.1:1415 or mail+http:// or post+http://127.0.0.1:8200"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := ParseTarget(all, tt.typed)
			e, ok := err.(*Error) //nolint:errorlint // as it is returned
			assert.True(t, ok && e.Hint == tt.hint && strings.Contains(e.Error(), "unknown scheme"),
				"got %v with %+v, want the hint %q", err, e, tt.hint)
		})
	}
}
