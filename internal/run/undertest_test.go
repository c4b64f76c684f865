package run

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"carronade/protocol"
	"carronade/test/testkit/assert"
)

// A ported kind has a default port.
type ported struct{ protocol.Kind }

func (ported) DefaultPort(scheme string) string {
	return map[string]string{"cannon": "17", "cannon+tls": "18"}[scheme]
}

func TestListening(t *testing.T) {
	for _, tt := range []struct {
		name          string
		kind          protocol.Kind
		scheme, hosts string
		want          []string
	}{
		{"ports", ported{}, "cannon", "a:1,b:2", []string{"a:1", "b:2"}},
		{"no port", ported{}, "cannon", "a", []string{"a:17"}},
		{"by the scheme", ported{}, "cannon+tls", "a,b:2", []string{"a:18", "b:2"}},
		{"an address of version 6", ported{}, "cannon", "[::1],[::1]:2", []string{"[::1]:17", "[::1]:2"}},
		{"a colon and no port", ported{}, "cannon", "a:", []string{"a:17"}},
		{"a kind without a default port", nil, "cannon", "a", nil},
		{"no host", ported{}, "cannon", "", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := listening(tt.kind, &url.URL{Scheme: tt.scheme, Host: tt.hosts})
			assert.True(t, slices.Equal(got, tt.want), "got %q, want %q", got, tt.want)
		})
	}
}

func TestOtherHosts(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"a machine", `{"os":"linux","cores":4,"more":1}`, ""},
		{"nothing", "", "not what carronade host --json prints"},
		{"a number", "5", "not what carronade host --json prints"},
		{"something else", `{"os":1}`, "not what carronade host --json prints"},
		{"no machine", "{}", "names no system"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "host.json")
			assert.OK(t, os.WriteFile(path, []byte(tt.text), 0o600))
			got, err := otherHosts([]string{path})
			switch {
			case tt.want == "" && (err != nil || len(got) != 1):
				t.Errorf("got %v, %v", got, err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got %v, %v, want %q", got, err, tt.want)
			}
		})
	}
}
