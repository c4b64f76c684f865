package standin

import (
	"testing"

	"carronade/test/testkit/assert"
)

func TestAddresses(t *testing.T) {
	for _, test := range []struct {
		name, line string
		want       map[string]string
	}{
		{"one", "127.0.0.1:9092", map[string]string{"": "127.0.0.1:9092"}},
		{"several", "127.0.0.1:5555, udp 127.0.0.1:5556, tls [::1]:5554", map[string]string{
			"": "127.0.0.1:5555", "udp": "127.0.0.1:5556", "tls": "[::1]:5554",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			assert.Same(t, addresses(test.line), test.want)
		})
	}
}
