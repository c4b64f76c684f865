package cli_test

import (
	"os/exec"
	"strings"
	"testing"

	"carronade/internal/serve"
)

// TestAnnouncedAddresses: a job of a server connects to no address outside its rules, also if a
// broker announces it.
func TestAnnouncedAddresses(t *testing.T) {
	t.Parallel()
	c := child(t, "kafka", "--in-memory", "--topic", "t:1", "--advertise", "192.0.2.1:9092")
	rules := &serve.Rules{Folder: t.TempDir(), Targets: []string{"127.0.0.1"}}
	for _, args := range [][]string{
		{"run", "kafka://" + c.Addr() + "/t", "--count", "10"},
		{"run", "kafka://" + c.Addr() + "/t", "--count", "10", "--engine", "client"},
	} {
		cmd := exec.CommandContext(t.Context(), carronade(t), args...)
		cmd.Env, cmd.Dir = []string{rules.Environment(), "XDG_DATA_HOME=" + t.TempDir()}, rules.Folder
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "192.0.2.1:9092, the address that it advertises: this server does not allow jobs to connect to 192.0.2.1:9092\n") ||
			!strings.Contains(string(out), "\nhint: ask the operator of the server to start it with --allow-target") {
			t.Errorf("%q: %v\n%s", args, err, out)
		}
	}
}
