//go:build unix

package cli_test

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"

	"carronade/internal/standin"
	"carronade/test/testkit/assert"
)

// A server that is killed leaves events of which it is not known whether it took them. They are not
// called refused: that is only what was never written.
func TestUnknownIsNotRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, url string }{
		{"kafka", "kafka://ADDR/t"},
		{"riemann", "riemann://ADDR"},
		{"apm", "apm+http://ADDR"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server, err := standin.Spawn(t.Context(), carronade(t), tt.name, "--listen", "127.0.0.1:0", "--delay", "300ms")
			assert.OK(t, err)
			t.Cleanup(func() { _ = server.Stop() })
			args := []string{"run", strings.Replace(tt.url, "ADDR", server.Addr(), 1), "--rate", "1k/s", "--for", "10s", "--request-timeout", "3s", "--no-store", "--json"}
			if tt.name == "kafka" {
				args = append(args, "--create-topic", "auto")
			}
			p := start(t, args...)
			p.until(t, "measurement")
			assert.OK(t, syscall.Kill(server.Pid(), syscall.SIGKILL))
			p.end(t)
			var d struct {
				Classes map[string]uint64 `json:"classes"`
				Phases  []struct {
					Totals struct {
						Failed  uint64 `json:"failed"`
						Unknown uint64 `json:"unknown"`
					} `json:"totals"`
				} `json:"phases"`
			}
			assert.OK(t, json.Unmarshal(p.out.Bytes(), &d), "%s\n%s", p.out.String(), p.said.String())
			var failed, unknown uint64
			for _, ph := range d.Phases {
				failed, unknown = failed+ph.Totals.Failed, unknown+ph.Totals.Unknown
			}
			assert.True(t, failed > 0 && unknown > 0 && d.Classes["refused"] == failed && d.Classes["disconnected"] == unknown,
				"%d failed and %d unknown, by class %v; want those refused and these disconnected", failed, unknown, d.Classes)
		})
	}
}
