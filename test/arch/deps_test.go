//go:build unix

package arch

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// TestDeps runs scripts/deps on simulated machines: with a PATH that has only the commands of a case.
func TestDeps(t *testing.T) {
	bash := testkit.Program(t, "bash")
	const (
		root = "#!/bin/sh\necho 0\n"
		user = "#!/bin/sh\necho 1000\n"
		// It logs its arguments, and creates the commands in $INSTALLS.
		apt = `#!/bin/sh
echo "apt-get $*" >>"$LOG"
case " $* " in *" install "*) for c in $INSTALLS; do printf '#!/bin/sh\n' >"$BIN/$c"; /bin/chmod +x "$BIN/$c"; done;; esac
`
	)
	all := []string{"all"}
	tests := []struct {
		name       string
		have       []string
		ruby       string // replaces the one that has all libraries
		python     string // replaces the one that has all modules
		id         string
		apt        bool
		installs   string
		args       []string
		code       int
		says, apts []string
	}{
		{name: "nothing missing", have: []string{"git", "gcc", "java", "mvn"}, id: root, apt: true},
		{name: "nothing of all missing", args: all, have: []string{"git", "ip", "gcc", "java", "mvn", "kcat", "wrk", "chromium", "npm", "python3", "riemann-client", "ruby"}, id: root, apt: true},
		{
			name: "root on Debian", args: all, have: []string{"git", "ip", "gcc", "kcat", "wrk", "chromium", "npm", "python3", "riemann-client", "ruby"}, id: root, apt: true, installs: "java mvn",
			says: []string{"installing default-jre-headless maven"}, apts: []string{"update", "install", "default-jre-headless maven"},
		},
		{
			name: "installing did not help", args: all, have: []string{"git", "ip", "gcc", "kcat", "wrk", "chromium", "npm", "python3", "riemann-client", "ruby"}, id: root, apt: true, installs: "mvn", code: 1,
			says: []string{"error: java is still missing"}, apts: []string{"install"},
		},
		{
			name: "not root", args: all, have: []string{"git", "ip", "java", "mvn", "kcat", "wrk", "chromium", "npm", "python3", "riemann-client", "ruby"}, id: user, apt: true, code: 1,
			says: []string{"error:", "missing here: gcc", "apt-get install gcc libc6-dev"},
		},
		{
			name: "ruby without its library", args: all, have: []string{"git", "ip", "gcc", "java", "mvn", "kcat", "wrk", "chromium", "npm", "python3", "riemann-client"}, ruby: "#!/bin/sh\nexit 1\n", id: root, apt: true,
			code: 1, says: []string{"installing ruby-riemann-client", "error: ruby is still missing"}, apts: []string{"ruby-riemann-client"},
		},
		{
			name: "python without environments", args: all, have: []string{"git", "ip", "gcc", "java", "mvn", "kcat", "wrk", "chromium", "npm", "riemann-client", "ruby"}, python: "#!/bin/sh\nexit 1\n", id: root, apt: true,
			code: 1, says: []string{"installing python3-venv", "error: python3 is still missing"}, apts: []string{"python3-venv"},
		},
		{
			name: "root elsewhere", args: all, have: []string{"git", "ip", "gcc", "java", "kcat", "wrk", "chromium", "npm", "python3", "riemann-client", "ruby"}, id: root, code: 1,
			says: []string{"error:", "missing here: mvn", "hint:"},
		},
	}
	script := assert.Value(filepath.Abs("../../scripts/deps"))(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bin, log := t.TempDir(), filepath.Join(t.TempDir(), "log")
			put := func(name, text string) { assert.OK(t, os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755)) }
			for _, name := range append(tt.have, "mkdir") {
				put(name, "#!/bin/sh\n")
			}
			put("id", tt.id)
			if tt.ruby != "" {
				put("ruby", tt.ruby)
			}
			if tt.python != "" {
				put("python3", tt.python)
			}
			if tt.apt {
				put("apt-get", apt)
			}
			cmd := exec.Command(bash, append([]string{script}, tt.args...)...)
			cmd.Env = []string{"PATH=" + bin, "BIN=" + bin, "LOG=" + log, "INSTALLS=" + tt.installs}
			out, _ := cmd.CombinedOutput()
			assert.Equal(t, cmd.ProcessState.ExitCode(), tt.code, "exit\n%s", out)
			for _, want := range tt.says {
				assert.True(t, strings.Contains(string(out), want), "it does not print %q:\n%s", want, out)
			}
			calls, _ := os.ReadFile(log)
			for _, want := range tt.apts {
				assert.True(t, strings.Contains(string(calls), want), "apt-get was not called with %q:\n%s", want, calls)
			}
			assert.True(t, len(tt.apts) != 0 || len(calls) <= 0, "apt-get was called:\n%s", calls)
		})
	}
}
