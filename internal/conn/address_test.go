package conn

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"carronade/protocol"
	"carronade/test/testkit/assert"
)

func TestHosts(t *testing.T) {
	for _, tt := range []struct{ name, list, want, wrong string }{
		{"a name", "h", "h:17", ""},
		{"a port", "h:1", "h:1", ""},
		{"several", "a:1, b,[::1]", "a:1 b:17 [::1]:17", ""},
		{"an IPv6 address with a port", "[::1]:7", "[::1]:7", ""},
		{"a bare IPv6 address", "::1", "[::1]:17", ""},
		{"none", "", "", "no address"},
		{"one that is empty", "a,,b", "", "no address"},
		{"a port alone", ":5555", "", "no host"},
		{"a colon alone", "h:", "", "invalid port"},
		{"the port 0", "h:0", "", "invalid port 0"},
		{"a port in letters", "h:x", "", `"h:x": invalid port x`},
		{"too large a port", "a,h:70000", "", `"h:70000": invalid port 70000: want 1 to 65535`},
		{"half an IPv6 address", "[::1:x", "", "::1:x"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			hosts, err := Hosts(tt.list, "17")
			if tt.wrong == "" && err != nil || tt.wrong != "" && (err == nil || !strings.Contains(err.Error(), tt.wrong)) {
				t.Fatalf("got %v, want %q", err, tt.wrong)
			}
			got := strings.Join(hosts, " ")
			assert.True(t, err != nil || got == tt.want, "got %s, want %s", got, tt.want)
		})
	}
}

func TestCheckURL(t *testing.T) {
	for _, tt := range []struct{ url, wrong, hint string }{
		{"x://h:1/path", "", ""},
		{"x://me:canary@h", "a user or a password", "log in so"},
		{"x://me@h", "a user or a password", "log in so"},
		{"x://h?token=canary", "must not have a query", "settings"},
		{"x://h/#canary", "must not have a query", "settings"},
	} {
		t.Run(tt.url, func(t *testing.T) {
			u := assert.Value(url.Parse(tt.url))(t)
			err := CheckURL(u, "read it", "log in so", "settings are flags")
			if tt.wrong == "" {
				assert.True(t, err == nil, "got %v, want none", err)
				return
			}
			var e *protocol.Error
			if !errors.As(err, &e) || e.Doing != "read it" || !strings.Contains(err.Error(), tt.wrong) || !strings.Contains(e.Hint, tt.hint) {
				t.Fatalf("got %v, want %q with a hint on %s", err, tt.wrong, tt.hint)
			}
			assert.True(t, !strings.Contains(err.Error()+e.Hint, "canary"), "the error reveals the secret: %v", err)
		})
	}
}

func TestListenAddress(t *testing.T) {
	for text, want := range map[string]string{
		"8080": "127.0.0.1 8080", ":8080": "127.0.0.1 8080", "0": "127.0.0.1 0", "0.0.0.0:1": "0.0.0.0 1", "[::1]:2": "::1 2", "name:3": "name 3",
		"": `"" is not a port`, "x": `"x" is not a port`, "h:99999": `"99999" is not a port`, "a:b:c": "too many colons in address", "[::1": "missing ']' in address",
	} {
		host, port, err := ListenAddress(text)
		got := host + " " + port
		if err != nil {
			got = err.Error()
		}
		assert.Equal(t, got, want, "%q", text)
	}
}
